// What a model expects of a sentence: how surprising its words are, and what could stand in the place of one.

import { caseless } from "./english.js";

const SPECIAL = ["<S>", "</S>", "<UNK>"];
const TINY = 2 ** -1022;
const TOKENS_AT_ONCE = 8; // two rows each, as long as the vocabulary

/** Surprisal of each word in bits, forwards, backwards and from both sides, and its rank among all words. */
export async function rankWords(elmo, tokens) {
  const { forward, backward } = await topLayers(elmo, tokens);
  const words = [];
  for (let first = 0; first < tokens.length; first += TOKENS_AT_ONCE) {
    const some = tokens.slice(first, first + TOKENS_AT_ONCE);
    const around = some.flatMap((_, index) => [forward[first + index], backward[first + index + 2]]);
    const rows = await elmo.logProbabilities(around);
    some.forEach((token, index) => words.push(rankWord(elmo, token, rows[2 * index], rows[2 * index + 1])));
  }
  const [last, start] = await elmo.logProbabilities([forward.at(-2), backward[1]]);
  return { words, end: bits(-last[elmo.id("</S>")]), begin: bits(-start[elmo.id("<S>")]) };
}

function rankWord(elmo, { text: word, start, stop }, before, after) {
  const own = elmo.id(word), known = elmo.ids.has(word);
  const measured = { forward: bits(-before[own]), backward: bits(-after[own]) };
  const entropies = { forward_entropy: bits(entropy(before)), backward_entropy: bits(entropy(after)) };
  const joined = { both: null, ranks: null };
  if (known && !SPECIAL.includes(word)) {
    const sides = { forward: scores(elmo, before), backward: scores(elmo, after), both: scores(elmo, before, after) };
    joined.both = -Math.log2(Math.max(Math.exp(sides.both[own] - logSum(sides.both)), TINY));
    joined.ranks = Object.fromEntries(Object.entries(sides).map(([name, side]) => [name, rank(side, own)]));
  }
  return { word, ...measured, ...entropies, known, ...joined, start, stop };
}

/** The words most probable in the place of one; elmokit's substitutes has the formulas. */
export async function substitutes(elmo, kinds, tokens, position, { k, view, direction }) {
  const { share, weight, most_compared: most } = elmo.beside.substitution, word = tokens[position].text;
  const { forward, backward } = await topLayers(elmo, tokens);
  const [before, after] = await elmo.logProbabilities([forward[position], backward[position + 2]]);
  const sides = { forward: [before], backward: [after], both: [before, after, view === "fits" ? 1 : share] };
  let found = scores(elmo, ...sides[direction]);
  if (view !== "fits") found = await comparedWith(elmo, word, found, { weight, most });
  const total = logSum(found), candidates = [];
  for (const index of byFallingScore(found)) {
    const other = elmo.beside.vocabulary[index], probability = Math.exp(found[index] - total);
    if (candidates.length === k || !probability) break;
    if (view === "fits" || isCandidate(kinds, other, word)) candidates.push({ word: other, probability });
  }
  const own = elmo.ids.has(word) ? Math.exp(found[elmo.id(word)] - total) : 0;
  return { word, view, rank: own ? rank(found, elmo.id(word)) : null, probability: own || null, candidates };
}

/** Whether a word is more than another form of the target, or a function word. */
function isCandidate(kinds, word, target) {
  if (caseless(word) === caseless(target) || kinds.isFormOf(word, target)) return false;
  return kinds.isContentWord(word) || !kinds.isContentWord(target);
}

/** The scores of those that fit best, with their likeness to the word itself; others at -Infinity. */
async function comparedWith(elmo, word, fitting, { weight, most }) {
  const best = byFallingScore(fitting).slice(0, most), { vocabulary } = elmo.beside;
  const compared = new Set(elmo.ids.has(word) ? [...best, elmo.id(word)] : best);
  const indices = [...compared].filter((index) => fitting[index] > -Infinity);
  const [own, ...others] = await elmo.wordVectors([word, ...indices.map((index) => vocabulary[index])]);
  const together = new Float64Array(fitting.length).fill(-Infinity);
  indices.forEach((index, row) => (together[index] = fitting[index] + weight * cosine(own, others[row])));
  return together;
}

/** The top layers of both directions, (P,) for each word and the bounds. */
async function topLayers(elmo, tokens) {
  const top = (await elmo.layers(tokens.map((token) => token.text))).at(-1), half = top[0].length / 2;
  return { forward: top.map((one) => one.subarray(0, half)), backward: top.map((one) => one.subarray(half)) };
}

/** log p(w) of one side, or of both log p(w | before) + log p(w | after) - share * log p̄(w); bounds at -Infinity. */
function scores(elmo, side, other = null, share = 1) {
  const found = Float64Array.from(side), prior = other && elmo.prior;
  for (let index = 0; other && index < found.length; index++) found[index] += other[index];
  for (let index = 0; prior && index < found.length; index++) found[index] -= share * prior[index];
  for (const word of SPECIAL.filter((one) => elmo.ids.has(one))) found[elmo.id(word)] = -Infinity;
  return found;
}

function byFallingScore(found) {
  return [...found.keys()].sort((one, other) => found[other] - found[one] || one - other);
}

/** How many are higher, and one. */
function rank(found, own) {
  return found.reduce((count, score) => count + (score > found[own]), 1);
}

function entropy(logProbabilities) {
  return -logProbabilities.reduce((sum, value) => sum + Math.exp(value) * value, 0);
}

function logSum(found) {
  const most = found.reduce((one, other) => Math.max(one, other));
  return most + Math.log(found.reduce((sum, score) => sum + Math.exp(score - most), 0));
}

function bits(nats) {
  return nats / Math.LN2;
}

/** That of two vectors; 0 where one is zero. */
export function cosine(one, other) {
  let dot = 0, first = 0, second = 0;
  for (let index = 0; index < one.length; index++) {
    dot += one[index] * other[index];
    first += one[index] ** 2;
    second += other[index] ** 2;
  }
  return dot / Math.sqrt(first * second) || 0;
}
