// Which model reads a text, what its layers are called, and where a text's words stand.

import { t } from "./texts.js";

const CHINESE = /^(jieba|characters)/;

/** Whether a model reads Chinese, by its tokenizer. */
export function readsChinese(model) {
  return CHINESE.test(model?.tokenizer ?? "");
}

/** The model of that name; else the first one made for the text's script, Han or other. */
export function modelFor(info, text, name) {
  const han = isMostlyHan(text);
  const named = info.models.find((model) => model.name === name);
  return named ?? info.models.find((model) => readsChinese(model) === han) ?? info.models[0];
}

/** Whether at least half of the letters are Han. */
export function isMostlyHan(text) {
  const han = text.match(/\p{Script=Han}/gu)?.length ?? 0;
  return han > 0 && 2 * han >= (text.match(/\p{L}/gu)?.length ?? 0);
}

/** The names of a model's layers, as questions name them: "0", "1", …, "average". */
export function layersOf(model) {
  return [...Array(model.layers).keys(), "average"].map(String);
}

/** A layer as the server takes it. */
export function layerNumber(layer) {
  return /^\d+$/.test(layer) ? Number(layer) : layer;
}

/** A layer's name for people. */
export function layerLabel(layer) {
  return layer === "average" ? t("average") : t("layer-number", { number: layer });
}

/** The number of the word that stands at a place of the text, counted in characters; -1 if none does. */
export function wordAt(words, place) {
  return words.findIndex(({ start, stop }) => start <= place && place < stop);
}

/** A sentence whose word in brackets is meant: the text without them, and the word's place in it. */
export function readBrackets(bracketed) {
  return { text: bracketed.replace(/[[\]]/g, ""), at: Array.from(bracketed).indexOf("[") };
}

/** A text in pieces, what stands between words as strings; offsets count characters, not UTF-16 units. */
export function piecesOf(text, words) {
  const characters = Array.from(text);
  const pieces = [];
  let end = 0;
  for (const word of words) {
    if (word.start > end) pieces.push(characters.slice(end, word.start).join(""));
    pieces.push(word);
    end = word.stop;
  }
  if (end < characters.length) pieces.push(characters.slice(end).join(""));
  return pieces;
}
