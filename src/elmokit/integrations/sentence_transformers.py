"""sentence-transformers: ELMo as the module that reads text; pooling and whatever follows are the library's own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from elmokit.elmo import load
from elmokit.embedder import Layers
from elmokit.errors import ConfigError, MissingExtraError
from elmokit.model.linear import Precision

try:
    from sentence_transformers.base.modules import InputModule
except ImportError:
    raise MissingExtraError("the module for sentence-transformers needs it", "sentence-transformers") from None

FOLDER = "elmo"  # within the module's own, where the model is saved


class ElmoModule(InputModule):  # type: ignore[misc]
    """Texts → `token_embeddings`, (B, T, width), a vector per word, and `attention_mask`, (B, T), 1 for a real word.

    `SentenceTransformer(modules=[elmo, Pooling(elmo.get_embedding_dimension())])` makes sentence vectors of them. The
    model does not learn; modules after it may.
    """

    config_file_name = "elmo_config.json"
    config_keys = ["layers", "precision"]  # noqa: RUF012  (as the library declares it)
    save_in_root = False

    def __init__(self, model: str | Path = "en", *, layers: Layers = "average", precision: Precision = "fp32") -> None:
        super().__init__()
        if layers == "all":
            raise ConfigError("a word has one vector here, of one layer or mix: 'all' is not one")
        self.elmo, self.layers, self.precision = load(model, precision=precision), layers, precision
        self.elmo.embed([], layers=layers)  # says if there are no such layers

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """The words of each text, and which places of a padded batch hold one."""
        tokens = self.elmo.tokenize([prompt + text for text in inputs] if prompt else inputs)
        lengths = torch.tensor([len(words) for words in tokens])
        places = torch.arange(max([1, *map(len, tokens)]))  # the library pools at least one place
        return {"tokens": tokens, "attention_mask": (places < lengths[:, None]).long()}  # (B, T)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """The words' vectors, zeros where there is none."""
        mask = features["attention_mask"]
        padded = torch.zeros(*mask.shape, self.elmo.width)  # (B, T, width)
        for row, vectors in zip(padded, self.elmo.embed(features["tokens"], layers=self.layers), strict=True):
            row[: len(vectors)] = torch.from_numpy(vectors)
        return features | {"token_embeddings": padded.to(mask.device)}

    def get_embedding_dimension(self) -> int:
        """The width of a vector."""
        return self.elmo.width

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write the settings and the model itself."""
        self.save_config(output_path)
        self.elmo.save(Path(output_path, FOLDER), overwrite=True)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **settings: Any) -> "ElmoModule":
        """Read what `save` wrote, from a folder or from Hugging Face."""
        names = ("token", "cache_folder", "revision", "local_files_only")
        where = {"subfolder": subfolder} | {name: settings[name] for name in names if name in settings}
        config = cls.load_config(model_name_or_path, **where)
        return cls(Path(cls.load_dir_path(model_name_or_path, **where), FOLDER), **config)
