"""From a corpus to shards, streams, steps, a checkpoint and its perplexity."""

from typing import TYPE_CHECKING

from elmokit.lazy import attach

if TYPE_CHECKING:
    from elmokit.pretrain.evaluation import Perplexity, perplexity
    from elmokit.pretrain.recipe import Recipe, make_recipe, read_recipe
    from elmokit.pretrain.run import pretrain

__all__ = ["Perplexity", "Recipe", "make_recipe", "perplexity", "pretrain", "read_recipe"]

_HOMES = {
    "pretrain": "elmokit.pretrain.run",
    "perplexity": "elmokit.pretrain.evaluation",
    "Perplexity": "elmokit.pretrain.evaluation",
    "Recipe": "elmokit.pretrain.recipe",
    "make_recipe": "elmokit.pretrain.recipe",
    "read_recipe": "elmokit.pretrain.recipe",
}
__getattr__, __dir__ = attach(__name__, _HOMES)
