"""`elmokit senses`: the occurrences of a word in groups, called senses where they stand apart."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elmokit.cli.options import Seed, SenseOptions
from elmokit.cli.output import print_json, shown
from elmokit.lexicon.settings import SenseBy, SenseSettings
from elmokit.progress import counted
from elmokit.progress.drawing import watched
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.lexicon.senses import Senses


def senses(
    word: str,
    /,
    *,
    options: SenseOptions,
    settings: Annotated[SenseSettings, Parameter(name="*")] = SenseSettings(),  # noqa: B008
    limit: int = 1000,
    plot: list[Path] | None = None,
    by: SenseBy = "around",
    seed: Seed = 0,
) -> None:
    """Group the occurrences of a word, and call the groups senses if they stand apart.

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
        Compare what the words around lead to expect in its place, by vectors (around) or by the words that the language
        model would put there (substitutes), or its own vectors (word).
    """
    from elmokit.lexicon.plots import check_plot, write_plot
    from elmokit.lexicon.senses import compared_by, find_senses

    for path in plot or []:
        check_plot(path)
    elmo, [corpus] = options.open(options.corpus)
    with watched(corpus.name) as progress:
        reading: dict[str, Any] = {"layers": options.layers, "limit": limit, "seed": seed, "progress": progress}
        found = find_senses(word, corpus, compared_by(by, elmo), settings=settings, **reading)
    for path in plot or []:
        write_plot(path, found)
    if options.json:
        print_json(found)
        return
    count = len(found.occurrences)
    print(translate(f"{word}: {found.claim} in {counted(count, 'occurrence')}; {_reason(found)}"))
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
