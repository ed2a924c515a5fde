// Which words are forms of one another, and which are function words: elmokit's rules; its lists come with the page.

const ENDINGS = ["s", "ed", "ing", "er", "est", "ly"];
const SHORTEST = 2; // letters that are left when an ending goes

/** Upper and lower case alike, as Python's casefold. */
export const caseless = (word) => word.toUpperCase().toLowerCase();

/** Functions that know the lists {english, chinese, irregular}. */
export function makeWordKinds({ english, chinese, irregular }) {
  const functionWords = new Set([...english, ...chinese]);
  const lemmasOf = new Map(Object.entries(irregular));

  /** What an English word may be a form of, itself among them, whether or not there is such a word. */
  function lemmas(given) {
    const word = caseless(given).replace(/'s$/, "").replace(/’s$/, "");
    const found = new Set([word, ...(lemmasOf.get(word) ?? [])]);
    for (const ending of ENDINGS.filter((one) => word.endsWith(one))) {
      const stem = word.slice(0, -ending.length);
      const doubled = ending === "s" && stem.endsWith("s"); // kiss
      if (stem.length < SHORTEST || !/[aeiouy]/.test(stem) || doubled) continue;
      for (const lemma of before(stem, ending)) found.add(lemma);
    }
    return found;
  }

  return {
    /** Whether two words may be forms of one: banks and banked, went and going, quiet and quietly. */
    isFormOf(one, other) {
      const others = lemmas(other);
      return [...lemmas(one)].some((lemma) => others.has(lemma));
    },
    /** Whether it is neither a function word nor punctuation. */
    isContentWord(word) {
      const known = functionWords.has(word) || functionWords.has(word.toLowerCase().replaceAll("’", "'"));
      return /[\p{L}\p{N}]/u.test(word) && !known;
    },
  };
}

/** What an ending may have been put to: hop, hope, hurry or church. */
function before(stem, ending) {
  const found = [stem], cut = (count) => stem.slice(0, -count);
  if (ending !== "ing" && stem.endsWith("ie")) found.push(`${cut(2)}y`); // carries
  if (["ed", "er", "est", "ly"].includes(ending) && stem.endsWith("i")) found.push(`${cut(1)}y`); // carried, happily
  if (ending === "s") return /(se|xe|ze|che|she|oe)$/.test(stem) ? [...found, cut(1)] : found;
  if (ending === "ing" && stem.endsWith("y")) found.push(`${cut(1)}ie`); // lying
  if (stem.at(-1) === stem.at(-2) && !"aeiou".includes(stem.at(-1))) found.push(cut(1)); // stopped
  return [...found, `${stem}e`, ...(ending === "ly" ? [`${stem}le`] : [])];
}
