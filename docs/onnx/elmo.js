// A model that `elmokit convert` wrote as ONNX: words in, vectors out. `ort` is onnxruntime-web or onnxruntime-node,
// `beside` the JSON file that lies beside the graph.

// Ids of one sentence, a list of words, with its bounds: what the graph reads.
export function encode(words, beside) {
  const rows = [beside.bounds[0], ...words, beside.bounds[1]], ids = {};
  if (beside.characters) {
    const c = beside.characters, number = new Map([...c.characters].map((each, index) => [each, c.first + index]));
    const spell = (word) => (c.alphabet === "bytes"
      ? [...new TextEncoder().encode(word)] : [...word].map((each) => number.get(each) ?? c.unknown));
    const bound = { [beside.bounds[0]]: [c.bos], [beside.bounds[1]]: [c.eos] };
    ids.char_ids = rows.flatMap((word) => {
      const inner = bound[word] ?? spell(word).slice(0, c.max_characters - 2);
      return [c.bow, ...inner, c.eow, ...Array(c.max_characters - 2 - inner.length).fill(c.pad)];
    });
  }
  if (beside.words) {
    const w = beside.words, number = new Map([...w.vocabulary.entries()].reverse().map(([index, word]) => [word, index]));
    ids.word_ids = rows.map((word) => number.get([...word].slice(0, w.longest ?? Infinity).join("")) ?? w.unknown);
  }
  return ids;
}

// Every layer of every word: {data, dims}, with dims = [layers, 1, words, width].
export async function embed(ort, session, beside, words) {
  const count = words.length + 2, feeds = {};
  for (const [name, ids] of Object.entries(encode(words, beside))) {
    const shape = name === "char_ids" ? [1, count, beside.characters.max_characters] : [1, count];
    feeds[name] = new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), shape);
  }
  return (await session.run(feeds)).layers;
}
