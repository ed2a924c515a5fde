"""The study of words: neighbours, senses, substitutes, change, and the searchable index of occurrences."""

from typing import TYPE_CHECKING

from elmokit.lazy import attach

if TYPE_CHECKING:
    from elmokit.lexicon.association import find_collocations, find_keyness
    from elmokit.lexicon.cache import CachedCorpus
    from elmokit.lexicon.concordance import find_lines
    from elmokit.lexicon.index import build_index, open_index
    from elmokit.lexicon.neighbors import context_neighbors, word_neighbors
    from elmokit.lexicon.occurrences import find_occurrences, survey, type_vectors
    from elmokit.lexicon.plots import write_plot
    from elmokit.lexicon.predictions import surprisal, surprisals
    from elmokit.lexicon.senses import find_senses, sense_rows, static_groups
    from elmokit.lexicon.settings import SenseSettings, ShiftSettings
    from elmokit.lexicon.shift import find_shift, shift_rows
    from elmokit.lexicon.shift_plots import write_shift_plot
    from elmokit.lexicon.substitute_vectors import SubstituteVectors
    from elmokit.lexicon.substitution import substitutes
    from elmokit.lexicon.surprisal_tables import iter_surprisal, write_surprisal
    from elmokit.lexicon.surroundings import Surroundings
    from elmokit.lexicon.tables import table_rows, write_table
    from elmokit.lexicon.token_tables import align_surprisal, write_aligned
    from elmokit.text.corpus import make_corpus, open_corpus
    from elmokit.text.slices import slices_by

__all__ = [
    "CachedCorpus",
    "SenseSettings",
    "ShiftSettings",
    "Surroundings",
    "build_index",
    "context_neighbors",
    "find_occurrences",
]
__all__ += ["find_collocations", "find_keyness", "find_lines"]
__all__ += ["align_surprisal", "write_aligned"]
__all__ += ["find_senses", "find_shift", "make_corpus", "open_corpus", "open_index", "substitutes", "surprisal"]
__all__ += [
    "SubstituteVectors",
    "sense_rows",
    "shift_rows",
    "slices_by",
    "static_groups",
    "table_rows",
    "write_shift_plot",
    "write_table",
]
__all__ += ["iter_surprisal", "surprisals", "survey", "type_vectors", "word_neighbors", "write_plot", "write_surprisal"]

_HOMES = {
    "text.corpus": ("make_corpus", "open_corpus"),
    "text.slices": ("slices_by",),
    "lexicon.occurrences": ("find_occurrences", "survey", "type_vectors"),
    "lexicon.cache": ("CachedCorpus",),
    "lexicon.neighbors": ("context_neighbors", "word_neighbors"),
    "lexicon.senses": ("find_senses", "sense_rows", "static_groups"),
    "lexicon.surroundings": ("Surroundings",),
    "lexicon.substitute_vectors": ("SubstituteVectors",),
    "lexicon.plots": ("write_plot",),
    "lexicon.predictions": ("surprisal", "surprisals"),
    "lexicon.substitution": ("substitutes",),
    "lexicon.surprisal_tables": ("iter_surprisal", "write_surprisal"),
    "lexicon.token_tables": ("align_surprisal", "write_aligned"),
    "lexicon.association": ("find_collocations", "find_keyness"),
    "lexicon.concordance": ("find_lines",),
    "lexicon.shift": ("find_shift", "shift_rows"),
    "lexicon.shift_plots": ("write_shift_plot",),
    "lexicon.tables": ("table_rows", "write_table"),
    "lexicon.index": ("build_index", "open_index"),
    "lexicon.settings": ("SenseSettings", "ShiftSettings"),
}
__getattr__, __dir__ = attach(__name__, {name: f"elmokit.{home}" for home, names in _HOMES.items() for name in names})
