"""A corpus divided by what a table tells of its documents: by the decades of their dates, by their authors."""

import logging
import re
from dataclasses import replace

from elmokit.errors import ConfigError, DataError
from elmokit.text.corpus import TextCorpus
from elmokit.text.documents import iter_documents

logger = logging.getLogger(__name__)
YEAR = re.compile(r"\s*(-?\d+)")


def slices_by(corpus: TextCorpus, field: str, *, years: int | None = None) -> dict[str, TextCorpus]:
    """A part of the corpus for each value of a field of its metadata, in order; documents without one are left out.

    With `years`, values begin with a year, as 1813 and 1813-01-28 do, and a part has so many of them.
    """
    if years is not None and years < 1:
        raise ConfigError(f"a slice has {years} years: give 1 or more")
    values = {name: value for name, value in _values(corpus, field).items() if value}
    names = {value: _name(value, field, years) for value in set(values.values())}
    parts = {names[value]: set[str]() for value in sorted(names, key=_order)}
    for document, value in values.items():
        parts[names[value]].add(document)
    if len(parts) < 2:
        found = f"only {next(iter(parts))}" if parts else "no value"
        raise DataError(f"{corpus.name} has {found} as {field}: two slices or more are compared")
    return {name: replace(corpus, only=frozenset(documents)) for name, documents in parts.items()}


def _values(corpus: TextCorpus, field: str) -> dict[str, str]:
    """The field of each document; the logger is told of how many lack it."""
    if corpus.metadata is None:
        raise ConfigError(f"slices by {field} need a table that has it: give --metadata TABLE")
    if field not in corpus.metadata.fields:
        known = ", ".join(corpus.metadata.fields)
        raise ConfigError(f"{corpus.metadata.name} has no column {field!r}: it has {known}")
    values = {document.name: corpus.metadata.of(document.name)[field] for document in iter_documents(corpus.files)}
    if empty := [name for name, value in values.items() if not value]:
        logger.info(f"{len(empty)} of {len(values)} documents, such as {empty[0]}, have no {field}: left out")
    return values


def _name(value: str, field: str, years: int | None) -> str:
    if years is None:
        return value
    found = YEAR.match(value)
    if not found:
        raise DataError(f"{field} is {value!r} of a document, and should begin with a year")
    first = int(found[1]) // years * years
    return str(first) if years == 1 else f"{first}-{first + years - 1}"


def _order(value: str) -> tuple[float, str]:
    """Numbers by their size, and before what begins with none."""
    found = YEAR.match(value)
    return (int(found[1]) if found else float("inf")), value
