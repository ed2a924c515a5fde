"""`elmokit`, and `python -m elmokit`: a command, and Ctrl-C at any moment of it."""

import signal
import sys
from threading import Timer, main_thread
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

SECONDS_LATER = 0.05
_heard: list[int] = []


def main() -> None:
    """Run one command; whenever Ctrl-C comes, it leaves with 130 and without a traceback."""
    # A shell has those that it runs in the background ignore it; Windows cannot send it to a thread.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler and hasattr(signal, "pthread_kill"):
        signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _interrupt_if_dropped
    try:
        from elmokit.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as left:  # C code that was interrupted may say that something else is wrong
        sys.exit(130 if left.code == 2 and _heard else left.code)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what was to be done is done


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise, but not in the midst of an import: torch's would end the process, and importlib may drop it."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return _interrupt_later()
        frame = frame.f_back
    _heard.append(number)
    raise KeyboardInterrupt


def _interrupt_if_dropped(ignored: "UnraisableHookArgs") -> None:
    """Python drops what is raised in a destructor or a callback."""
    if ignored.exc_type is KeyboardInterrupt:
        _interrupt_later()
    else:
        sys.__unraisablehook__(ignored)


def _interrupt_later() -> None:
    timer = Timer(SECONDS_LATER, signal.pthread_kill, (main_thread().ident, signal.SIGINT))
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    main()
