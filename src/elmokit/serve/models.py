"""Models by the names that clients know them by, and what is told of them."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from elmokit.bundled import bundled_path
from elmokit.checkpoints.cards import CARD, without_front_matter
from elmokit.config import config_to_dict
from elmokit.elmo import Elmo
from elmokit.text.tokenizers import get_tokenizer


def by_name(sources: Iterable[str | Path]) -> dict[str, str | Path]:
    """Each by the last part of its path or address."""
    found: dict[str, str | Path] = {}
    for source in sources:
        name = os.path.basename(str(source).rstrip("/"))  # noqa: PTH119  (an address is no path)
        name = Path(source).resolve().name if name in (".", "..") else name
        found[free_name(name or "model", found)] = source
    return found


def free_name(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with a number if there is one already."""
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return name if name not in taken else next(other for other in numbered if other not in taken)


def read_card(source: str | Path) -> str | None:
    """The card beside a model, in Markdown, if it has one."""
    path = (bundled_path(str(source)) or Path(source).expanduser()) / CARD
    return without_front_matter(path.read_text(encoding="utf-8")) if path.is_file() else None


def describe_model(name: str, elmo: Elmo, card: str | None) -> dict[str, Any]:
    """What a model is made of, and its card."""
    weights = sum(weight.numel() for weight in elmo.language_model.parameters())
    sizes = {"layers": elmo.layer_count, "width": elmo.width, "parameters": weights, "digest": elmo.digest}
    words = None if elmo.vocabulary is None else len(elmo.vocabulary)
    reading = {"vocabulary": words, "tokenizer": str(get_tokenizer(elmo.config.tokenizer))}
    reading |= {"predicts": elmo.language_model.softmax is not None, "precision": elmo.engine.precision}
    config = config_to_dict(elmo.config)
    if config.get("characters"):
        config["characters"] = {**config["characters"], "characters": len(config["characters"].get("characters", ""))}
    return {"name": name} | sizes | reading | {"config": config, "about": elmo.about, "card": card}
