"""Labelled data from files, in the formats it is handed around in; .gz, .xz and .zst are unpacked as they are read."""

from elmokit.tasks.readers.columns import read_coreference, read_roles, read_tagged
from elmokit.tasks.readers.senses import Inventory, read_inventory, read_senses
from elmokit.tasks.readers.texts import find_labelled, find_pairs, read_labelled, read_pairs, read_questions

__all__ = [
    "Inventory",
    "find_labelled",
    "find_pairs",
    "read_coreference",
    "read_inventory",
    "read_labelled",
    "read_pairs",
    "read_questions",
]
__all__ += ["read_roles", "read_senses", "read_tagged"]
