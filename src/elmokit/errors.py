"""What can go wrong, in the user's terms."""

import unicodedata

NOT_SHOWN = ("Cc", "Cs", "Zl", "Zp")  # control characters, halves of characters, ends of lines


class ElmoError(Exception):
    """The base of every error that elmokit raises on purpose: its message is one sentence meant for the user."""

    def __str__(self) -> str:
        """The message in one line, whatever the names of files in it hold."""
        return "".join(
            ascii(letter)[1:-1] if unicodedata.category(letter) in NOT_SHOWN else letter for letter in super().__str__()
        )


class ConfigError(ElmoError):
    """A setting that is unknown, out of range or at odds with another."""


class CheckpointError(ElmoError):
    """A model on disk that is missing, damaged or not what its description says."""


class DataError(ElmoError, ValueError):
    """Text or labels that cannot be read as what they should be."""


class OutputError(ElmoError):
    """A result that cannot be written where it was asked for."""


class MissingExtraError(ElmoError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f'{what}: pip install "elmokit[{extra}]", or in a clone pip install -e ".[{extra}]"')


class OverloadError(ElmoError):
    """More calls wait than may."""


class DeadlineError(ElmoError, TimeoutError):
    """A call was not begun in time."""
