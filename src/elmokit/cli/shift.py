"""`elmokit shift`: words whose use changes over slices of time, or differs between corpora."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from elmokit.cli.options import TEXTS, Count, Seed, Source, StudyOptions, read_words
from elmokit.cli.output import print_json, shown
from elmokit.errors import ConfigError
from elmokit.lexicon.settings import ShiftSettings
from elmokit.progress.drawing import watched
from elmokit.translation import translate

if TYPE_CHECKING:
    from elmokit.lexicon.shift import Change


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ShiftOptions(ShiftSettings):
    """What is compared and shown."""

    k: Count = 20


def shift(
    *slices: Annotated[
        Source, Parameter(name="SLICES", help=f"Two or more, in order of time; with --slice-by one corpus. {TEXTS}")
    ],
    options: StudyOptions = StudyOptions(),
    settings: ShiftOptions = ShiftOptions(),
    words: list[str] | None = None,
    word_list: Path | None = None,
    slice_by: str | None = None,
    years: int | None = None,
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    plot: list[Path] | None = None,
    seed: Seed = 0,
) -> None:
    """Find the words whose use changes most from the first slice of a corpus to the last.

    Example: elmokit shift 1850/ 1900/ 1950/ --min-count 50 -o shift.csv

    Example: elmokit shift old.txt new.txt --words bank --plot bank.html

    Example: elmokit shift letters/ --metadata letters.csv --slice-by date --years 10

    Parameters
    ----------
    words
        Compare these alone. May be repeated.
    word_list
        A file of words to compare, one per line.
    slice_by
        A column of the table of --metadata: documents that have the same there are a slice.
    years
        With --slice-by, the column begins with a year, and a slice has so many of them.
    output
        Where the table of the words shown goes: .csv, .tsv or .parquet.
    plot
        The first word shown over the slices, .png or .html. May be repeated.
    """
    from elmokit.lexicon.plots import check_plot
    from elmokit.lexicon.shift import find_shift, shift_rows
    from elmokit.lexicon.shift_plots import write_shift_plot
    from elmokit.lexicon.tables import check_table, write_table
    from elmokit.text.slices import slices_by

    for path in plot or []:
        check_plot(path)
    if output:
        check_table(output)
    given = [*(words or ()), *(read_words(word_list) if word_list else ())]
    if years is not None and not slice_by:
        raise ConfigError("--years says how many years a slice has: name the column of dates too, --slice-by date")
    elmo, corpora = options.open(*([slices] if slice_by else ([path] for path in slices)))
    named = (
        slices_by(corpora[0], slice_by, years=years)
        if slice_by
        else dict(zip(slice_names(slices), corpora, strict=True))
    )
    with watched(" and ".join(corpus.name for corpus in corpora)) as progress:
        reading: dict[str, Any] = {"layers": options.layers, "seed": seed, "progress": progress}
        changes = find_shift(named, elmo, words=given, settings=settings, **reading)
    if output:
        write_table(output, shift_rows(changes))
    for path in plot or []:
        write_shift_plot(path, changes[0])
    if options.json:
        print_json(changes)
    else:
        print_changes(changes)


def slice_names(paths: tuple[Path, ...]) -> list[str]:
    """The names of files and folders, with their numbers where two are the same."""
    names = ["standard input" if str(path) == "-" else path.name or str(path) for path in paths]
    return [f"{name} ({number})" if names.count(name) > 1 else name for number, name in enumerate(names, 1)]


def print_changes(changes: "list[Change]") -> None:
    """A line for each word, then examples of each slice; with more than two, a line for each step too."""
    print(translate("   APD  excess     PRT     JSD  static       p       q  word"))
    for change in changes:
        for number, found in enumerate(change.distances):
            chance = (found.p, None if number else change.q)
            values = [f"{value:.3f}" if value is not None else "-" for value in found[2:7]]
            values += [f"{value:.4f}" if value is not None else "-" for value in chance]
            counts = " and ".join(f"{count:,}" for count in change.counts)
            name = f"  {found.first} → {found.last}" if number else f"{change.word}  ({counts})"
            print("  ".join(f"{value:>6}" for value in values), name, sep="  ")
        for number, name in enumerate(change.slices):
            telling = ", ".join(change.substitutes[number]) if change.substitutes else ""
            if telling or change.examples[number]:
                print(f"              {name}{telling and ': '}{telling}")
            for example in change.examples[number]:
                print(f"                {shown(example)}")
