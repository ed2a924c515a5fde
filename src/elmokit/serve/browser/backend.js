// A backend without a server: the JSON that its routes give, computed in the browser.

import { element } from "../page/dom.js";
import { t } from "../page/texts.js";
import { Elmo } from "./elmo.js";
import { makeWordKinds } from "./english.js";
import { readFile, readJson, readText } from "./files.js";
import { Jieba } from "./jieba.js";
import { cosine, rankWords, substitutes } from "./predictions.js";
import { makeTokenizer, readBrackets } from "./tokenizers.js";

/** What was once made is not made again, unless it failed. */
function once(make) {
  const kept = new Map();
  return (name) => {
    if (!kept.has(name)) kept.set(name, make(name));
    kept.get(name).catch(() => kept.delete(name));
    return kept.get(name);
  };
}

const readOnce = once(readJson);

const runtime = once(async () => {
  const code = new Blob([await readFile("onnxruntime/ort.wasm.bundle.min.mjs")], { type: "text/javascript" });
  const ort = await import(URL.createObjectURL(code));
  ort.env.wasm.numThreads = 1; // more would need headers that few hosts send
  ort.env.wasm.wasmBinary = await readFile("onnxruntime/ort-wasm-simd-threaded.wasm");
  return ort;
});

/** A model by its name: {elmo, tokenize}. */
export const openModel = once(async (name) => {
  const notice = element("p", { class: "loading", role: "status" }, t("loading"));
  document.body.append(notice);
  try {
    const elmo = await Elmo.load(await runtime(), `models/${name}`);
    return { elmo, tokenize: await openTokenizer(elmo.beside.tokenizer) };
  } finally {
    notice.remove();
  }
});

/** The tokenizer of these settings. */
export async function openTokenizer(settings) {
  const patterns = Object.entries(await readOnce("tokenizers.json"));
  const compiled = patterns.map(([name, { source, flags }]) => [name, new RegExp(source, flags)]);
  const jieba = ["jieba", "auto"].includes(settings.name) ? new Jieba(await readText("jieba.txt")) : null;
  Object.entries(settings.words).forEach(([word, count]) => jieba?.add(word, count));
  return makeTokenizer(settings, Object.fromEntries(compiled), jieba);
}

let turn = Promise.resolve();

/** Calls one after the other: onnxruntime runs one at a time. */
function inTurn(call) {
  const mine = turn.then(call);
  turn = mine.catch(() => {});
  return mine;
}

export const backend = {
  can(method) {
    return method in this;
  },
  info: () => readOnce("info.json"),

  surprisal: (text, name) =>
    inTurn(async () => {
      const { elmo, tokenize } = await openModel(await named(name));
      return rankWords(elmo, tokenize(text));
    }),

  substitutes: ({ text, position = null, k = 10, view = "means-the-same", direction = "both", model }) =>
    inTurn(async () => {
      const { elmo, tokenize } = await openModel(await named(model));
      const query = position === null ? readBrackets(text, tokenize) : { tokens: tokenize(text), position };
      if (!query.tokens[query.position]) throw new Error(`there is no token ${position}, counted from 0`);
      const kinds = makeWordKinds(await readOnce("words.json"));
      return substitutes(elmo, kinds, query.tokens, query.position, { k, view, direction });
    }),

  cosines: ({ first, second, layers = "average", model }) =>
    inTurn(async () => {
      const { elmo, tokenize } = await openModel(await named(model));
      const tokens = [tokenize(first), tokenize(second)], sentences = [];
      for (const some of tokens) sentences.push(await chosenLayers(elmo, some, layers));
      const [one, other] = sentences;
      const matrix = (rows, columns) => rows.map((row) => columns.map((column) => cosine(row, column)));
      const cosines = Object.fromEntries(Object.keys(one).map((layer) => [layer, matrix(one[layer], other[layer])]));
      return { first: tokens[0], second: tokens[1], cosines };
    }),
};

async function named(model) {
  return model ?? (await backend.info()).models[0].name;
}

/** The vectors of a sentence's words by layer: one layer's, or for "all" each one's and their average. */
async function chosenLayers(elmo, tokens, layers) {
  const found = (await elmo.layers(tokens.map((token) => token.text))).map((rows) => rows.slice(1, -1));
  const averaged = (vectors) => vectors[0].map((_, index) => mean(vectors.map((vector) => vector[index])));
  const average = tokens.map((_, token) => averaged(found.map((rows) => rows[token])));
  if (layers === "all") return { ...found, average };
  return { [layers]: { average, top: found.at(-1) }[layers] ?? found[layers] };
}

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
