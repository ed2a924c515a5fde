"""Many threads on one model: each must get what it would get alone."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from conftest import CONFIGS, random_elmo

from elmokit.batching import Batcher
from elmokit.config import ModelConfig
from torture.commands import WORDS
from torture.outcomes import Outcomes, isolated


def threads(pick: Random, _: Path) -> Outcomes:
    """Sentences by 2 to 32 threads, with a cache of any size, with and without batching."""
    config = CONFIGS[pick.choice(sorted(CONFIGS))]
    settings = {"token_cache_mb": pick.choice((0, 0.001, 64)), "precision": pick.choice(("fp32", "int8"))}
    sentences = [pick.choices(WORDS, k=pick.randint(1, 30)) for _ in range(100)]
    many, batched = pick.choice((2, 8, 32)), settings["precision"] == "fp32" and pick.random() < 0.5
    return isolated(lambda: _together(config, settings, sentences, many, batched=batched))


def _together(
    config: ModelConfig, settings: dict[str, Any], sentences: list[list[str]], many: int, *, batched: bool
) -> str | None:
    sys.setswitchinterval(1e-5)
    alone = random_elmo(config, **settings)
    expected = [alone.embed([words])[0] for words in sentences]
    elmo = random_elmo(config, **settings)
    with ThreadPoolExecutor(many) as pool, Batcher(elmo) as batcher:
        embed = batcher.embed if batched else elmo.embed
        found = [vectors for [vectors] in pool.map(lambda words: embed([words]), sentences)]
    near = 2e-6 if batched else 0
    same = (np.allclose(one, other, rtol=0, atol=near) for one, other in zip(found, expected, strict=True))
    return None if all(same) else "other vectors"
