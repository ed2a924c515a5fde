// The corpora: which one is meant, and how far those are whose indexes are still being built.

import { select } from "./controls.js";
import { element } from "./dom.js";
import { number, t } from "./texts.js";

const SECOND = 1000;

/** Those that a model reads, or all. */
export function corporaOf(app, model) {
  return app.corpora.filter((corpus) => !model || corpus.model === model.name);
}

/** The corpus of that name, or the first of these. */
export function chosenCorpus(corpora, name) {
  return corpora.find((corpus) => corpus.name === name) ?? corpora[0];
}

/** Which corpus; nothing where there is one alone. */
export function corpusChoice({ corpora, corpus, onChange }) {
  if (corpora.length < 2) return null;
  const choices = corpora.map(({ name }) => [name, name]);
  return select({ label: t("corpus"), choices, value: corpus.name, onChange });
}

/** Says in `region` how far indexes are until all are there; `changed` is called when one has become ready. */
export async function followCorpora(app, region, changed) {
  for (;;) {
    region.replaceChildren(...app.corpora.filter((one) => one.state !== "ready").map(progressOf));
    if (!app.corpora.some(isUnderWay)) return;
    await new Promise((resolve) => setTimeout(resolve, SECOND));
    const before = JSON.stringify(app.corpora.map(({ state }) => state));
    app.corpora = await app.backend.corpora().catch(() => app.corpora);
    if (JSON.stringify(app.corpora.map(({ state }) => state)) !== before) changed();
  }
}

function isUnderWay({ state }) {
  return state === "waiting" || state === "building";
}

function progressOf({ name, state, problem, progress: { done, total, unit } }) {
  if (state === "failed") return element("p", { class: "problem" }, t("corpus-failed", { name, problem }));
  if (state === "waiting") return element("p", { class: "building" }, t("waiting", { name }));
  const counted = total ? t("done-of", { done: number(done), total: number(total) }) : number(done);
  const far = done ? t("so-far", { counted, unit: unit === "sentences" ? t("unit-sentences") : unit }) : "";
  const bar = element("progress", { max: total ?? undefined, value: total ? done : undefined, "aria-label": name });
  return element("p", { class: "building" }, t("building", { name, far }), bar);
}
