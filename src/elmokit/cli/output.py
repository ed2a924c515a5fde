"""What commands print of what they found: a sentence with its word in brackets, or JSON."""

import json
import sys
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmokit.lexicon.occurrences import Occurrence

LONGEST_SHOWN = 100  # characters on either side of a word


def shown(found: "str | Occurrence") -> str:
    """A word, or a sentence with the word in brackets, shortened on both sides if it is long."""
    return found if isinstance(found, str) else found.context.bracketed(found.position, reach=LONGEST_SHOWN)


def print_json(found: Any, *, indent: int | None = 2) -> None:
    """Print what was found as JSON, by numbers what cannot be printed: lone surrogates, or what a terminal lacks."""
    values = plain(found)
    text = json.dumps(values, ensure_ascii=False, indent=indent)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(values, indent=indent)
    print(text, flush=True)


def plain(value: Any) -> Any:
    """Dataclasses and named tuples as objects, arrays as lists; an occurrence without its vector."""
    from elmokit.lexicon.occurrences import Occurrence

    if isinstance(value, Occurrence):
        context, position, _ = value
        return {"token": value.token, "sentence": context.text, "position": position, "document": context.document}
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value
