// A word in a corpus: its lines at once, their senses as soon as they are found.

import { examples, labelled, select } from "./controls.js";
import { chosenCorpus, corpusChoice } from "./corpora.js";
import { answersInto, element, problem, replaceContent } from "./dom.js";
import { readsChinese } from "./models.js";
import { readState } from "./state.js";
import { NO_FILTERS, wordStudy } from "./study.js";
import { language, number, t } from "./texts.js";

const EXAMPLES = { zh: ["花", "打", "东西", "意思", "看"], en: ["bank", "spring", "match", "play", "letter"] };
const REACH = 500; // characters on either side
const FRESH = { ...NO_FILTERS, line: null };

export const wordView = {
  name: "word",
  available: ({ backend, corpora }) => backend.can("concordance") && corpora.length > 0,
  create: createWord,
};

function createWord(app) {
  const input = element("input", { type: "search", autocapitalize: "off", spellcheck: "false" });
  const submit = (event) => {
    event.preventDefault();
    app.set({ ...FRESH, word: input.value.trim() });
  };
  const tries = element("div", {});
  const corpora = element("div", {});
  const form = element(
    "form",
    { class: "options", on: { submit } },
    labelled(t("your-word"), input),
    element("button", {}, t("look")),
    corpora,
  );
  const how = element("details", { class: "how" });
  const note = element("div", { role: "status" });
  const result = element("div", { class: "result" });
  const fill = answersInto(result);
  const root = element(
    "article",
    {},
    element("p", { class: "intro" }, t("word-intro")),
    form,
    tries,
    how,
    note,
    result,
  );
  let asked = "";
  let study = null;

  function update(state) {
    const corpus = chosenCorpus(inOwnLanguage(app), state.corpus);
    const words = EXAMPLES[languageOf(app, corpus)];
    const word = state.word ?? words[0];
    if (document.activeElement !== input) input.value = word;
    replaceContent(tries, examples(words.map((one) => [one, () => app.set({ ...FRESH, word: one })])));
    const choose = (name) => app.set({ ...FRESH, corpus: name, word: null });
    replaceContent(corpora, corpusChoice({ corpora: app.corpora, corpus, onChange: choose }));
    const question = questionOf(state, word, corpus);
    const key = JSON.stringify([question, corpus.state]);
    if (key === asked) {
      study?.update(state);
      return;
    }
    asked = key;
    study = null;
    showHow(app, how, question);
    if (corpus.state === "ready") ask(question, corpus, key);
    else result.replaceChildren(element("p", { class: "hint" }, t("not-yet")));
  }

  async function ask(question, corpus, key) {
    const show = (found) => {
      study = wordStudy(app, { ...found, model: corpus.model });
      return study.root;
    };
    const ready = () => key === asked && study?.update(readState());
    note.replaceChildren(element("p", { class: "hint pending" }, t("finding-senses")));
    await fill(app.backend.concordance({ ...question, senses: false }), show);
    ready();
    const grouped = app.backend.concordance({ ...question, senses: true });
    const trouble = await grouped.then(() => null).catch((error) => error);
    if (key !== asked) return;
    note.replaceChildren(...(trouble && study ? [problem(trouble)] : []));
    if (trouble) return;
    await fill(grouped, show);
    ready();
  }

  return { root, update };
}

/** The corpora, those in the reader's language first. */
function inOwnLanguage(app) {
  const isOwn = (corpus) => languageOf(app, corpus) === language();
  return [...app.corpora.filter(isOwn), ...app.corpora.filter((corpus) => !isOwn(corpus))];
}

function languageOf({ info }, corpus) {
  return readsChinese(info.models.find(({ name }) => name === corpus.model)) ? "zh" : "en";
}

function questionOf(state, word, corpus) {
  const question = {
    word,
    corpus: corpus.name,
    reach: REACH,
    by: state.by ?? "around",
    limit: Number(state.limit ?? 1000),
  };
  return state.count ? { ...question, count: Number(state.count) } : question;
}

/** How senses are found, for those who want it otherwise. */
function showHow(app, details, { by, count, limit }) {
  const set = (name) => (value) => app.set({ ...FRESH, [name]: value || null });
  const counts = [["", t("by-itself")], ...[1, 2, 3, 4, 5, 6, 7, 8].map((one) => [String(one), String(one)])];
  replaceContent(
    details,
    element("summary", {}, t("how")),
    element(
      "div",
      { class: "options" },
      select({
        label: t("by"),
        choices: ["around", "word", "substitutes"].map((one) => [one, t(`by-${one}`)]),
        value: by,
        onChange: set("by"),
      }),
      select({ label: t("sense-count"), choices: counts, value: String(count ?? ""), onChange: set("count") }),
      select({
        label: t("limit"),
        choices: [1000, 10_000].map((one) => [String(one), number(one)]),
        value: String(limit),
        onChange: set("limit"),
      }),
    ),
  );
}
