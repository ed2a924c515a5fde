"""AllenNLP's ELMo as a contestant: `python allennlp_runner.py MODEL WORKLOAD`, in the environment of inference.py.

AllenNLP's package asks for libraries that no longer install together. Only the modules that compute ELMo are imported;
empty stand-ins take the places of the others.
"""

import importlib.util
import pathlib
import sys
import types

import numpy as np
import torch
from protocol import serve

BATCH = 64


def stand_in(name, **members):
    """An empty module with these members."""
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def import_elmo():
    """AllenNLP's biLM class and its mapping of words to characters."""
    root = pathlib.Path(importlib.util.find_spec("allennlp").submodule_search_locations[0])
    for package in ("", "modules", "nn", "common", "data", "data.tokenizers", "data.token_indexers"):
        parts = [part for part in package.split(".") if part]
        stand_in(".".join(["allennlp", *parts])).__path__ = [str(root.joinpath(*parts))]
    base = type("Base", (), {"register": classmethod(lambda cls, *a, **k: lambda registered: registered)})
    sys.modules["allennlp.common"].__dict__.update(FromParams=base, Registrable=base, Params=dict)
    stand_in("allennlp.common.checks", ConfigurationError=type("ConfigurationError", (Exception,), {}))
    stand_in("allennlp.common.file_utils", cached_path=lambda path: path)
    stand_in(
        "allennlp.common.util",
        lazy_groups_of=None,
        int_to_device=lambda device: device,
        is_distributed=lambda: False,
        is_global_primary=lambda: True,
        pad_sequence_to_length=lambda seq, n, default_value=lambda: 0: (list(seq) + [default_value()] * n)[:n],
    )
    for module, member in {
        "instance": "Instance",
        "vocabulary": "Vocabulary",
        "batch": "Batch",
        "fields": "TextField",
        "tokenizers": "Token",
        "tokenizers.token_class": "Token",
    }.items():
        stand_in(f"allennlp.data.{module}", **{member: base})
    stand_in("allennlp.data.token_indexers.token_indexer", TokenIndexer=base, IndexedTokenList=dict)
    from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper
    from allennlp.modules.elmo import _ElmoBiLm

    return _ElmoBiLm, ELMoCharacterMapper()


def main():
    """Load, then serve."""
    bilm_class, mapper = import_elmo()
    folder = pathlib.Path(sys.argv[1])
    bilm = bilm_class(str(folder / "options.json"), str(folder / "weights.hdf5")).eval()

    def run(batch):
        char_ids = torch.zeros(len(batch), max(map(len, batch)), 50, dtype=torch.long)
        for row, sentence in enumerate(batch):
            char_ids[row, : len(sentence)] = torch.tensor([mapper.convert_word_to_char_ids(word) for word in sentence])
        with torch.no_grad():
            return bilm(char_ids)["activations"]

    def embed(sentences):
        for start in range(0, len(sentences), BATCH):
            run(sentences[start : start + BATCH])

    def save_vectors(sentences, path):
        """Each sentence from a state of zeros; its bounds left out."""
        layers = []
        for sentence in sentences:
            bilm._elmo_lstm._states = None
            layers.append(torch.cat(run([sentence]))[:, 1:-1].numpy())
        np.save(path, np.concatenate(layers, axis=1))

    serve(embed, save_vectors)


if __name__ == "__main__":
    main()
