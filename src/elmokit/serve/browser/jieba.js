// Chinese words by jieba's dictionary, as rjieba finds them without its hidden Markov model.

const BLOCK = new RegExp(
  "[\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2ebef}\\u{2f800}-\\u{2fa1f}" +
    "a-zA-Z0-9+#&._%-]+",
  "gu",
);
const LETTER = /^[a-zA-Z0-9]$/;

export class Jieba {
  /** From lines of a word and how often it was counted. */
  constructor(lines) {
    this.counts = new Map();
    this.total = 0;
    this.longest = 1; // characters
    for (const line of lines.split("\n")) {
      const blank = line.lastIndexOf(" ");
      this.add(line.slice(0, blank), Number(line.slice(blank + 1)));
    }
  }

  add(word, count) {
    this.total += count - (this.counts.get(word) ?? 0);
    this.counts.set(word, count);
    this.longest = Math.max(this.longest, word.length);
  }

  /** Where pieces of a text begin and end: words, and all else character by character. */
  *pieces(text) {
    let end = 0;
    for (const block of text.matchAll(BLOCK)) {
      yield* characters(text, end, block.index);
      end = block.index + block[0].length;
      yield* this.words(block[0], block.index);
    }
    yield* characters(text, end, text.length);
  }

  /** The words of a block, by the way through it with the largest product of frequencies; letters stay together. */
  *words(block, offset) {
    const ends = this.route(block);
    let letters = null; // where they began
    for (let start = 0; start < block.length; start = ends[start]) {
      if (LETTER.test(block.slice(start, ends[start]))) {
        letters ??= start;
        continue;
      }
      if (letters !== null) yield [offset + letters, offset + start];
      letters = null;
      yield [offset + start, offset + ends[start]];
    }
    if (letters !== null) yield [offset + letters, offset + block.length];
  }

  /** For each place in a block, where the best word that begins there ends; of equals the longest. */
  route(block) {
    const best = new Float64Array(block.length + 1), ends = new Int32Array(block.length);
    const logTotal = Math.log(this.total);
    for (let start = block.length - 1; start >= 0; start--) {
      best[start] = -Infinity;
      for (let end = start + 1; end <= Math.min(block.length, start + this.longest); end++) {
        const count = this.counts.get(block.slice(start, end));
        const score = count === undefined ? -Infinity : Math.log(count) - logTotal + best[end];
        if (count !== undefined && score >= best[start]) [best[start], ends[start]] = [score, end];
      }
      if (!ends[start]) {
        ends[start] = start + String.fromCodePoint(block.codePointAt(start)).length;
        best[start] = -logTotal + best[ends[start]];
      }
    }
    return ends;
  }
}

function* characters(text, start, end) {
  for (const character of text.slice(start, end)) yield [start, (start += character.length)];
}
