"""`elmokit concordance`, `collocations` and `keyness`: words in their lines, their company, their share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from elmokit.cli.options import TEXTS, Count, Json, Seed, Source, StudyOptions, TextOptions, TokenOptions
from elmokit.cli.output import check_output, print_json, write_rows
from elmokit.progress.drawing import watched
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.lexicon.concordance import Line
    from elmokit.text.corpus import TextCorpus

Word = Annotated[str, Parameter(name="WORD", allow_leading_hyphen=True, help="A word of the corpus.")]
Output = Annotated[Path | None, Parameter(alias="-o", help="A table of them: .csv, .tsv or .parquet.")]
Folded = Annotated[bool, Parameter(negative="", help="Take words that differ in case alone for the same.")]
Content = Annotated[bool, Parameter(negative="", help="Leave out function words.")]
Texts = Annotated[list[Path], Parameter(allow_leading_hyphen=True, help=f"{TEXTS} May be repeated.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CountOptions(TokenOptions, TextOptions):
    """How text is read where no model is needed."""

    json: Json = False

    def open(self, paths: Sequence[Path]) -> "TextCorpus":
        """The corpus, split into words as the bundled models do it unless told otherwise."""
        from elmokit.text.corpus import open_corpus

        return open_corpus(paths, self.over("auto"), **self.reading)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ConcordanceOptions(StudyOptions):
    """Which model reads the corpus, and how."""

    layer: Annotated[str, Parameter(name=["--layer", "--layers"])] = "auto"
    """average, top, or a layer's number; auto is top for senses, as in `elmokit senses`, else average."""

    def layers_for(self, sort: str) -> Any:
        """The layer, by what lines are sorted by."""
        chosen = "top" if sort == "sense" else "average"
        return replace(self, layer=chosen).layers if self.layer == "auto" else self.layers


def concordance(
    word: Word,
    /,
    *,
    corpus: Texts,
    options: ConcordanceOptions = ConcordanceOptions(),
    sort: Literal["text", "left", "right", "sense", "similarity"] | None = None,
    example: str | None = None,
    static: Path | None = None,
    ignore_case: Folded = False,
    limit: int | None = None,
    width: int = 100,
    output: Output = None,
    seed: Seed = 0,
) -> None:
    """Show a word in all its contexts, a line each.

    Example: elmokit concordance bank --corpus novel.txt --sort right

    Example: elmokit concordance bank --corpus novel.txt --example "He sat on the [bank] of the river"

    Parameters
    ----------
    sort
        The order of the text, by the words to the left or to the right, by sense, or by similarity to the example,
        which is how they are sorted if there is one.
    example
        A sentence with the word in brackets.
    static
        A file of static vectors (word2vec, GloVe): the senses, or how like the example a line is, by those of the words
        around it, beside what the model says.
    limit
        Lines; of more, so many are drawn evenly from the corpus.
    width
        Of a line on the screen, in columns; Chinese characters take two.
    """
    from elmokit.lexicon.concordance import Line, find_lines

    check_output(output)
    sort = sort or ("similarity" if example else "text")
    elmo: Any = None
    if options.model or example or sort == "sense":
        elmo, [text] = options.open(corpus)
    else:
        text = options.read(corpus)
    by = _embedders(elmo, static, sort)
    with watched(text.name) as progress:
        reading: dict[str, Any] = {"limit": limit, "seed": seed, "ignore_case": ignore_case, "progress": progress}
        lines = find_lines(word, text, sort=sort, example=example, layers=options.layers_for(sort), **by, **reading)
    write_rows(output, lines, columns=Line._fields[:-1])
    if options.json:
        print_json({"lines": lines})
        return
    for line in lines:
        print(_aligned(line, width))


def _embedders(elmo: Any, static: Path | None, sort: str) -> dict[str, Any]:
    """What lines are compared by: for senses what is around the word, else its own vectors."""
    from elmokit.lexicon.surroundings import Surroundings
    from elmokit.static import load
    from elmokit.static.surroundings import StaticSurroundings

    embedder = Surroundings(elmo) if elmo is not None and sort == "sense" else elmo
    return {"embedder": embedder, "static": StaticSurroundings(load(static, lower_case=True)) if static else None}


def _aligned(line: "Line", width: int) -> str:
    """A line with its word in the middle, whatever the width of its characters; then numbers and metadata."""
    from rich.cells import cell_len

    side = max(1, (width - cell_len(line.word) - 4) // 2)
    left, right = _cut(line.left.rstrip()[::-1], side)[::-1], _cut(line.right.lstrip(), side)
    numbers = [translate(f"sense {sense}") for sense in (line.sense, line.static_sense) if sense is not None]
    numbers += [f"{cosine:.3f}" for cosine in (line.similarity, line.static_similarity) if cosine is not None]
    more = "  ".join([*numbers, *line.metadata.values()])
    return (
        f"{' ' * (side - cell_len(left))}{left}  {line.word}  {right}{' ' * (side - cell_len(right))}  {more}".rstrip()
    )


def _cut(text: str, width: int) -> str:
    """As many characters as fit into so many columns."""
    from rich.cells import cell_len

    found, taken = [], 0
    for character in text:
        taken += cell_len(character)
        if taken > width:
            break
        found.append(character)
    return "".join(found)


def collocations(
    word: Word,
    /,
    *,
    corpus: Texts,
    options: CountOptions = CountOptions(),
    k: Count = 20,
    by: Literal["log-likelihood", "pmi"] = "log-likelihood",
    window: int = 5,
    min_count: int = 3,
    content_words: Content = False,
    ignore_case: Folded = False,
    output: Output = None,
) -> None:
    """Find the words that stand near a word more often than chance has it.

    Example: elmokit collocations bank --corpus novel.txt --content-words

    Parameters
    ----------
    by
        Rank by the log-likelihood ratio, which favours what is sure, or by pointwise mutual information, which favours
        what is rare elsewhere.
    window
        Tokens on either side of the word, in its sentence.
    min_count
        Words that stand near it less often are left out.
    """
    from elmokit.lexicon.association import Collocate, find_collocations

    check_output(output)
    text = options.open(corpus)
    counting: dict[str, Any] = {"k": k, "by": by, "window": window, "min_count": min_count}
    with watched(text.name) as progress:
        counting |= {"content_words": content_words, "ignore_case": ignore_case, "progress": progress}
        found = find_collocations(word, text, **counting)
    write_rows(output, found, columns=Collocate._fields)
    if options.json:
        print_json({"collocations": found})
        return
    print(translate("    log-l.    PMI   near  expected  corpus  word"))
    for other, count, whole, expected, score, pmi in found:
        print(f"{score:10,.1f}  {pmi:5.2f}  {count:5,}  {expected:8,.1f}  {whole:6,}  {other}")


def keyness(
    corpus: Annotated[Source, Parameter(name="CORPUS", help=TEXTS)],
    reference: Annotated[Source, Parameter(name="REFERENCE", help="The text or folder it is compared with.")],
    /,
    *,
    options: CountOptions = CountOptions(),
    k: Count = 20,
    by: Literal["log-likelihood", "log-ratio"] = "log-likelihood",
    min_count: int = 5,
    content_words: Content = False,
    ignore_case: Folded = False,
    output: Output = None,
) -> None:
    """Find the words that are more frequent in one corpus than in another.

    Example: elmokit keyness emma.txt novels/ --content-words

    Parameters
    ----------
    by
        Rank by the log-likelihood ratio, how sure it is, or by the log ratio, how many times as frequent.
    min_count
        Words that the corpus has less often are left out.
    """
    from elmokit.lexicon.association import KeyWord, find_keyness

    check_output(output)
    texts = options.open([corpus]), options.open([reference])
    counting: dict[str, Any] = {"k": k, "by": by, "min_count": min_count, "content_words": content_words}
    with watched(f"{corpus} and {reference}") as progress:
        found = find_keyness(*texts, **counting, ignore_case=ignore_case, progress=progress)
    write_rows(output, found, columns=KeyWord._fields)
    if options.json:
        print_json({"keywords": found})
        return
    print(translate("    log-l.  log ratio  per million  reference  word"))
    for other, _, _, share, reference_share, score, ratio, _ in found:
        print(f"{score:10,.1f}  {ratio:9.2f}  {share:11,.1f}  {reference_share:9,.1f}  {other}")
