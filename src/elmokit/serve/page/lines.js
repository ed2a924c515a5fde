// Lines of a concordance: in which order, and which of them.

const HAN = /\p{Script=Han}/u;
const NO_LETTERS = /[^\p{L}\p{N}\s]+/gu;

/** What lines can be sorted by. */
export const SORTS = ["text", "left", "right", "sense", "source"];

/** What the groups of lines may be called: senses only where they stand apart. */
export function nounOf({ confidence, senses }) {
  return confidence === null || senses.length === 1 ? "group" : "sense";
}

/** The numbers of the lines in order: as they come, by the words before or after, by sense, by document. */
export function sorted(lines, by, language) {
  const order = Array.from(lines.keys());
  const compare = comparison(lines, by, language);
  return compare ? order.sort((one, other) => compare(one, other) || one - other) : order;
}

function comparison(lines, by, language) {
  const collator = new Intl.Collator(language);
  const alphabetical = (keys) => (one, other) => collator.compare(keys[one], keys[other]);
  if (by === "left") return alphabetical(lines.map(({ left }) => backwards(left)));
  if (by === "right") return alphabetical(lines.map(({ right }) => plain(right)));
  if (by === "source") return alphabetical(lines.map(({ document }) => document));
  if (by === "sense") return (one, other) => lines[one].sense - lines[other].sense;
  return null;
}

/** The words before the word, the nearest first; Chinese by characters. */
function backwards(left) {
  const text = plain(left);
  return HAN.test(text) ? Array.from(text).reverse().join("") : text.split(/\s+/).reverse().join(" ");
}

function plain(text) {
  return text.replace(NO_LETTERS, " ").trim().toLowerCase();
}

/** For each line 1 or 0: whether it has one of the senses, the document, the text, and its point lies in the box. */
export function matching(lines, { senses, document, containing, box }) {
  const wanted = containing?.toLowerCase();
  return Uint8Array.from(lines, (line) =>
    Number(
      (!senses?.size || senses.has(line.sense)) &&
        (!document || line.document === document) &&
        (!box || (line.x >= box[0] && line.y >= box[1] && line.x <= box[2] && line.y <= box[3])) &&
        (!wanted || `${line.left}${line.word}${line.right}`.toLowerCase().includes(wanted)),
    ),
  );
}
