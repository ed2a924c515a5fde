"""Work done side by side, in steps, so that it can be stopped and watched."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

Progress = Callable[[int, int], None]


def run_together(jobs: Sequence[Iterable[int]], total: int, progress: Progress | None) -> None:
    """Go through all jobs at once, a thread each; a job says after each step how far it is.

    An error in one, or Ctrl-C, stops the others after their step. `progress` is told what is done of the total.
    """
    stop, done = Event(), [0] * len(jobs)

    def run(number: int) -> None:
        for steps in jobs[number]:
            done[number] = steps
            if stop.is_set():
                return
            if progress:
                progress(sum(done), total)

    with ThreadPoolExecutor(len(jobs)) as pool:
        try:
            list(pool.map(run, range(len(jobs))))
        except BaseException:
            stop.set()
            raise
