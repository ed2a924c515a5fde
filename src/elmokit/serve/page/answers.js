// What trained tasks are asked with, and what they answer, task by task.

import { element } from "./dom.js";
import { labelledSpan, joined, spanned, spansOf } from "./spans.js";
import { t } from "./texts.js";

const PARTS_OF_SPEECH = ["NOUN", "VERB", "ADJ", "ADV"];

// Each task: its `fields`, [name, rows of the field or a list of choices]; `input`, what is sent of their values; `show`,
// the elements of an answer, given the number of a label for its colour.
const TEXT = { fields: [["text", 2]], input: ({ text }) => text };
export const TASKS = {
  tagging: { ...TEXT, show: ({ tokens, tags }, color) => spanned(tokens, spansOf(tags), color) },
  probe: { ...TEXT, show: probed },
  classify: { ...TEXT, show: ({ label }, color) => verdict(label, color) },
  pairs: {
    fields: [
      ["first", 1],
      ["second", 1],
    ],
    input: (values) => values,
    show: ({ label }, color) => verdict(label, color),
  },
  span_qa: {
    fields: [
      ["question", 1],
      ["context", 5],
    ],
    input: (values) => values,
    show: answered,
  },
  srl: { ...TEXT, show: roles },
  coref: { fields: [["text", 6]], input: ({ text }) => text, show: clusters },
  wsd: {
    fields: [
      ["bracketed", 2],
      ["lemma", 1],
      ["pos", PARTS_OF_SPEECH],
    ],
    input: bracketed,
    show: senses,
  },
};

function verdict(label, color) {
  return element("p", { class: "spanned" }, labelledSpan(label, "", color(label)));
}

function probed({ tokens, tags }, color) {
  return Object.entries(tags).flatMap(([layer, own]) => [
    element("h3", {}, layer),
    spanned(tokens, spansOf(own), color),
  ]);
}

function answered({ context, answers }) {
  const characters = Array.from(context);
  const [answer] = answers;
  if (!answer) return element("p", {}, t("no-answer"));
  const end = answer.start + Array.from(answer.text).length;
  const parts = [
    characters.slice(0, answer.start).join(""),
    element("mark", {}, answer.text),
    characters.slice(end).join(""),
  ];
  return [element("p", { class: "verdict" }, answer.text), element("p", { class: "whole" }, parts)];
}

function roles({ tokens, frames }, color) {
  if (!frames.length) return element("p", {}, t("no-predicates"));
  return frames.flatMap(({ predicate, spans }) => [
    element("h3", {}, tokens[predicate]),
    spanned(tokens, spans, color),
  ]);
}

/** The document with its mentions, nested ones within others, coloured by cluster. */
function clusters({ sentences, clusters: found }) {
  const tokens = sentences.flat();
  const mentions = found.flatMap((cluster, number) => cluster.map(({ start, end }) => ({ start, end, number })));
  mentions.sort((one, other) => one.start - other.start || other.end - one.end);
  return element("p", { class: "spanned" }, nested(tokens, mentions, 0, tokens.length));
}

function nested(tokens, mentions, start, end) {
  const parts = [];
  let place = start;
  while (mentions.length && mentions[0].start < end) {
    const mention = mentions.shift();
    if (mention.start < place || mention.end > end) continue; // it crosses another
    parts.push(joined(tokens.slice(place, mention.start)), " ");
    parts.push(
      labelledSpan(nested(tokens, mentions, mention.start, mention.end), String(mention.number + 1), mention.number),
      " ",
    );
    place = mention.end;
  }
  return [...parts, joined(tokens.slice(place, end))];
}

/** A sentence whose word in brackets is asked about. */
function bracketed({ bracketed: text, lemma, pos }) {
  const tokens = text.match(/[[\]]|[\p{L}\p{N}'’-]+|[^\s\p{L}\p{N}]/gu) ?? [];
  const start = tokens.indexOf("[");
  const end = tokens.indexOf("]") - 1;
  if (start < 0 || end <= start) throw new Error(t("no-brackets"));
  const bare = tokens.filter((token) => !/[[\]]/.test(token));
  const word = bare.slice(start, end).join("_").toLowerCase();
  return { tokens: bare, instances: [{ id: "", lemma: lemma.trim() || word, pos, start, end }] };
}

function senses({ tokens, instances }, color) {
  return spanned(
    tokens,
    instances.map(({ start, end, keys }) => ({ start, end, label: keys.join(", ") || "–" })),
    color,
  );
}
