// One word of a sentence: what could stand in its place, where the corpus has it alike, its nearest words.

import { bars, layerSlider } from "./controls.js";
import { chosenCorpus, corporaOf, corpusChoice } from "./corpora.js";
import { answersInto, element } from "./dom.js";
import { saving } from "./export.js";
import { layerLabel, layerNumber, wordAt } from "./models.js";
import { hashOf } from "./state.js";
import { number, percent, t } from "./texts.js";

const MOST = 10;
const VIEWS = [
  ["fits", "fits"],
  ["means-the-same", "same"],
]; // as the server names them, and our texts

/** Fills `panel` with what is known of the word at a position; gives the function that does so. */
export function chosenWord(app, panel) {
  let shown = "";
  let showNeighbors = () => {};
  return async ({ text, model, at, words, layer, corpus: name }) => {
    const found = await words.catch(() => ({ words: [] }));
    const position = wordAt(found.words, at);
    const corpus = app.backend.can("neighbors") ? chosenCorpus(corporaOf(app, model), name) : undefined;
    const key = JSON.stringify([text, model.name, position, corpus?.name, corpus?.state]);
    if (key !== shown) {
      const place = { text, model, position, word: found.words[position], corpus };
      const near = place.word && corpus?.state === "ready" ? neighbors(app, place, layer) : null;
      const sections = place.word ? [canSubstitute(app, model) && substitutes(app, place), near?.root] : [];
      panel.replaceChildren(...sections.filter(Boolean));
      showNeighbors = near?.show ?? (() => {});
    }
    shown = key;
    showNeighbors(layer);
  };
}

function canSubstitute({ backend }, model) {
  return backend.can("substitutes") && model.predicts !== false;
}

function substitutes({ backend, set }, { text, model, position, word }) {
  const pick = (other) => set({ text: replaced(text, word, other), at: word.start });
  const answers = VIEWS.map(([view]) => backend.substitutes({ text, position, k: MOST, view, model: model.name }));
  const lists = VIEWS.map(([, name], place) => {
    const region = element("div", {});
    answersInto(region)(answers[place], (found) => candidates(found, pick));
    return element("div", { class: "list" }, heading(t(name), t(`${name}-how`)), region);
  });
  const table = async () => [["view", "word", "probability"], ...(await Promise.all(answers)).flatMap(substituteRows)];
  const columns = element("div", { class: "columns" }, lists);
  return element("section", {}, element("h2", {}, t("could-stand")), columns, saving({ name: "substitutes", table }));
}

function substituteRows({ view, candidates: found }) {
  return found.map(({ word, probability }) => [view, word, probability]);
}

function heading(title, how) {
  return element("div", {}, element("h3", {}, title), element("p", { class: "hint" }, how));
}

function candidates({ word, rank, probability, candidates: found }, pick) {
  const most = Math.max(...found.map((one) => one.probability));
  const rows = found.map((one) => ({ word: one.word, share: one.probability / most, text: percent(one.probability) }));
  const own = rank && t("own-rank", { word, rank: number(rank), share: percent(probability) });
  return [
    bars(rows, { onPick: pick, pickLabel: (other) => t("put-in", { word: other }) }),
    own && element("p", { class: "hint own" }, own),
  ];
}

/** The text with another word in a word's place. */
function replaced(text, { start, stop }, other) {
  const characters = Array.from(text);
  return [...characters.slice(0, start), other, ...characters.slice(stop)].join("");
}

/** The section, and what fills it for a layer. */
function neighbors(app, place, layer) {
  const { model, corpus, word } = place;
  const region = element("div", { class: "columns wide-first" });
  const fill = answersInto(region);
  const slide = (one) => app.set({ layer: one }, { replace: true });
  const options = element("div", { class: "options" }, layerSlider({ model, layer, onChange: slide }));
  const which = { corpora: corporaOf(app, model), corpus, onChange: (name) => app.set({ corpus: name }) };
  options.append(...[corpusChoice(which)].filter(Boolean));
  const link = { href: hashOf({ view: "word", word: word.word, corpus: corpus.name }) };
  const more = app.backend.can("concordance") && element("a", link, t("see-lines", { word: word.word }));
  const title = element("h2", {}, t("like-this", { corpus: corpus.name }));
  let answer = null;
  const save = saving({ name: "neighbors", table: async () => neighborRows(await answer) });
  return {
    root: element("section", {}, title, options, region, element("div", { class: "ends" }, save, more)),
    show: (now) => {
      answer = nearest(app, place, now);
      fill(answer, (found) => [occurrences(found, place, now), ...nearWords(found)]);
    },
  };
}

/** What is near; for a word that the corpus lacks, other words in like places, which the indexed layer alone finds. */
async function nearest({ backend }, { text, position, corpus }, layer) {
  const question = { query: text, position, corpus: corpus.name, k: MOST };
  try {
    return await backend.neighbors({ ...question, layers: layerNumber(layer) });
  } catch (error) {
    if (error.status !== 404) throw error;
    return { ...(await backend.neighbors({ ...question, any_word: true })), lacking: true };
  }
}

function neighborRows({ neighbors: near, words, static: still }) {
  const rows = (kind, list) => (list ?? []).map(({ word, cosine }) => [kind, word, cosine]);
  const found = near.map(({ occurrence, cosine, left, right }) => {
    return ["occurrence", occurrence.token, cosine, left, right, occurrence.document];
  });
  const columns = ["kind", "word", "cosine", "left", "right", "document"];
  return [columns, ...found, ...rows("word", words), ...rows("static", still)];
}

function occurrences({ neighbors: near, lacking, layer }, { text, model, word: { word } }, asked) {
  const items = near.map(({ occurrence, left, right, cosine }) => {
    const pair = { view: "pair", first: text, second: occurrence.sentence, layer: asked, model: model.name };
    const value = element("a", { href: hashOf(pair), title: t("compare") }, number(cosine, 2));
    return element("li", {}, value, element("span", {}, left, element("mark", {}, occurrence.token), right));
  });
  const note = lacking && element("p", { class: "hint" }, t("other-words", { word, layer: layerLabel(String(layer)) }));
  return element(
    "div",
    { class: "list" },
    heading(t("occurrences"), t("occurrences-how")),
    note,
    element("ol", { class: "sentences" }, items),
  );
}

/** Two lists, or one where there are no static vectors. */
function nearWords({ words, static: still }) {
  const rows = (list) => list.map(({ word, cosine }) => ({ word, share: cosine, text: number(cosine, 2) }));
  const list = (title, how, found) => element("div", { class: "list" }, heading(title, how), bars(rows(found)));
  const lists = [list(t("nearest-words"), t("in-context"), words)];
  if (still?.length) lists.push(list(t("static-words"), t("by-static"), still));
  else if (still) lists.push(element("div", { class: "list" }, heading(t("static-words"), t("static-lacks"))));
  return lists;
}
