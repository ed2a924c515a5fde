"""Names that a package offers and imports only when they are asked for: torch takes a second."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any


def attach(package: str, homes: Mapping[str, str], *here: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names live in these modules, or in itself."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with garbage_left():
            module = import_module(homes[name])
        return getattr(module, name)

    return get, lambda: sorted({*homes, *here})


@contextmanager
def garbage_left() -> Iterator[None]:
    """Without garbage collection, which takes a seventh of the time of an import and finds next to nothing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
