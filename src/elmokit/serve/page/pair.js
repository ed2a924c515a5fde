// Two sentences: the cosine of each word of one with each of the other, layer by layer.

import { shade } from "./colors.js";
import { bars, examples, labelled, layerSlider, modelChoice } from "./controls.js";
import { afterPause, answersInto, element, replaceContent, svg } from "./dom.js";
import { canvasFor, lettering, saving, widthOf } from "./export.js";
import { layerLabel, layersOf, modelFor } from "./models.js";
import { language, number, t } from "./texts.js";

const ENGLISH = [
  ["bank ≠ bank", "They sat upon the bank of the river.", "She had put all her money in the bank."],
  ["bank = bank", "They sat upon the bank of the river.", "We walked along the bank of the stream."],
  ["spring ≠ spring", "The flowers come out in the spring.", "The horses drank the cold water of the spring."],
  ["play ≠ play", "He had written a play in five acts.", "The children ran out to play in the garden."],
];
const CHINESE = [
  ["花 ≠ 花", "院子里的花开了。", "他花了三百两银子。"],
  ["花 = 花", "院子里的花开了。", "他折了一枝花插在瓶里。"],
  ["东西 ≠ 东西", "他买了许多东西回来。", "这条路东西两边都是高山。"],
  ["打 ≠ 打", "下雨了，他打着伞去接奶奶。", "他为什么打人？"],
];
const EXAMPLES = { en: [...ENGLISH, CHINESE[0]], zh: [...CHINESE, ENGLISH[0]] };
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export const pairView = {
  name: "pair",
  available: ({ backend }) => backend.can("cosines"),
  create: createPair,
};

function createPair(app) {
  const inputs = { first: element("input", { type: "text" }), second: element("input", { type: "text" }) };
  const typed = () =>
    app.set({ first: inputs.first.value, second: inputs.second.value, cell: null }, { replace: true });
  const changed = afterPause(typed);
  for (const input of Object.values(inputs)) input.addEventListener("input", changed);
  const tries = EXAMPLES[language()].map(([name, first, second]) => {
    return [name, () => app.set({ first, second, cell: null, model: null })];
  });
  const fields = Object.entries(inputs).map(([name, input]) => labelled(t(name), input));
  const options = element("div", { class: "options" });
  const result = element("div", { class: "result" });
  const fill = answersInto(result);
  const intro = element("p", { class: "intro" }, t("pair-intro"));
  const root = element(
    "article",
    {},
    intro,
    element("div", { class: "columns" }, fields),
    examples(tries),
    options,
    result,
  );
  let reader = "";

  function update(state) {
    const isNew = state.first === undefined && state.second === undefined;
    const [, first, second] = isNew ? EXAMPLES[language()][0] : ["", state.first ?? "", state.second ?? ""];
    const model = modelFor(app.info, first + second, state.model);
    const layer = layersOf(model).includes(state.layer) ? state.layer : String(model.layers - 1);
    if (document.activeElement !== inputs.first) inputs.first.value = first;
    if (document.activeElement !== inputs.second) inputs.second.value = second;
    const reading = `${model.name} ${state.model}`;
    if (reading !== reader) replaceContent(options, optionsOf(app, { model, layer, chosen: state.model }));
    reader = reading;
    const answer = app.backend.cosines({ first, second, layers: "all", model: model.name });
    fill(answer, (found) => compared(app, found, { layer, cell: state.cell }));
  }

  return { root, update };
}

function optionsOf(app, { model, layer, chosen }) {
  const slide = (one) => app.set({ layer: one }, { replace: true });
  const read = (name) => app.set({ model: name, cell: null });
  return [
    layerSlider({ model, layer, onChange: slide }),
    modelChoice({ info: app.info, model, chosen, onChange: read }),
  ];
}

function compared(app, found, { layer, cell }) {
  if (!found.first.length || !found.second.length) return element("p", { class: "hint" }, t("no-words"));
  const [row, column] = cellOf(cell, found) ?? sameWord(found) ?? [];
  const save = saving({ name: "cosines", picture: () => matrixPicture(found, layer), table: () => cosineTable(found) });
  const beside = element(
    "div",
    { class: "compared" },
    matrix(app, found, { layer, row, column }),
    byLayer(found, row, column),
  );
  return [beside, save];
}

function cellOf(cell, { first, second }) {
  const [row, column] = (cell ?? "").split(".").map(Number);
  return cell && first[row] && second[column] ? [row, column] : null;
}

/** The longest word that both have, the first of several; or none. */
function sameWord({ first, second }) {
  const shared = first.flatMap(({ text }, row) => {
    const column = second.findIndex((other) => other.text === text && /\p{L}/u.test(text));
    return column < 0 ? [] : [{ row, column, length: text.length }];
  });
  const [best] = shared.sort((one, other) => other.length - one.length);
  return best && [best.row, best.column];
}

function matrix(app, found, { layer, row = 0, column = 0 }) {
  const choose = (one, two) => app.set({ cell: `${one}.${two}` }, { replace: true });
  const head = element(
    "tr",
    {},
    element("td", {}),
    found.second.map(({ text }) => element("th", { scope: "col" }, text)),
  );
  const rows = found.first.map(({ text }, one) => {
    const cells = found.second.map((other, two) => {
      const chosen = one === row && two === column;
      const pair = { words: [text, other.text], value: found.cosines[layer][one][two], chosen };
      return cosineCell(pair, () => choose(one, two));
    });
    return element("tr", {}, element("th", { scope: "row" }, text), cells);
  });
  const keydown = (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const [one, two] = [row + step[0], column + step[1]];
    if (!found.first[one] || !found.second[two]) return;
    event.currentTarget.rows[one + 1].cells[two + 1].firstChild.focus();
    choose(one, two);
  };
  const caption = element("caption", {}, t("matrix", { layer: layerLabel(layer) }));
  const table = element(
    "table",
    { class: "matrix", on: { keydown } },
    caption,
    element("thead", {}, head),
    element("tbody", {}, rows),
  );
  return element("div", { class: "scroll" }, table);
}

function cosineCell({ words: [first, second], value, chosen }, choose) {
  const options = {
    type: "button",
    class: "cell",
    tabindex: chosen ? 0 : -1, // arrow keys go to the others
    "aria-label": `${first} / ${second}: ${number(value, 2)}`,
    "aria-pressed": String(chosen),
    on: { click: choose },
  };
  const button = element("button", options, number(value, 2));
  return element("td", { class: first === second && "same", style: { "--heat": Math.max(0, value) } }, button);
}

function byLayer(found, row, column) {
  if (row === undefined) return element("p", { class: "hint" }, t("choose-cell"));
  const rows = Object.entries(found.cosines).map(([layer, cosines]) => {
    const value = cosines[row][column];
    return { word: layerLabel(layer), share: value, text: number(value, 2) };
  });
  const title = element("h2", {}, `${found.first[row].text} / ${found.second[column].text}`);
  return element("div", { class: "list by-layer" }, title, element("p", { class: "hint" }, t("by-layer")), bars(rows));
}

function cosineTable({ first, second, cosines }) {
  const layers = Object.keys(cosines);
  const rows = first.flatMap((one, row) =>
    second.map((two, column) => [
      one.text,
      row,
      two.text,
      column,
      ...layers.map((layer) => cosines[layer][row][column]),
    ]),
  );
  return [
    ["first", "first_position", "second", "second_position", ...layers.map((layer) => `layer_${layer}`)],
    ...rows,
  ];
}

function matrixPicture({ first, second, cosines }, layer) {
  const [wide, high, top] = [Math.max(52, ...second.map(({ text }) => widthOf(text) + 12)), 32, 40];
  const left = Math.max(...first.map(({ text }) => widthOf(text))) + 24;
  const middle = { "text-anchor": "middle" };
  const heads = second.map(({ text }, two) => lettering(text, left + (two + 0.5) * wide, top - 12, middle));
  const rows = first.flatMap(({ text }, one) => [
    lettering(text, 12, top + one * high + 21),
    ...cosines[layer][one].flatMap((value, two) => [
      svg("rect", {
        x: left + two * wide + 1,
        y: top + one * high + 1,
        width: wide - 2,
        height: high - 2,
        rx: 3,
        fill: shade("#6db7b0", value),
      }),
      lettering(number(value, 2), left + (two + 0.5) * wide, top + one * high + 21, { ...middle, "font-size": 12 }),
    ]),
  ]);
  return canvasFor(left + second.length * wide + 12, top + first.length * high + 12, heads, rows);
}
