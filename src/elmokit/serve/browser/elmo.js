// A model that `elmokit export-page` wrote as ONNX graphs: words in, vectors and probabilities of words out.

import { readFile, readJson } from "./files.js";

const WORDS_AT_ONCE = 256; // between which the page can be redrawn

export class Elmo {
  /** From the folder of a model, by onnxruntime-web. */
  static async load(ort, folder) {
    const beside = await readJson(`${folder}/model.json`);
    const session = async (name) => ort.InferenceSession.create(await readFile(`${folder}/${name}.onnx`));
    const sessions = { words: await session("words"), layers: await session("layers") };
    if (beside.vocabulary) sessions.softmax = await session("softmax");
    if (beside.cloze) sessions.cloze = await session("cloze");
    const prior = beside.prior && new Float32Array((await readFile(`${folder}/prior`)).buffer);
    return new Elmo(ort, beside, sessions, prior);
  }

  constructor(ort, beside, sessions, prior) {
    Object.assign(this, { ort, beside, sessions, prior });
    this.encoded = makeEncoder(beside);
    this.ids = numbersOf(beside.vocabulary ?? []);
    this.vectors = new Map(); // of words, context-free: those of the vocabulary and what was typed, at most
  }

  /** Context-free vectors of words, (P,) each; every word is computed once. */
  async wordVectors(words) {
    const missing = [...new Set(words)].filter((word) => !this.vectors.has(word));
    missing.sort((one, other) => one.length - other.length); // of like length together, with little padding
    for (let start = 0; start < missing.length; start += WORDS_AT_ONCE) {
      const some = missing.slice(start, start + WORDS_AT_ONCE);
      const { data, dims } = (await this.sessions.words.run(this.feeds(some))).x; // (N, P)
      some.forEach((word, row) => this.vectors.set(word, data.slice(row * dims[1], (row + 1) * dims[1])));
      await new Promise((resolve) => setTimeout(resolve));
    }
    return words.map((word) => this.vectors.get(word));
  }

  /** Every layer of every word of a sentence, its bounds among them: layers[l][t] is (2P,). */
  async layers(words) {
    const vectors = await this.wordVectors([this.beside.bounds[0], ...words, this.beside.bounds[1]]);
    const x = this.matrix(vectors).reshape([vectors.length, 1, vectors[0].length]); // (T, 1, P)
    const lengths = this.integers([vectors.length], [1]);
    const { data, dims } = (await this.sessions.layers.run({ x, lengths })).layers;
    const [layers, tokens, , width] = dims;
    const at = (layer, token) => data.subarray((layer * tokens + token) * width, (layer * tokens + token + 1) * width);
    return Array.from({ length: layers }, (_, layer) => Array.from({ length: tokens }, (_, token) => at(layer, token)));
  }

  /** The log probability of every word after each top layer of a direction: (V,) for each (P,). */
  async logProbabilities(rows) {
    const { data, dims } = (await this.sessions.softmax.run({ h: this.matrix(rows) })).log_probabilities; // (N, V)
    return rows.map((_, row) => data.subarray(row * dims[1], (row + 1) * dims[1]));
  }

  /** What takes the place of a top layer in a gap that is read from both sides at once, (P,) each. */
  async joined(before, after) {
    const { data, dims } = (await this.sessions.cloze.run({ before: this.matrix(before), after: this.matrix(after) })).h;
    return before.map((_, row) => data.subarray(row * dims[1], (row + 1) * dims[1]));
  }

  /** A word's number in the vocabulary, that of <UNK> if it is not in it. */
  id(word) {
    return this.ids.get(word) ?? this.ids.get("<UNK>");
  }

  /** What the graph of words reads; of padding only what can change a filter's maximum. */
  feeds(words) {
    const rows = words.map(this.encoded), { characters: c } = this.beside, feeds = {};
    if (c) {
      const most = Math.min(c.max_characters, c.widest + Math.max(...rows.map((row) => row.characters.length)));
      const padded = rows.flatMap(({ characters }) => [...characters, ...Array(most - characters.length).fill(c.pad)]);
      feeds.char_ids = this.integers(padded, [words.length, most]);
    }
    if (this.beside.words) feeds.word_ids = this.integers(rows.map((row) => row.word), [words.length]);
    return feeds;
  }

  integers(values, shape) {
    return new this.ort.Tensor("int64", BigInt64Array.from(values, BigInt), shape);
  }

  /** Rows of floats, (N, P). */
  matrix(rows) {
    const width = rows[0].length, values = new Float32Array(rows.length * width);
    rows.forEach((row, index) => values.set(row, index * width));
    return new this.ort.Tensor("float32", values, [rows.length, width]);
  }
}

/** A function from a word to its ids: {characters: [bow, …, eow], word}. */
function makeEncoder({ bounds, characters: c, words: w }) {
  const letters = c && new Map([...c.characters].map((each, index) => [each, c.first + index]));
  const bound = c && new Map([[bounds[0], [c.bos]], [bounds[1], [c.eos]]]);
  const spell = (word) => [...word].map((each) => letters.get(each) ?? c.unknown);
  const spelled = (word) => (c.alphabet === "bytes" ? [...new TextEncoder().encode(word)] : spell(word));
  const numbers = w && numbersOf(w.vocabulary);
  return (word) => ({
    characters: c && [c.bow, ...(bound.get(word) ?? spelled(word).slice(0, c.max_characters - 2)), c.eow],
    word: w && (numbers.get([...word].slice(0, w.longest ?? Infinity).join("")) ?? w.unknown),
  });
}

/** Words by their numbers; a repeated word keeps its first. */
function numbersOf(words) {
  return new Map([...words.entries()].reverse().map(([index, word]) => [word, index]));
}
