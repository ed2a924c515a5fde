// What a model expects of a sentence: how surprising its words are, and what could stand in the place of one.

import { caseless } from "./english.js";

const SPECIAL = ["<S>", "</S>", "<UNK>"];
const TINY = 2 ** -1022;
const TOKENS_AT_ONCE = 8; // two or three rows each, as long as the vocabulary

/** Surprisal of each word in bits, forwards, backwards and from both sides, and its rank among all words. */
export async function rankWords(elmo, tokens) {
  const { forward, backward } = await topLayers(elmo, tokens);
  const words = [];
  for (let first = 0; first < tokens.length; first += TOKENS_AT_ONCE) {
    const some = tokens.slice(first, first + TOKENS_AT_ONCE);
    const gaps = await expected(elmo, forward.slice(first, first + some.length), backward.slice(first + 2, first + 2 + some.length));
    some.forEach((token, index) => words.push(rankWord(elmo, token, gaps[index])));
  }
  const [last, start] = await elmo.logProbabilities([forward.at(-2), backward[1]]);
  return { words, end: bits(-last[elmo.id("</S>")]), begin: bits(-start[elmo.id("<S>")]) };
}

function rankWord(elmo, { text: word, start, stop }, gap) {
  const { before, after } = gap;
  const own = elmo.id(word), known = elmo.ids.has(word);
  const measured = { forward: bits(-before[own]), backward: bits(-after[own]) };
  const entropies = { forward_entropy: bits(entropy(before)), backward_entropy: bits(entropy(after)) };
  const joined = { both: null, ranks: null };
  if (known && !SPECIAL.includes(word)) {
    const sides = { forward: scores(elmo, before), backward: scores(elmo, after), both: gapScores(elmo, gap) };
    joined.both = -Math.log2(Math.max(Math.exp(sides.both[own] - logSum(sides.both)), TINY));
    joined.ranks = Object.fromEntries(Object.entries(sides).map(([name, side]) => [name, rank(side, own)]));
  }
  return { word, ...measured, ...entropies, known, ...joined, start, stop };
}

/** The words most probable in the place of one; elmokit's substitutes has the formulas. */
export async function substitutes(elmo, kinds, tokens, position, { k, view, direction }) {
  const { share, weight, most_compared: most } = elmo.beside.substitution, word = tokens[position].text;
  const { forward, backward } = await topLayers(elmo, tokens);
  const [gap] = await expected(elmo, [forward[position]], [backward[position + 2]]);
  const sides = { forward: gap.before, backward: gap.after };
  let found = direction === "both" ? gapScores(elmo, gap, view === "fits" ? 1 : share) : scores(elmo, sides[direction]);
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

/** Log probabilities of all words in gaps, by the top layers before and after each; by both at once if the model can. */
async function expected(elmo, before, after) {
  const joint = elmo.beside.cloze ? await elmo.joined(before, after) : [];
  const rows = await elmo.logProbabilities([...before, ...after, ...joint]), gaps = before.length;
  return before.map((_, gap) => ({ before: rows[gap], after: rows[gaps + gap], both: rows[2 * gaps + gap] }));
}

/** log p(w | before, after) - (share - 1) log p̄(w), or log p(w | before) + log p(w | after) - share log p̄(w). */
function gapScores(elmo, { before, after, both }, share = 1) {
  const found = scores(elmo, both ?? before), off = both ? share - 1 : share, { prior } = elmo;
  for (let index = 0; !both && index < found.length; index++) found[index] += after[index];
  for (let index = 0; prior && index < found.length; index++) found[index] -= off * prior[index];
  return found;
}

/** log p(w); bounds at -Infinity. */
function scores(elmo, side) {
  const found = Float64Array.from(side);
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
