"""elmokit: contextual word vectors from ELMo models, exact and fast."""

from typing import TYPE_CHECKING

from elmokit.lazy import attach

if TYPE_CHECKING:
    from elmokit.elmo import Elmo, load
    from elmokit.embedding import ElmoEmbedding
    from elmokit.model.mix import ScalarMix

__version__ = "0.1.0"
__all__ = ["Elmo", "ElmoEmbedding", "ScalarMix", "__version__", "load"]

_HOMES = {
    "load": "elmokit.elmo",
    "Elmo": "elmokit.elmo",
    "ElmoEmbedding": "elmokit.embedding",
    "ScalarMix": "elmokit.model.mix",
}
__getattr__, __dir__ = attach(__name__, _HOMES, "__version__")
