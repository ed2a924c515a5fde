"""`elmokit senses` and `shift`: one word, many vectors."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from elmokit.cli.options import TEXTS, Count, Seed, SenseOptions, Source, StudyOptions
from elmokit.cli.output import print_json, shown
from elmokit.cli.progress import watched
from elmokit.lexicon.settings import SenseSettings, ShiftSettings
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
