"""ELMoForManyLangs' `Embedder`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from elmokit.elmo import load
from elmokit.embedder import Layers, Vectors

AVERAGE, ALL = -1, -2
LAYERS: dict[int, Layers] = {AVERAGE: "average", ALL: "all"}


class Embedder:
    """Sentences, each a list of tokens → an array each; `output_layer` is a layer, -1 for their mean or -2 for all."""

    def __init__(self, model_dir: str | Path, batch_size: int = 64) -> None:
        self.model_dir, self.batch_size = model_dir, batch_size  # batches are made by tokens, not sentences
        self.elmo = load(model_dir)

    def sents2elmo(self, sents: Iterable[Sequence[str]], output_layer: int = AVERAGE) -> list[Vectors]:
        """(T, D) each, or (L, T, D) for all layers."""
        return self.elmo.embed(sents, layers=LAYERS.get(output_layer, output_layer))
