"""elmokit: contextual word vectors from ELMo models, exact and fast."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """Import torch only when something that needs it is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'elmokit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
