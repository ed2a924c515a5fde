"""`elmokit bench`: how fast a model runs here."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

AT_LEAST_ONE = validators.Number(gte=1)


def bench(
    *,
    model: Annotated[Path | None, Parameter(alias="-m")] = None,
    sizes: list[Literal["small", "medium", "original"]] | None = None,
    precisions: list[Literal["fp32", "int8"]] | None = None,
    text: Path | None = None,
    sentences: Annotated[int, Parameter(validator=AT_LEAST_ONE)] = 512,
    rounds: Annotated[int, Parameter(validator=AT_LEAST_ONE)] = 3,
    threads: Annotated[int, Parameter(validator=AT_LEAST_ONE)] = 2,
) -> None:
    """Measure how fast ELMo runs on this machine.

    Example: elmokit bench --sizes small --sizes original

    Parameters
    ----------
    model
        A model of your own; without one, random models of the published sizes are made and measured.
    sizes
        small (1024/128), medium (2048/256), original (4096/512); small unless given. May be repeated.
    precisions
        fp32, int8; both unless given. May be repeated.
    text
        A UTF-8 text to take sentences from; the language reference that Python comes with unless given.
    sentences
        Sentences embedded together.
    rounds
        The best of so many runs counts.
    threads
        Threads to compute with.
    """
    from tempfile import TemporaryDirectory

    from elmokit.bench.contest import elmokit_contestant, measure
    from elmokit.bench.table import HEADER, row
    from elmokit.bench.workload import make_workload, write_random_model

    workload = make_workload(text, sentences)
    print(f"{sentences} sentences, {workload.tokens:,} tokens, {threads} threads, best of {rounds}\n\n{HEADER}")
    with TemporaryDirectory() as folder:
        workload.write(Path(folder, "workload.json"))
        models = {str(model): model} if model else {size: Path(folder, size) for size in sizes or ["small"]}
        for name, path in models.items():
            if not model:
                write_random_model(name, path)  # type: ignore[arg-type]
            for precision in precisions or ["fp32", "int8"]:
                command = elmokit_contestant(path, precision, Path(folder, "workload.json"), threads=threads)
                with command as contestant:
                    figures = measure(
                        contestant, workload, rounds=rounds, report=lambda line: print(line, file=sys.stderr)
                    )
                print(row(name, figures))
