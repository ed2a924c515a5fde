// A sentence, each word shaded by its surprisal; a word that is chosen is looked at more closely below.

import { chosenWord } from "./chosen.js";
import { shade } from "./colors.js";
import { choice, examples, labelled, modelChoice } from "./controls.js";
import { afterPause, answersInto, element, replaceContent, svg } from "./dom.js";
import { canvasFor, lettering, saving, widthOf } from "./export.js";
import { modelFor, piecesOf, readBrackets } from "./models.js";
import { language, number, t } from "./texts.js";

const DIRECTIONS = ["forward", "backward", "both"];
const MOST_BITS = 16; // shaded as much as a word can be
const EXAMPLES = {
  en: [
    "He sat on the [bank] of the river and watched the boats.",
    "She put all her money in the [bank].",
    "The flowers come out in the [spring].",
    "The old man drank a cup of [stone].",
  ],
  zh: [
    "春天到了，院子里的[花]开了。",
    "昨天他[花]了五块钱买了一本旧书。",
    "他买了许多[东西]回来。",
    "他喝了一杯[石头]。",
  ],
};

export const sentenceView = {
  name: "sentence",
  available: ({ backend }) => backend.can("surprisal"),
  create: createSentence,
};

function createSentence(app) {
  const input = element("textarea", { rows: 2, spellcheck: "false", autocapitalize: "off" });
  input.addEventListener(
    "input",
    afterPause(() => app.set({ text: input.value, at: null }, { replace: true })),
  );
  const shownExamples = EXAMPLES[language()].map(readBrackets);
  const tries = shownExamples.map(({ text, at }) => [text, () => app.set({ text, at, model: null })]);
  const options = element("div", { class: "options" });
  const words = element("div", { class: "result" });
  const chosen = element("div", { class: "chosen" });
  const fillWords = answersInto(words);
  const showChosen = chosenWord(app, chosen);
  const intro = element("p", { class: "intro" }, t("sentence-intro"));
  const field = labelled(t("your-sentence"), input);
  const root = element("article", {}, intro, field, examples(tries), options, words, chosen);
  let asked = "";

  function update(state) {
    const text = state.text ?? shownExamples[0].text;
    const at = state.text === undefined ? shownExamples[0].at : Number(state.at ?? -1);
    const model = modelFor(app.info, text, state.model);
    const direction = DIRECTIONS.includes(state.direction) ? state.direction : "both";
    if (document.activeElement !== input) input.value = text;
    replaceContent(options, optionsOf(app, { model, direction, chosen: state.model }));
    const question = JSON.stringify([text, model.name, direction]);
    const answer = ask(app, text, model);
    if (question !== asked) fillWords(answer, (found) => shaded(app, { text, model, direction, found, at }));
    else mark(words, at);
    asked = question;
    showChosen({ text, model, at, layer: state.layer ?? "average", corpus: state.corpus, words: answer });
  }

  return { root, update };
}

/** The words of a text with their surprisal; without, by a model that cannot predict. */
async function ask({ backend }, text, model) {
  if (model.predicts !== false) return backend.surprisal(text, model.name);
  const { first } = await backend.cosines({ first: text, second: "", layers: 0, model: model.name });
  return { words: first.map(({ text: word, start, stop }) => ({ word, start, stop })) };
}

function optionsOf(app, { model, direction, chosen }) {
  const choices = DIRECTIONS.map((one) => [one, t(one)]);
  const turn = (one) => app.set({ direction: one });
  const read = (name) => app.set({ model: name, at: null });
  const which = choice({ label: t("direction"), choices, value: direction, onChange: turn });
  return [model.predicts !== false && which, modelChoice({ info: app.info, model, chosen, onChange: read })];
}

function shaded(app, { text, model, direction, found, at }) {
  if (!found.words.length) return element("p", { class: "hint" }, t("no-words"));
  const choose = (word) => app.set({ text, at: word.start });
  const pieces = piecesOf(text, found.words);
  const shown = pieces.map((piece) =>
    typeof piece === "string" ? piece : shadedWord(piece, { direction, at, model, choose }),
  );
  const predicts = found.words.some((word) => word[direction] !== undefined);
  const picture = () => sentencePicture(pieces, direction);
  return [
    element("p", { class: "words", lang: model.name }, shown),
    predicts ? summary(found.words, direction) : element("p", { class: "hint" }, t("no-softmax")),
    predicts && saving({ name: "surprisal", picture, table: () => surprisalTable(found.words) }),
  ];
}

function shadedWord(word, { direction, at, model, choose }) {
  const bits = word[direction] ?? null;
  const options = {
    type: "button",
    class: bits === null ? "word bare" : "word",
    "data-start": word.start,
    "data-stop": word.stop,
    "aria-pressed": String(word.start <= at && at < word.stop),
    style: { "--heat": Math.min(1, (bits ?? 0) / MOST_BITS) },
    on: { click: () => choose(word), pointerenter: keepInside, focus: keepInside },
  };
  const below = element("small", {}, bits === null ? "–" : number(bits, 1));
  return element("button", options, word.word, below, explained(word, model));
}

/** What is seen when a word is pointed at: its bits and its rank, in each direction. */
function explained(word, model) {
  const rows = DIRECTIONS.filter((direction) => typeof word[direction] === "number").map((direction) => {
    const rank = word.ranks?.[direction];
    const size = model.vocabulary && number(model.vocabulary);
    const ranked = rank && t(size ? "rank-of" : "rank", { rank: number(rank), size });
    return element(
      "span",
      {},
      `${t(direction)}: ${t("bits", { bits: number(word[direction], 1) })}`,
      ranked && `, ${ranked}`,
    );
  });
  const unknown = word.known === false && element("span", {}, t("unknown"));
  return rows.length || unknown ? element("span", { class: "tip" }, rows, unknown) : null;
}

/** Move what a word says of itself to the left, as far as the window's edge wants it. */
function keepInside({ currentTarget: word }) {
  const tip = word.querySelector(".tip");
  const over = word.getBoundingClientRect().left + (tip?.offsetWidth ?? 0) + 16 - document.documentElement.clientWidth;
  tip?.style.setProperty("left", `${-Math.max(0, over)}px`);
}

function summary(words, direction) {
  const bits = words.map((word) => word[direction]).filter((one) => typeof one === "number");
  const mean = bits.reduce((sum, one) => sum + one, 0) / (bits.length || 1);
  const scale = element(
    "span",
    { class: "scale" },
    t("expected"),
    element("i", { "aria-hidden": true }),
    t("surprising"),
  );
  return element("p", { class: "hint" }, scale, t("mean-bits", { bits: number(mean, 1), words: number(2 ** mean) }));
}

function mark(words, at) {
  for (const word of words.querySelectorAll(".word")) {
    word.setAttribute("aria-pressed", String(word.dataset.start <= at && at < word.dataset.stop));
  }
}

function surprisalTable(words) {
  const ranks = DIRECTIONS.map((direction) => `rank_${direction}`);
  const rows = words.map((word) => [
    ...[word.word, word.start, word.stop, word.known],
    ...DIRECTIONS.map((direction) => word[direction]),
    ...DIRECTIONS.map((direction) => word.ranks?.[direction]),
  ]);
  return [["word", "start", "stop", "known", ...DIRECTIONS, ...ranks], ...rows];
}

function sentencePicture(pieces, direction) {
  const [width, line, size] = [900, 64, 20];
  let [left, top, right] = [12, 12, 0];
  const shapes = pieces.flatMap((piece) => {
    if (typeof piece === "string") {
      left += widthOf(piece, size);
      return [];
    }
    const wide = widthOf(piece.word, size) + 8;
    if (left + wide > width - 12) [left, top] = [12, top + line];
    const [x, middle, bits] = [left, left + wide / 2, piece[direction]];
    left += wide;
    right = Math.max(right, left);
    return [
      svg("rect", { x, y: top, width: wide, height: 30, rx: 4, fill: shade("#f2a65a", (bits ?? 0) / MOST_BITS) }),
      lettering(piece.word, middle, top + 22, { "font-size": size, "text-anchor": "middle" }),
      lettering(typeof bits === "number" ? number(bits, 1) : "–", middle, top + 46, {
        "font-size": 11,
        "text-anchor": "middle",
      }),
    ];
  });
  return canvasFor(right + 12, top + line, shapes);
}
