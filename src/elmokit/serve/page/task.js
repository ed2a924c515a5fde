// Trained tasks: what they have learned of the layers, and a form to try them.

import { TASKS } from "./answers.js";
import { bars, choice, labelled, select } from "./controls.js";
import { answersInto, element, replaceContent, svg } from "./dom.js";
import { canvasFor, lettering, saving } from "./export.js";
import { readsChinese } from "./models.js";
import { number, t } from "./texts.js";

const EXAMPLES = {
  text: ["Anna Reed went from London to Paris in the spring.", "小雨和奶奶一起去了北京的公园。"],
  first: ["A man plays the violin in the park.", "一个男人在公园里拉小提琴。"],
  second: ["Somebody makes music.", "有人在演奏音乐。"],
  question: ["Where does Anna work?", "小雨住在哪里？"],
  context: [
    "Anna works at the bank on the main street. Her brother Tom is at school.",
    "小雨住在河边的一个小镇上。她的爸爸开了一家小饭馆。",
  ],
  bracketed: ["He sat on the [bank] of the river.", "He sat on the [bank] of the river."],
  lemma: ["", ""],
  pos: ["NOUN", "NOUN"],
};

export const taskView = {
  name: "task",
  available: ({ backend, info }) => backend.can("task") && Boolean(info.tasks?.length),
  create: createTask,
};

function createTask(app) {
  const root = element("article", {});
  let shown = "";
  let answer = () => {};

  function update(state) {
    const task = app.info.tasks.find((one) => one.name === state.name) ?? app.info.tasks[0];
    if (task.name !== shown) build(task);
    shown = task.name;
    answer(state);
  }

  function build(task) {
    const choices = app.info.tasks.map((one) => [one.name, one.name]);
    const choose = (name) => app.go({ view: "task", name });
    const which = choices.length > 1 && choice({ label: t("task"), choices, value: task.name, onChange: choose });
    const intro = element("p", { class: "intro" }, element("b", {}, task.name), " · ", t(`task-${task.task}`));
    const form = trial(app, task);
    answer = form.show;
    replaceContent(root, which, intro, form.root, learned(task));
  }

  return { root, update };
}

/** The form and below it the answer (`root`), and what asks for the values of a state (`show`). */
function trial(app, task) {
  const { fields, input, show } = TASKS[task.task];
  const chinese = readsChinese(app.info.models.find(({ name }) => task.embedders.includes(name)));
  const controls = fields.map(([name, kind]) => fieldOf(name, kind));
  const region = element("div", { class: "result", "aria-live": "polite" });
  const fill = answersInto(region);
  const ask = async (values) => (await app.backend.task(task.name, [input(values)])).answers[0];
  const submit = (event) => {
    event.preventDefault();
    app.set({ name: task.name, ...Object.fromEntries(controls.map(({ name, control }) => [name, control.value])) });
  };
  const showState = (state) => {
    const values = Object.fromEntries(
      controls.map(({ name }) => [name, state[name] ?? EXAMPLES[name][chinese ? 1 : 0]]),
    );
    for (const { name, control } of controls) control.value = values[name];
    fill(ask(values), (answer) => show(answer, numbering(task.labels)));
  };
  const form = element(
    "form",
    { class: "trial", on: { submit } },
    controls.map(({ root }) => root),
    element("button", { class: "main" }, t("ask")),
  );
  return { root: element("section", {}, element("h2", {}, t("try-task")), form, region), show: showState };
}

function fieldOf(name, kind) {
  if (Array.isArray(kind)) {
    const root = select({
      label: t(`field-${name}`),
      choices: kind.map((one) => [one, one]),
      value: kind[0],
      onChange: () => {},
    });
    return { name, root, control: root.querySelector("select") };
  }
  const control = kind > 1 ? element("textarea", { rows: kind }) : element("input", { type: "text" });
  return { name, root: labelled(t(`field-${name}`), control), control };
}

/** A number for each label, so that it keeps its colour: B-PER, I-PER and PER are one. */
function numbering(labels) {
  const known = [...new Set(labels.map((label) => label.replace(/^[BIES]-/, "")))].filter((label) => label !== "O");
  return (label) => {
    if (!known.includes(label)) known.push(label);
    return known.indexOf(label);
  };
}

/** The weights of the layers, as each mix has learned them. */
function learned(task) {
  if (!task.mixes.length) return null;
  const table = () => [
    ["embedder", "place", "layer", "weight", "gamma"],
    ...task.mixes.flatMap((mix) =>
      mix.weights.map((weight, layer) => [task.embedders[mix.embedder], mix.place, layer, weight, mix.gamma]),
    ),
  ];
  const mixes = task.mixes.map((mix) => {
    const rows = mix.weights.map((weight, layer) => {
      return { word: t("layer-number", { number: layer }), share: weight, text: number(weight, 2) };
    });
    return element("div", { class: "list mix" }, element("h3", {}, mixTitle(task, mix)), bars(rows));
  });
  const save = saving({ name: `${task.name} layers`, picture: () => mixPicture(task), table });
  const hint = element("p", { class: "hint" }, t("mixes-hint"));
  return element("section", {}, element("h2", {}, t("mixes")), hint, mixes, save);
}

function mixTitle({ embedders }, { embedder, place, gamma }) {
  return `${embedders[embedder]}, ${t(`mix-${place}`)}: γ = ${number(gamma, 2)}`;
}

function mixPicture(task) {
  const [width, left, row] = [560, 110, 30];
  let top = 0;
  const shapes = task.mixes.flatMap((mix) => {
    const rows = mix.weights.map((weight, layer) => {
      const y = top + (layer + 1) * row;
      const long = Math.max(1, Math.abs(weight) * (width - left - 60));
      return [
        lettering(t("layer-number", { number: layer }), left - 12, y + 15, { "text-anchor": "end" }),
        svg("rect", { x: left, y: y + 3, width: long, height: 16, rx: 2, fill: "#4f9c95" }),
        lettering(number(weight, 2), left + long + 8, y + 15),
      ];
    });
    const head = lettering(mixTitle(task, mix), 12, top + 18, { "font-weight": 600 });
    top += (mix.weights.length + 1) * row + 12;
    return [head, ...rows];
  });
  return canvasFor(width, top, shapes);
}
