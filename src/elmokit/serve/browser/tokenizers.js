// Text to tokens that know where in it they stand, as elmokit's tokenizers find them. Their patterns are Python's.

/** A function from a text to its tokens {text, start, stop}, whose offsets count characters, not UTF-16 units. */
export function makeTokenizer({ name, normalize }, patterns, jieba) {
  const finders = makeFinders(patterns, jieba);
  const { cluster, vanishing, han, other_word: otherWord } = patterns;

  function isMostlyHan(text) {
    const count = text.match(han)?.length ?? 0;
    return count > (text.match(otherWord)?.length ?? 0);
  }

  /** The text as tokens are sought in it, and where each of its units was; null if that is the same. */
  function readable(text) {
    const plain = normalize === "none" || text.normalize("NFKC") === text;
    if (plain && text.search(vanishing) < 0) return [text, null];
    const spans = [];
    let changed = "";
    for (const { 0: piece, index } of text.matchAll(cluster)) {
      const kept = (plain ? piece : piece.normalize("NFKC")).replaceAll(vanishing, "");
      changed += kept;
      spans.push(...Array(kept.length).fill([index, index + piece.length]));
    }
    return [changed, spans];
  }

  return (text) => {
    const finder = name === "auto" ? (isMostlyHan(text) ? "jieba" : "words") : name;
    const [changed, spans] = name === "whitespace" ? [text, null] : readable(text);
    const characterAt = charactersBefore(text);
    return Array.from(finders[finder](changed), ([start, end]) => {
      const [first, last] = spans ? [spans[start][0], spans[end - 1][1]] : [start, end];
      return { text: changed.slice(start, end), start: characterAt[first], stop: characterAt[last] };
    });
  };
}

/** By name, functions from a text to where its tokens begin and end. */
function makeFinders({ words, characters, whole, clitic, whitespace, space }, jieba) {
  const isSpace = new RegExp(space.source, "u");
  const find = (pattern) =>
    function* (text) {
      for (const { 0: token, index } of text.matchAll(pattern)) yield [index, index + token.length];
    };

  function* findWords(text) {
    for (const { 0: token, index, groups } of text.matchAll(words)) {
      const clitics = groups.word ? Array.from(token.matchAll(clitic), (one) => index + one.index) : [];
      const bounds = [index, ...clitics, index + token.length];
      for (let at = 1; at < bounds.length; at++) yield [bounds[at - 1], bounds[at]];
    }
  }

  /** What jieba finds; but what `whole` matches stays whole, unless jieba has a word that goes beyond it. */
  function* findJieba(text) {
    const wholes = [...find(whole)(text)];
    let done = 0, at = 0;
    for (let [start, end] of jieba.pieces(text)) {
      while (at < wholes.length && wholes[at][1] <= start) at++;
      if (start < done || isSpace.test(text.slice(start, end))) continue;
      if (at < wholes.length && wholes[at][0] <= start && end <= wholes[at][1]) {
        [start, end] = [Math.max(done, wholes[at][0]), wholes[at][1]];
      }
      yield [start, end];
      done = end;
    }
  }

  return { whitespace: find(whitespace), characters: find(characters), words: findWords, jieba: findJieba };
}

/** For each UTF-16 unit of a text and its end, how many characters stand before it. */
function charactersBefore(text) {
  const before = [0];
  for (const character of text) {
    const count = before.at(-1);
    before.push(...Array(character.length).fill(count + 1));
  }
  return before;
}

/** A word in brackets, "He sat on the [bank]": the text without them, its tokens, and the word's position. */
export function readBrackets(text, tokenize) {
  const pairs = [...text.matchAll(/\[([^[\]]*)\]|【([^【】]*)】|［([^［］]*)］/gu)];
  if (pairs.length !== 1 || text.match(/[[\]【】［］]/gu).length !== 2 || !pairs[0][0].slice(1, -1).trim()) {
    throw new Error(`"${text}": put brackets around one word, as in "He sat on the [bank] of the river"`);
  }
  const [{ 0: pair, index }] = pairs, word = pair.slice(1, -1).trim();
  const before = text.slice(0, index), after = text.slice(index + pair.length);
  const start = Array.from(before).length, stop = start + Array.from(word).length;
  const isWord = (token) => token.text === word && token.start === start && token.stop === stop;
  let tokens = tokenize(before + word + after);
  if (!tokens.some(isWord)) { // they would cross the word's bounds
    const later = tokenize(after).map((token) => ({ ...token, start: stop + token.start, stop: stop + token.stop }));
    tokens = [...tokenize(before), { text: word, start, stop }, ...later];
  }
  return { tokens, position: tokens.findIndex(isWord) };
}
