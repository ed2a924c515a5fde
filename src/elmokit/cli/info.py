"""`elmokit info`: what a model is."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elmokit.checkpoints.checkpoint import Checkpoint


def info(model: str, /) -> None:
    """Describe a model: architecture, parameters, vocabulary, format.

    Example: elmokit info MODEL

    Parameters
    ----------
    model
        A model's folder, file or address.
    """
    from elmokit.checkpoints import read_checkpoint
    from elmokit.hub import local_path

    facts = _facts(read_checkpoint(local_path(model)))
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")


def _facts(checkpoint: "Checkpoint") -> dict[str, str]:
    config = checkpoint.config
    parameters = sum(weight.numel() for weight in checkpoint.weights.values())
    projection = f" → {config.projection}" if config.projected else ""
    return {
        "format": checkpoint.source,
        "parameters": f"{parameters:,}",
        "vectors": f"{config.layers + 1} layers of width {config.width}",
        "recurrent": f"{config.layers} × {config.cell.upper()} {config.hidden}{projection}, each direction",
        "residual": "yes" if config.residual else "no",
        "clips": f"cell {config.cell_clip or 'none'}, projection {config.projection_clip or 'none'}",
        "characters": _characters(checkpoint),
        "words": f"vectors of width {config.words.dim}" if config.words else "not read",
        "vocabulary": f"{len(checkpoint.vocabulary):,} words" if checkpoint.vocabulary is not None else "none",
        "tokenizer": config.tokenizer,
    }


def _characters(checkpoint: "Checkpoint") -> str:
    config = checkpoint.config.characters
    if config is None:
        return "not read"
    alphabet = "UTF-8 bytes" if config.alphabet == "bytes" else f"{len(config.characters):,} Unicode characters"
    filters = " ".join(f"{width}×{count}" for width, count in config.filters)
    return (
        f"{alphabet}, up to {config.max_characters} a word, width {config.dim}; filters {filters} "
        f"({config.activation}); highways {config.highways}"
    )
