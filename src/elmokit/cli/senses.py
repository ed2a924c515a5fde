"""`elmokit senses`: the occurrences of a word in groups, called senses where they stand apart."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elmokit.answers import plain
from elmokit.cli.options import Seed, SenseOptions
from elmokit.cli.output import check_output, print_json, shown
from elmokit.lexicon.settings import SenseBy, SenseSettings
from elmokit.progress import counted
from elmokit.progress.drawing import watched
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.embedder import Embedder
    from elmokit.lexicon.senses import Senses


def senses(
    word: str,
    /,
    *,
    options: SenseOptions,
    settings: Annotated[SenseSettings, Parameter(name="*")] = SenseSettings(),  # noqa: B008
    limit: int = 1000,
    static: Path | None = None,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    plot: list[Path] | None = None,
    by: SenseBy = "around",
    seed: Seed = 0,
) -> None:
    """Group the occurrences of a word, and call the groups senses if they stand apart.

    Example: elmokit senses bank --corpus novel.txt --plot bank.html

    Example: elmokit senses bank --corpus novel.txt --count 2 -o bank.senses.csv

    Parameters
    ----------
    word
        A word of the corpus.
    limit
        Occurrences grouped; of more, so many are drawn evenly from the corpus.
    static
        A file of static vectors (word2vec, GloVe): the same occurrences in as many groups by those of the words around.
    output
        A table of the occurrences, each with the number of its sense: .csv, .tsv or .parquet.
    plot
        A scatter plot, .png or .html. May be repeated.
    by
        Compare what the words around lead to expect in its place, by vectors (around) or by the words that the language
        model would put there (substitutes), or its own vectors (word).
    """
    from elmokit.lexicon.plots import check_plot, write_plot
    from elmokit.lexicon.senses import compared_by, find_senses, sense_rows, static_groups
    from elmokit.lexicon.tables import write_table

    check_output(output)
    for path in plot or []:
        check_plot(path)
    elmo, [corpus] = options.open(options.corpus)
    with watched(corpus.name) as progress:
        reading: dict[str, Any] = {"layers": options.layers, "limit": limit, "seed": seed, "progress": progress}
        found = find_senses(word, corpus, compared_by(by, elmo), settings=settings, **reading)
        beside = static_groups(found, corpus, _static(static), settings=settings, seed=seed) if static else None
    if output:
        write_table(output, sense_rows(found, beside))
    for path in plot or []:
        write_plot(path, found)
    if options.json:
        print_json(found if beside is None else plain(found) | {"static": beside})
        return
    count = len(found.occurrences)
    print(translate(f"{word}: {found.claim} in {counted(count, 'occurrence')}; {_reason(found)}"))
    _print_groups(found)
    if beside is not None:
        print()
        print(translate(f"{static}: {beside.claim}"))
        _print_groups(beside)


def _static(path: Path) -> "Embedder":
    from elmokit.static import load
    from elmokit.static.surroundings import StaticSurroundings

    return StaticSurroundings(load(path, lower_case=True))


def _print_groups(found: "Senses") -> None:
    """Each with its share, its keywords and its examples."""
    for rank, sense in enumerate(found.senses, 1):
        print(f"\n{rank}  {sense.share:.0%}  {', '.join(keyword.word for keyword in sense.words)}")
        for example in sense.examples:
            print(f"   {shown(example)}")


def _reason(found: "Senses") -> str:
    """Why they are called senses, or groups."""
    from elmokit.lexicon.senses import FEWEST

    if found.confidence is not None:
        what = "two groups would have" if len(found.senses) == 1 else "they have"
        return f"confidence {found.confidence:.0%}: {what} silhouette {found.silhouette:.2f}"
    if len(found.occurrences) < FEWEST:
        return f"fewer than {FEWEST} are too few to tell senses apart"
    if found.silhouette is None:
        return "nothing sets them apart"
    return f"they do not stand apart: silhouette {found.silhouette:.2f}"
