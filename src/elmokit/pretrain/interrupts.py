"""When a training run may be interrupted: between two steps, by Ctrl-C or by `kill`."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM, all that reaches what a shell runs in the background, counts as Ctrl-C, unless it has a handler."""
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C, and what counts as it, waits for the end of a step: half of one is nothing to go on from."""
    if current_thread() is not main_thread():  # nobody is heard here
        yield
        return
    interrupt, terminate = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    handlers = {signal.SIGINT: interrupt} if callable(interrupt) else {}
    if terminate is signal.default_int_handler:
        handlers[signal.SIGTERM] = terminate
    pressed: list[int] = []
    for number in handlers:
        signal.signal(number, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if pressed:
        raise KeyboardInterrupt
