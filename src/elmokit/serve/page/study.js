// A word's occurrences, once they are there: points, senses, documents and lines, each filtering the others.

import { bars, choice, labelled } from "./controls.js";
import { colorOf } from "./colors.js";
import { afterPause, element, replaceContent } from "./dom.js";
import { saving } from "./export.js";
import { kwicTable } from "./kwic.js";
import { SORTS, matching, nounOf, sorted } from "./lines.js";
import { scatter, scatterPicture } from "./scatter.js";
import { hashOf, readState } from "./state.js";
import { language, number, percent, t } from "./texts.js";

const DOCUMENTS = 12; // shown at most

/** What a state is changed by to show all lines. */
export const NO_FILTERS = { sense: null, document: null, containing: null, box: null };

const COLUMNS = ["document", "sentence", "position", "sense", "left", "word", "right", "x", "y"];

/** The element (`root`) and what shows another state in it (`update`). */
export function wordStudy(app, found) {
  const { lines } = found;
  const grouped = found.senses.length > 0;
  const sources = Object.keys(found.documents).length > 1;
  const sorts = SORTS.filter((one) => (one !== "sense" || grouped) && (one !== "source" || sources));
  const mark = (line) => app.set({ line }, { replace: true });
  const table = kwicTable(lines, { onMark: mark, sources });
  const points = grouped ? scatter(lines, { onPick: mark, onFrame: drawFrame }) : null;
  const count = element("p", { class: "count", role: "status" });
  const detail = element("div", { class: "detail", "aria-live": "polite" });
  const senses = grouped ? senseList(app, found) : null;
  const documents = documentList(app, found);
  const filter = filterField(app);
  const sorting = element("div", { class: "options" });
  const clear = element(
    "button",
    { type: "button", class: "chip", on: { click: () => app.set(NO_FILTERS) } },
    t("clear"),
  );
  const orders = new Map();
  let mask = new Uint8Array(lines.length).fill(1);
  let state = {};

  function drawFrame(box, { last }) {
    if (last) app.set({ box: box && box.map((one) => one.toFixed(4)).join(",") }, { replace: true });
    else filtered({ ...state, box: box.join(",") });
  }

  /** Lines and points of a state: what happens at every step of a frame that is drawn. */
  function filtered(now) {
    const start = performance.now();
    const box = grouped ? boxOf(now) : null;
    mask = matching(lines, { ...now, senses: grouped ? sensesOf(now) : null, box });
    const marked = lines[now.line] ? Number(now.line) : null;
    const seen = seenLines(now.sort);
    table.show(seen, marked);
    points?.show({ mask, marked, box });
    count.textContent = countText(found, seen.length);
    performance.measure("elmokit filter", { start });
  }

  function seenLines(sort = "text") {
    if (!orders.has(sort)) orders.set(sort, sorted(lines, sort, language()));
    return orders.get(sort).filter((line) => mask[line]);
  }

  function update(now) {
    state = now;
    replaceContent(sorting, sortChoice(app, now.sort ?? "text", sorts));
    filter.show(now.containing);
    senses?.show(sensesOf(now));
    documents?.show(now.document);
    clear.hidden = !Object.keys(NO_FILTERS).some((name) => now[name]);
    filtered(now);
    detail.replaceChildren(
      ...(lines[now.line] ? lineDetail(found, lines[now.line]) : [element("p", { class: "hint" }, t("choose-line"))]),
    );
  }

  const save = saving({
    name: found.word,
    picture: grouped && (() => scatterPicture(found, mask)),
    table: () => [COLUMNS, ...seenLines(state.sort).map((line) => COLUMNS.map((name) => lines[line][name]))],
  });
  const side = element(
    "div",
    { class: "side" },
    points && element("p", { class: "hint" }, t("points-hint")),
    points?.root,
    senses?.root,
    documents?.root,
  );
  const bar = element("div", { class: "bar-of-lines" }, sorting, filter.root);
  const main = element(
    "div",
    { class: "lines" },
    bar,
    element("div", { class: "counted" }, count, clear),
    table.root,
    detail,
    save,
  );
  const root = element("div", { class: "study" }, main, side);
  return { root, update };
}

function sensesOf({ sense }) {
  return new Set((sense ?? "").split(",").filter(Boolean).map(Number));
}

function boxOf({ box }) {
  const numbers = (box ?? "").split(",").map(Number);
  return numbers.length === 4 && numbers.every(Number.isFinite) ? numbers : null;
}

function countText({ lines, count }, seen) {
  const values = { seen: number(seen), lines: number(lines.length), count: number(count) };
  if (seen < lines.length) return t("lines-seen", values);
  return t(lines.length < count ? "lines-drawn" : "lines-all", values);
}

function sortChoice(app, sort, sorts) {
  const choices = sorts.map((one) => [one, t(`sort-${one}`)]);
  return choice({
    label: t("sort"),
    choices,
    value: sort,
    onChange: (one) => app.set({ sort: one }, { replace: true }),
  });
}

function filterField(app) {
  const input = element("input", { type: "search", value: readState().containing });
  input.addEventListener(
    "input",
    afterPause(() => app.set({ containing: input.value || null }, { replace: true }), 150),
  );
  const show = (text = "") => {
    if (document.activeElement !== input) input.value = text;
  };
  return { root: labelled(t("containing"), input), show };
}

/** The senses, or groups that do not stand apart enough to be called so: each can be switched on; none on means all. */
function senseList(app, found) {
  const { senses } = found;
  const noun = nounOf(found);
  const buttons = senses.map(({ count, share, keywords }, index) => {
    const toggle = () => app.set({ sense: toggled(buttons, index) }, { replace: true });
    const title = element("b", {}, t(`${noun}-number`, { number: index + 1 }));
    const swatch = element("i", { style: { background: colorOf(index) }, "aria-hidden": true });
    const size = element("small", {}, `${number(count)} · ${percent(share)}`);
    const words = element("span", { class: "keywords" }, keywords.map(({ word }) => word).join(" · "));
    return element(
      "button",
      { type: "button", class: "sense", "aria-pressed": "false", on: { click: toggle } },
      swatch,
      title,
      size,
      words,
    );
  });
  const show = (chosen) =>
    buttons.forEach((one, index) => one.setAttribute("aria-pressed", String(chosen.has(index + 1))));
  const title = element("h2", {}, t(senses.length > 1 ? `${noun}s` : "one-sense"));
  return { root: element("div", { class: "list" }, title, buttons, senses.length === 1 && undivided(app, found)), show };
}

/** How sure it is that there is one sense, and how to see groups all the same. */
function undivided(app, { confidence, lines }) {
  const divide = () => app.set({ ...NO_FILTERS, count: 2 });
  const button = element("button", { type: "button", class: "chip", on: { click: divide } }, t("divide"));
  const share = confidence !== null && percent(confidence);
  return element(
    "div",
    { class: "undivided" },
    share && element("p", { class: "hint" }, t("undivided", { share })),
    lines.length > 1 && button,
  );
}

function toggled(buttons, index) {
  const on = buttons.map((one) => one.getAttribute("aria-pressed") === "true");
  on[index] = !on[index];
  return on.flatMap((one, place) => (one ? [place + 1] : [])).join(",") || null;
}

/** How often the word stands in each document; nothing where there is one alone. */
function documentList(app, { documents }) {
  const all = Object.entries(documents);
  if (all.length < 2) return null;
  const most = Math.max(...all.map(([, count]) => count));
  const rows = all.slice(0, DOCUMENTS).map(([word, count]) => ({ word, share: count / most, text: number(count) }));
  const pick = (name) => app.set({ document: name === root.dataset.chosen ? null : name }, { replace: true });
  const list = bars(rows, { onPick: pick, pickLabel: (name) => t("only-document", { name }) });
  const more =
    all.length > DOCUMENTS &&
    element("p", { class: "hint" }, t("more-documents", { count: number(all.length - DOCUMENTS) }));
  const root = element("div", { class: "list" }, element("h2", {}, t("documents")), list, more);
  const show = (chosen = "") => {
    root.dataset.chosen = chosen;
    for (const one of list.querySelectorAll("button"))
      one.setAttribute("aria-pressed", String(one.textContent === chosen));
  };
  return { root, show };
}

function lineDetail(found, { left, word, right, document, sentence, sense }) {
  const text = `${left}${word}${right}`;
  const where = [
    document,
    t("sentence-number", { number: number(sentence + 1) }),
    sense && t(`${nounOf(found)}-number`, { number: sense }),
  ];
  const link = element(
    "a",
    { href: hashOf({ view: "sentence", text, at: Array.from(left).length, model: found.model }) },
    t("see-sentence"),
  );
  return [
    element("p", { class: "whole" }, left, element("mark", {}, word), right),
    element("p", { class: "hint" }, where.filter(Boolean).join(" · "), " · ", link),
  ];
}
