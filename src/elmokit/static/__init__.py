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
    from elmokit.static.embedders import OneHot, StaticVectors, load
    from elmokit.static.evaluation import evaluate, evaluate_in_context, read_dataset
    from elmokit.static.glove import train_glove
    from elmokit.static.settings import GloveSettings, SkipGramSettings, TextSettings
    from elmokit.static.skip_gram import train_skip_gram

__all__ = ["GloveSettings", "OneHot", "SkipGramSettings", "StaticVectors", "TextSettings", "evaluate"]
__all__ += ["evaluate_in_context", "load", "open_text", "read_dataset", "train_glove", "train_skip_gram"]

_MODULES = {
    "corpus": ("open_text",),
    "embedders": ("OneHot", "StaticVectors", "load"),
    "evaluation": ("evaluate", "evaluate_in_context", "read_dataset"),
    "glove": ("train_glove",),
    "settings": ("GloveSettings", "SkipGramSettings", "TextSettings"),
    "skip_gram": ("train_skip_gram",),
}
_HOMES = {name: f"elmokit.static.{module}" for module, names in _MODULES.items() for name in names}
__getattr__, __dir__ = attach(__name__, _HOMES)
