// A model's card: as much of Markdown as cards use, made into elements, never into HTML that is parsed.

import { element } from "./dom.js";

const INLINE = /`([^`]+)`|\[([^\]]+)\]\(([^\s)]+)\)|\*\*([^*]+)\*\*|\*([^*]+)\*/g;

// Each kind of block: whether a line begins one, whether a later line belongs to it, and the element of its lines.
const BLOCKS = [
  { begins: /^#{1,6} /, goesOn: /(?!)/, show: heading },
  {
    begins: /^```/,
    goesOn: (line, lines) => lines.length === 1 || !/^```/.test(lines.at(-1)),
    show: (lines) => code(lines.slice(1).filter((line) => !/^```/.test(line))),
  },
  {
    begins: /^( {4}|\t)/,
    goesOn: /^( {4}|\t|\s*$)/,
    show: (lines) => code(lines.map((line) => line.replace(/^( {4}|\t)/, ""))),
  },
  { begins: /^\|/, goesOn: /^\|/, show: table },
  { begins: /^[-*] /, goesOn: /^([-*] |\s+\S)/, show: list },
  { begins: /\S/, goesOn: /^\S/, show: (lines) => element("p", {}, inline(lines.join(" "))) },
];

/** The elements of a text in Markdown. */
export function markdown(text) {
  const lines = text.replaceAll("\r", "").split("\n");
  const blocks = [];
  while (lines.length) {
    const kind = BLOCKS.find(({ begins }) => begins.test(lines[0]));
    const own = [lines.shift()];
    while (kind && lines.length && follows(kind, lines[0], own)) own.push(lines.shift());
    if (kind) blocks.push(kind.show(own));
  }
  return blocks;
}

function follows({ goesOn, begins }, line, own) {
  if (typeof goesOn === "function") return goesOn(line, own);
  const another = BLOCKS.find((kind) => kind.begins.test(line));
  return goesOn.test(line) && (!another || another.begins === begins || !line.trim());
}

function heading([line]) {
  const level = line.match(/^#+/)[0].length;
  return element(`h${Math.min(6, level + 1)}`, {}, inline(line.slice(level + 1)));
}

function code(lines) {
  return element("pre", { tabindex: 0 }, element("code", {}, lines.join("\n").trimEnd()));
}

function list(lines) {
  const items = lines
    .join("\n")
    .split(/^[-*] /m)
    .slice(1);
  return element(
    "ul",
    {},
    items.map((item) => element("li", {}, inline(item.replace(/\s+/g, " ")))),
  );
}

function table([head, , ...rows]) {
  const cells = (line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("\\|", "|"));
  const row = (kind, line) =>
    element(
      "tr",
      {},
      cells(line).map((cell) => element(cell ? kind : "td", {}, inline(cell))),
    );
  const named = cells(head).some(Boolean);
  const body = element(
    "tbody",
    {},
    rows.map((line) => row("td", line)),
  );
  return element(
    "div",
    { class: "scroll", tabindex: 0 },
    element("table", {}, named && element("thead", {}, row("th", head)), body),
  );
}

function inline(text) {
  const parts = [];
  let end = 0;
  for (const { 0: all, index, 1: typed, 2: linked, 3: address, 4: strong, 5: stressed } of text.matchAll(INLINE)) {
    parts.push(text.slice(end, index));
    if (typed) parts.push(element("code", {}, typed));
    else if (linked && !/^https?:\/\//.test(address)) parts.push(linked); // to somewhere beside the card, which is not here
    else if (linked) parts.push(element("a", { href: address, rel: "noreferrer" }, linked));
    else parts.push(element(strong ? "strong" : "em", {}, strong ?? stressed));
    end = index + all.length;
  }
  return [...parts, text.slice(end)];
}
