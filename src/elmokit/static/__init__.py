"""One vector per word, what came before ELMo: one-hot, skip-gram, GloVe, with the same Embedder protocol.

>>> from elmokit.static import GloveSettings, TextSettings, load, open_text, train_glove
>>> with open_text(["novel.txt"], TextSettings(min_count=2)) as text:
...     vectors = train_glove(text, GloveSettings(dimensions=50, epochs=5))
>>> vectors.save("glove.txt")
>>> load("glove.txt", lower_case=True).embed(["The harbour was quiet."])[0].shape
(5, 50)
"""

from typing import TYPE_CHECKING

from elmokit.lazy import attach

if TYPE_CHECKING:
    from elmokit.static.corpus import open_text
    from elmokit.static.datasets import read_dataset
    from elmokit.static.embedders import OneHot, StaticVectors, load
    from elmokit.static.evaluation import evaluate, evaluate_in_context
    from elmokit.static.glove import train_glove
    from elmokit.static.settings import GloveSettings, SkipGramSettings, TextSettings
    from elmokit.static.skip_gram import train_skip_gram

__all__ = [
    "GloveSettings",
    "OneHot",
    "SkipGramSettings",
    "StaticVectors",
    "TextSettings",
    "evaluate",
    "evaluate_in_context",
    "load",
    "open_text",
    "read_dataset",
    "train_glove",
    "train_skip_gram",
]

_HOMES = {
    "OneHot": "elmokit.static.embedders",
    "StaticVectors": "elmokit.static.embedders",
    "load": "elmokit.static.embedders",
    "TextSettings": "elmokit.static.settings",
    "GloveSettings": "elmokit.static.settings",
    "SkipGramSettings": "elmokit.static.settings",
    "open_text": "elmokit.static.corpus",
    "train_glove": "elmokit.static.glove",
    "train_skip_gram": "elmokit.static.skip_gram",
    "read_dataset": "elmokit.static.datasets",
    "evaluate": "elmokit.static.evaluation",
    "evaluate_in_context": "elmokit.static.evaluation",
}
__getattr__, __dir__ = attach(__name__, _HOMES)
