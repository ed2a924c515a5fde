"""A model's card, README.md: what is known of it as Markdown, and first as YAML, which the Hugging Face Hub reads."""

import json
import re
from collections.abc import Iterator
from typing import Any

from elmokit.checkpoints.checkpoint import Checkpoint
from elmokit.config import CharacterConfig, WordConfig
from elmokit.text.tokenizers import get_tokenizer

CARD = "README.md"
ADDRESS = "hf://owner/name"
"""What stands in a card for the address of a model that was not pushed yet."""
FRONT = "---\n"
LANGUAGE = re.compile("[a-z]{2,3}")  # ISO 639, as the Hub wants it
# Those that the Hub knows by name and that are given to models and text; any other is "other", with its own name.
LICENCES = """apache-2.0 mit bsd-2-clause bsd-3-clause isc mpl-2.0 unlicense cc0-1.0 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0
cc-by-sa-4.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-4.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 odc-by odbl pddl
gfdl gpl-2.0 gpl-3.0 lgpl-3.0 agpl-3.0""".split()
BODY = """# {name}

An ELMo: a bidirectional language model that gives each word of a sentence vectors of its own in that context.

```python
import elmokit

elmo = elmokit.load("{address}")  # or the path of the folder that this file lies in
vectors = elmo.embed(["A sentence is a str, or a list of its words."])
```

| | |
|---|---|
{table}
"""


def make_card(checkpoint: Checkpoint) -> str:
    """The model's own card, or one made of what is known of it; with front matter in either case."""
    card = checkpoint.card
    return card if card and card.startswith(FRONT) else front_matter(checkpoint) + (card or _body(checkpoint))


def without_front_matter(card: str) -> str:
    """What people read of a card."""
    _, _, body = card[len(FRONT) :].partition(f"\n{FRONT}") if card.startswith(FRONT) else ("", "", card)
    return body.lstrip("\n")


def front_matter(checkpoint: Checkpoint) -> str:
    """What the Hub reads of a card, YAML between two lines of dashes."""
    return FRONT + "".join(f"{line}\n" for line in _yaml(card_metadata(checkpoint))) + FRONT + "\n"


def card_metadata(checkpoint: Checkpoint) -> dict[str, Any]:
    """What the model knows of itself, by the Hub's names; what it does not know is left out."""
    about, tokenizer = checkpoint.about, checkpoint.config.tokenizer
    chinese = (tokenizer if isinstance(tokenizer, str) else tokenizer.name) == "jieba"
    languages = _listed(about.get("language", "zh" if chinese else ""))
    found = {
        "library_name": "elmokit",
        "pipeline_tag": "feature-extraction",
        "tags": ["elmo", "word-embeddings", "bilm"],
        "language": [language for language in languages if LANGUAGE.fullmatch(language)],
        **_licence(about.get("licence") or about.get("license", "")),
        "datasets": _listed(about.get("datasets", "")),
        "model-index": _results(_name(checkpoint), about.get("perplexity", "")),
    }
    return {name: value for name, value in found.items() if value}


def facts(checkpoint: Checkpoint) -> dict[str, str]:
    """What a model is made of and what is known of it, for people to read."""
    config, vocabulary = checkpoint.config, checkpoint.vocabulary
    projection = f" → {config.projection}" if config.projected else ""
    return {
        "parameters": f"{sum(weight.numel() for weight in checkpoint.weights.values()):,}",
        "vectors": f"{config.layers + 1} layers of width {config.width}",
        "recurrent": f"{config.layers} × {config.cell.upper()} {config.hidden}{projection}, each direction",
        "residual": "yes" if config.residual else "no",
        "clips": f"cell {config.cell_clip or 'none'}, projection {config.projection_clip or 'none'}",
        "characters": _characters(config.characters) if config.characters else "not read",
        "words": _words(config.words) if config.words else "not read",
        "vocabulary": "none" if vocabulary is None else f"{len(vocabulary):,} words",
        "tokenizer": str(get_tokenizer(config.tokenizer)),
    } | checkpoint.about


def _words(config: WordConfig) -> str:
    some = "" if config.rows == config.size else f" for the {config.rows:,} most frequent"
    return f"vectors of width {config.dim}{some}"


def _characters(config: CharacterConfig) -> str:
    alphabet = "UTF-8 bytes" if config.alphabet == "bytes" else f"{len(config.characters):,} Unicode characters"
    filters = " ".join(f"{width}×{count}" for width, count in config.filters)
    read = f"{alphabet}, up to {config.max_characters} a word, width {config.dim}"
    return f"{read}; filters {filters} ({config.activation}); highways {config.highways}"


def _body(checkpoint: Checkpoint) -> str:
    rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in facts(checkpoint).items()]
    return BODY.format(name=_name(checkpoint), address=ADDRESS, table="\n".join(rows))


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def _name(checkpoint: Checkpoint) -> str:
    return checkpoint.about.get("name", "ELMo")


def _listed(text: str) -> list[str]:
    return [part for part in re.split("[,;\\s]+", text) if part]


def _licence(text: str) -> dict[str, str]:
    """That of the weights: what is said before the first semicolon."""
    first, _, _ = text.lower().partition(";")
    named = re.sub(r"[^\w.]+", "-", first.removeprefix("weights:")).strip("-")[:80]
    return {"license": named} if not named or named in LICENCES else {"license": "other", "license_name": named}


def _results(name: str, perplexity: str) -> list[dict[str, Any]]:
    """The perplexity, which stands first in what is said of it, as the Hub lists results."""
    number = re.match(r"[0-9][0-9,]*(\.[0-9]+)?", perplexity)
    if number is None:
        return []
    task = {"type": "text-generation", "name": "language modelling in both directions"}
    metric = {"type": "perplexity", "name": "perplexity", "value": float(number[0].replace(",", ""))}
    dataset = {"type": "text", "name": perplexity.partition(" on ")[2] or "held-out text"}
    return [{"name": name, "results": [{"task": task, "dataset": dataset, "metrics": [metric]}]}]


def _yaml(value: Any) -> Iterator[str]:
    """The lines of a value that is not empty; a string is quoted as in JSON, for `no` is a language and not false."""
    if isinstance(value, dict):
        for name, part in value.items():
            nested = isinstance(part, dict | list)
            lines = list(_yaml(part))
            yield f"{name}:" if nested else f"{name}: {lines[0]}"
            yield from (f"  {line}" for line in lines if nested)
    elif isinstance(value, list):
        for part in value:
            first, *rest = _yaml(part)
            yield from (f"- {first}", *(f"  {line}" for line in rest))
    else:
        shown = value if not isinstance(value, str) else "".join(one if one.isprintable() else " " for one in value)
        yield json.dumps(shown, ensure_ascii=False)
