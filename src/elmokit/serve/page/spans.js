// Tokens with what was found in them: coloured spans, each with its label.

import { colorOf } from "./colors.js";
import { element } from "./dom.js";

/** Spans {start, end, label} of tokens, as elements; `color` gives a label's number. */
export function spanned(tokens, spans, color) {
  const parts = [];
  let place = 0;
  for (const { start, end, label } of spans) {
    parts.push(
      joined(tokens.slice(place, start)),
      " ",
      labelledSpan(joined(tokens.slice(start, end)), label, color(label)),
      " ",
    );
    place = end;
  }
  return element("p", { class: "spanned" }, parts, joined(tokens.slice(place)));
}

/** A piece of text with its label below it. */
export function labelledSpan(content, label, number) {
  return element(
    "span",
    { class: "span", style: { "--color": colorOf(number) } },
    content,
    element("small", {}, label),
  );
}

/** Tokens as a text: with spaces, but none where Chinese needs none. */
export function joined(tokens) {
  return tokens.join(" ").replace(/(?<=[\p{Script=Han}，。！？；：、“”]) | (?=[\p{Script=Han}，。！？；：、“”])/gu, "");
}

/** The spans that tags stand for: B-PER I-PER O, B-PER E-PER S-LOC O; tags of other kinds stand for a token each. */
export function spansOf(tags) {
  const spans = [];
  tags.forEach((tag, place) => {
    const [, prefix, label] = tag.match(/^(?:([BIES])-)?(.+)$/s) ?? [null, undefined, tag];
    const last = spans.at(-1);
    if (tag === "O" || tag === "_") return;
    if ((prefix === "I" || prefix === "E") && last?.end === place && last.label === label) last.end += 1;
    else spans.push({ start: place, end: place + 1, label });
  });
  return spans;
}
