"""Coreference in the last column of CoNLL-2012 files: (1 opens a mention of cluster 1, 1) closes it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from elmokit.tasks.examples import CoreferenceDocument, Place
from elmokit.tasks.readers.conll2012 import COREFERENCE, WORD, Row, Rows, conll_files, read_documents
from elmokit.tasks.readers.lines import at_least_one
from elmokit.tasks.readers.penn import unescape
from elmokit.text.sentences import Span

NOTHING = ("-", "_", "*")
_MARK = re.compile(r"(?P<opens>\(?)(?P<cluster>[^()|]+)(?P<closes>\)?)")


def read_coreference(path: Path) -> Iterator[CoreferenceDocument]:
    """The documents of a file, or of all files under a folder whose names end in "conll"."""
    documents = (_document(rows) for file in conll_files(path) for rows in read_documents(file))
    return at_least_one(documents, path, "documents in the columns of CoNLL-2012")


def _document(document: Rows) -> CoreferenceDocument:
    sentences = tuple(tuple(unescape(row.cells[WORD]) for row in rows) for rows in document.sentences)
    reader = _Mentions()
    for position, row in enumerate(row for rows in document.sentences for row in rows):
        reader.read(position, row)
    return CoreferenceDocument(document.name, sentences, reader.clusters(), document.place)


class _Mentions:
    """The mentions of a document as its lines are read."""

    def __init__(self) -> None:
        self.opened: dict[str, list[tuple[int, Place]]] = defaultdict(list)
        self.found: dict[str, set[Span]] = defaultdict(set)

    def read(self, position: int, row: Row) -> None:
        """Take in what the last column of a line says."""
        cell = row.cells[COREFERENCE]
        for mark in () if cell in NOTHING else cell.split("|"):
            found = _MARK.fullmatch(mark)
            if found is None or not (found["opens"] or found["closes"]):
                raise row.place.error(f"found {cell!r}: expected '-', '(1', '1)' or '(1)', with '|' between several")
            if found["opens"]:
                self.opened[found["cluster"]].append((position, row.place))
            if found["closes"]:
                self._close(found["cluster"], position, row.place)

    def _close(self, cluster: str, position: int, place: Place) -> None:
        if not self.opened[cluster]:
            raise place.error(f"unbalanced bracket: '{cluster})' closes nothing")
        self.found[cluster].add(Span(self.opened[cluster].pop()[0], position + 1))

    def clusters(self) -> tuple[tuple[Span, ...], ...]:
        """All clusters, in the order of their first mentions."""
        for cluster, opened in self.opened.items():
            if opened:
                raise opened[0][1].error(f"unbalanced bracket: '({cluster}' is not closed in its document")
        return tuple(sorted(tuple(sorted(mentions)) for mentions in _merged(self.found.values())))


def _merged(clusters: Iterable[set[Span]]) -> list[set[Span]]:
    """Clusters that share a mention are one: OntoNotes has some mentions in two."""
    merged: list[set[Span]] = []
    for cluster in clusters:
        others = [other for other in merged if other.isdisjoint(cluster)]
        merged = [*others, cluster.union(*(other for other in merged if not other.isdisjoint(cluster)))]
    return merged
