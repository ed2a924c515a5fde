"""`elmokit bench`: how fast a model runs here."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

from elmokit.translation import translate

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
    latency: Annotated[bool, Parameter(negative="")] = False,
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
        A text to take sentences from; the language reference that Python comes with unless given.
    sentences
        Sentences embedded together.
    rounds
        The best of so many runs counts.
    threads
        Threads to compute with.
    latency
        Measure how long 1, 8 and 32 sentences of 20 tokens take, and one of 5, 20 and 100, on one thread and on two.
    """
    from tempfile import TemporaryDirectory

    from elmokit import latency as calls
    from elmokit.bench import HEADER, make_workload, measure, write_random_model
    from elmokit.progress.drawing import watched

    workload = make_workload(text, sentences)
    tokens = sum(map(len, workload[0]))
    if not latency:
        print(translate(f"{sentences} sentences, {tokens:,} tokens, {threads} threads, best of {rounds}"))
        print(f"\n{HEADER}")
    with TemporaryDirectory() as folder, watched("bench") as progress:
        for name in [str(model)] if model else sizes or ["small"]:
            path = model or Path(folder, name)
            if not model:
                write_random_model(name, path)
            if latency:
                print(translate(f"{name}, words that are known"), f"\n\n{calls.HEADER}", sep="")
                words = [word for sentence in workload[0] for word in sentence]
                for found in calls.measure_latency(str(path), precisions or ["fp32", "int8"], words, progress=progress):
                    print(found.row(), flush=True)
                continue
            for precision in precisions or ["fp32", "int8"]:
                figures = measure(str(path), precision, *workload, rounds=rounds, threads=threads, progress=progress)
                print(figures.row(name, f"elmokit {precision}", tokens))
