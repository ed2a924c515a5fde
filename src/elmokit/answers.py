"""What was found as JSON values, the one conversion for the command line and for servers; as HTML for notebooks."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from math import isfinite
from typing import Any


def plain(value: Any) -> Any:
    """Dataclasses and named tuples as objects, arrays as lists; a number that is not finite, which JSON lacks, as none.

    A value that has a method `json_fields` is the object that it gives.
    """
    if hasattr(value, "json_fields"):
        value = value.json_fields()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def as_text(value: Any, *, indent: int | None = None, encoding: str = "utf-8") -> str:
    """JSON that the encoding can write: by its number what it lacks, such as a lone surrogate."""
    values = plain(value)
    text = json.dumps(values, ensure_ascii=False, indent=indent)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(values, indent=indent)
    return text


def html_table(rows: Iterable[Sequence[object]], *, caption: str = "") -> str:
    """Rows for a notebook to show, the first cell of each a heading; nothing in them is taken for HTML."""
    found = "".join(f"<tr><th>{escape(str(head))}</th>{_cells(rest)}</tr>" for head, *rest in rows)
    return f"<table><caption>{escape(caption)}</caption>{found}</table>"


def _cells(values: Iterable[object]) -> str:
    return "".join(f"<td>{escape(str(value))}</td>" for value in values)
