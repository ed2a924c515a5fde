"""`elmokit senses`, `substitutes`, `surprisal` and `shift`: one word, many vectors."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from elmokit.cli.options import (
    TEXTS,
    Bracketed,
    Count,
    ModelOptions,
    Seed,
    SenseOptions,
    Source,
    StudyOptions,
    TextOptions,
)
from elmokit.cli.output import print_json, shown
from elmokit.cli.progress import watched
from elmokit.errors import ConfigError
from elmokit.lexicon.settings import Direction, SenseSettings, ShiftSettings
from elmokit.progress import counted


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ShiftOptions(ShiftSettings):
    """What is compared and shown."""

    k: Count = 20


def senses(
    word: str,
    /,
    *,
    options: SenseOptions,
    settings: Annotated[SenseSettings, Parameter(name="*")] = SenseSettings(),  # noqa: B008
    limit: int = 1000,
    plot: list[Path] | None = None,
    by: Literal["around", "word"] = "around",
    seed: Seed = 0,
) -> None:
    """Group the occurrences of a word into senses.

    Example: elmokit senses bank --corpus novel.txt --plot bank.html

    Parameters
    ----------
    word
        A word of the corpus.
    limit
        Occurrences grouped; of more, so many are drawn evenly from the corpus.
    plot
        A scatter plot, .png or .html. May be repeated.
    by
        Compare what the words around lead to expect in its place, which tells senses apart best, or its own vectors.
    """
    from elmokit.lexicon.plots import check_plot, write_plot
    from elmokit.lexicon.senses import Surroundings, find_senses

    for path in plot or []:
        check_plot(path)
    elmo, [corpus] = options.open(options.corpus)
    embedder = Surroundings(elmo) if by == "around" else elmo
    with watched(corpus.name) as progress:
        reading: dict[str, Any] = {"layers": options.layers, "limit": limit, "seed": seed, "progress": progress}
        found = find_senses(word, corpus, embedder, settings=settings, **reading)
    for path in plot or []:
        write_plot(path, found)
    if options.json:
        print_json(found)
        return
    apart = "" if found.silhouette is None else f", silhouette {found.silhouette:.2f}"
    number, among = counted(len(found.senses), "sense"), counted(len(found.occurrences), "occurrence")
    print(f"{word}: {number} in {among}{apart}")
    for rank, sense in enumerate(found.senses, 1):
        print(f"\n{rank}  {sense.share:.0%}  {', '.join(keyword.word for keyword in sense.words)}")
        for example in sense.examples:
            print(f"   {shown(example)}")


def substitutes(
    sentence: Bracketed, /, *, options: ModelOptions = ModelOptions(), k: Count = 10, direction: Direction = "both"
) -> None:
    """Show what the language model would put in the place of a word; it needs its softmax.

    Example: elmokit substitutes "He sat on the [bank] of the river"

    Parameters
    ----------
    direction
        Judge by the words before (forward), after (backward) or both.
    """
    from elmokit.lexicon.predictions import substitutes as find
    from elmokit.text.brackets import read_brackets

    elmo, tokenizer = options.load(sentence)
    found = find(elmo, read_brackets(sentence, tokenizer), k=k, direction=direction)
    if options.json:
        print_json(found)
        return
    if found.rank is None:
        print(f"{found.word}: not in the model's vocabulary")
    else:
        print(f"{found.word}: rank {found.rank:,} of {len(elmo.vocabulary or ()):,}, {found.probability:.2%}")
    for word, probability in found.candidates:
        print(f"{probability:7.2%}  {word}")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SurprisalOptions(ModelOptions, TextOptions):
    """Which model reads a sentence or files, and how."""


def surprisal(
    *texts: Annotated[str, Parameter(name="SENTENCE or FILES", allow_leading_hyphen=True)],
    options: SurprisalOptions = SurprisalOptions(),
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
) -> None:
    """Measure how surprising each word of a sentence or of files is to a language model, in bits; it needs its softmax.

    Example: elmokit surprisal "He sat on the bank of the river ."

    Example: elmokit surprisal novel.txt -o novel.csv

    Parameters
    ----------
    texts
        A sentence, in quotes. With --output, texts: .txt or .jsonl, plain or packed, folders of them, or - for standard
        input.
    output
        Where the table of the words of files goes: .csv, .tsv or .parquet. With it the arguments are files, without it
        a sentence.
    """
    if output and texts:
        _write_table(texts, output, options)
        return
    sentence = _one_sentence(texts)

    from elmokit.lexicon.predictions import surprisal as measure

    elmo, tokenizer = options.load(sentence)
    found = measure(elmo, [token.text for token in tokenizer(sentence)])
    if options.json:
        print_json(found)
        return
    print("forward  backward  bits")
    print(f"         {found.begin:8.2f}  (begin)")
    for word, forward, backward, known in found.words:
        print(f"{forward:7.2f}  {backward:8.2f}  {word}{'' if known else '  (as <UNK>)'}")
    print(f"{found.end:7.2f}            (end)")


def _one_sentence(texts: Sequence[str]) -> str:
    """The only argument, which must not be the name of a file."""
    table = "-o table.csv (.tsv, .parquet) says where the table of its words goes"
    if len(texts) != 1:
        raise ConfigError(f"{len(texts)} arguments: give one sentence, in quotes; of files, {table}")
    with suppress(OSError):  # such as a name that is too long for a file's
        if texts[0] == "-" or Path(texts[0]).exists():
            raise ConfigError(f"{texts[0]} is a file or folder: {table}; as a sentence, end it with a blank")
    return texts[0]


def _write_table(texts: Sequence[str], output: Path, options: SurprisalOptions) -> None:
    """The surprisal of every word of the files."""
    from elmokit.lexicon.surprisal_tables import write_surprisal
    from elmokit.lexicon.tables import check_table
    from elmokit.text.corpus import beginning, open_corpus
    from elmokit.text.documents import open_texts

    check_table(output)
    files = open_texts(texts, **options.files, repeatable=False)
    elmo, tokenizer = options.load(beginning(files))
    corpus = open_corpus(files, tokenizer, language=options.language, keep_empty=options.meaning == "sentences")
    with watched(corpus.name) as progress:
        found = write_surprisal(output, corpus, elmo, progress=progress)
    if options.json:
        print_json(found, indent=None)
    else:
        print(f"{output}: {found.words:,} words, {found.unknown:,} of them not in the model's vocabulary")


def shift(
    first: Annotated[Source, Parameter(name="FIRST", help=TEXTS)],
    second: Annotated[Source, Parameter(name="SECOND", help="Another text or folder.")],
    /,
    *,
    options: StudyOptions = StudyOptions(),
    settings: ShiftOptions = ShiftOptions(),
    words: list[str] | None = None,
    seed: Seed = 0,
) -> None:
    """Find the words whose use differs most between two corpora.

    Example: elmokit shift old/ new/

    Parameters
    ----------
    words
        Compare these alone. May be repeated.
    """
    from elmokit.lexicon.shift import find_shift

    elmo, [early, late] = options.open([first], [second])
    with watched(f"{early.name} and {late.name}") as progress:
        reading: dict[str, Any] = {"layers": options.layers, "seed": seed, "progress": progress}
        changes = find_shift(early, late, elmo, words=words or (), settings=settings, **reading)
    if options.json:
        print_json(changes)
        return
    print("  APD    PRT  word")
    for change in changes:
        print(f"{change.apd:.3f}  {change.prt:.3f}  {change.word}  ({change.counts[0]:,} and {change.counts[1]:,})")
        for corpus, side in zip((first, second), change.examples, strict=True):
            for example in side:
                print(f"              {corpus.name}: {shown(example)}")
