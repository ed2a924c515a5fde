"""What AllenNLP's `Elmo` makes of small models, for tests/test_integrations_allennlp.py to compare with.

    .benchmarks/allennlp/bin/python benchmarks/peers/allennlp_activations.py tests/data/allennlp WEIGHTS...

(the environment is the one of `benchmarks/inference.py --peers AllenNLP`). For every WEIGHTS, an HDF5 file with its
options.json beside it, one .npz is written, named after the file's folder. Each scenario begins with a fresh `Elmo`, so
with a state of zeros.
"""

import json
import pathlib
import sys
from importlib import import_module
from itertools import islice

import numpy as np
import torch
from allennlp_runner import import_elmo, stand_in

SENTENCES = json.loads(
    pathlib.Path(__file__, "../../../tests/data/golden/sentences.json").resolve().read_text(encoding="utf-8")
)
CALLS = (3, 5, 2, 3)  # sentences a call where the state is carried
PADDING = "@@PADDING@@"
LARGEST = 50_000  # weights of a model that are kept with all their gradients


def import_allennlp():
    """AllenNLP's module elmo, with what it needs to cache a vocabulary."""
    _, mapper = import_elmo()
    elmo = sys.modules["allennlp.modules.elmo"]

    def batch_to_ids(batch):
        ids = torch.zeros(len(batch), max(map(len, batch)), 50, dtype=torch.long)
        for row, sentence in enumerate(batch):
            ids[row, : len(sentence)] = torch.tensor([mapper.convert_word_to_char_ids(word) for word in sentence])
        return ids

    def lazy_groups_of(items, size):
        items = iter(items)
        return iter(lambda: list(islice(items, size)), [])

    elmo.batch_to_ids, elmo.lazy_groups_of = batch_to_ids, lazy_groups_of
    sys.modules["allennlp.common"].Tqdm = None
    sys.modules["allennlp.common.file_utils"].__dict__.update(get_file_extension=None, is_url_or_existing_file=None)
    package = stand_in("allennlp.modules.token_embedders")
    package.__path__ = [str(pathlib.Path(elmo.__file__).with_name("token_embedders"))]
    package.Embedding = import_module("allennlp.modules.token_embedders.embedding").Embedding
    elmo.ElmoTokenEmbedder = import_module("allennlp.modules.token_embedders.elmo_token_embedder").ElmoTokenEmbedder
    return elmo


class Scenarios:
    """Everything that is compared, for one model."""

    def __init__(self, allennlp, weights):
        self.allennlp, self.arrays = allennlp, {}
        self.files = (str(weights.with_name("options.json")), str(weights))
        self.ids = allennlp.batch_to_ids(SENTENCES)

    def make(self, count=1, **settings):
        """An `Elmo` without dropout; its second mix, if there is one, as if it had been trained."""
        elmo = self.allennlp.Elmo(*self.files, count, dropout=0.0, **settings)
        if count > 1:
            for number, weight in enumerate(elmo.scalar_mix_1.scalar_parameters):
                weight.data.fill_(0.4 - 0.3 * number)
            elmo.scalar_mix_1.gamma.data.fill_(1.5)
        return elmo

    def keep(self, name, output):
        """Keep what a call gave."""
        for number, vectors in enumerate(output["elmo_representations"]):
            self.arrays[f"{name}/{number}"] = vectors.detach().numpy()
        self.arrays[f"{name}/mask"] = output["mask"].numpy()

    def run(self):
        """All scenarios, by name."""
        self.arrays["ids"] = self.ids.numpy().astype(np.int16)
        both = self.make(2)
        self.keep("mixed", both(self.ids))
        self.keep("bounds", self.make(keep_sentence_boundaries=True)(self.ids))
        self.keep("normed", self.make(do_layer_norm=True)(self.ids))
        self.keep("normed_bounds", self.make(do_layer_norm=True, keep_sentence_boundaries=True)(self.ids))
        first = [-9e10, 1.0] + [-9e10] * (both._elmo_lstm.num_layers - 2)
        self.keep("fixed", self.make(scalar_mix_parameters=first)(self.ids))
        self.keep("padded", self.make()(torch.nn.functional.pad(self.ids, (0, 0, 0, 3))))
        self.keep("four", self.make()(self.ids[:12].view(3, 4, *self.ids.shape[1:])))
        self.cached()
        self.stateful()
        self.layers()
        self.odd_ids()
        self.token_embedder()
        self.gradients("gradients_normed", self.make(2, do_layer_norm=True))
        if sum(weight.numel() for weight in both.parameters()) < LARGEST:
            self.arrays |= {f"state/{name}": weight.numpy() for name, weight in both.state_dict().items()}
            self.gradients("gradients", self.make(2, requires_grad=True))
        return self.arrays

    def cached(self):
        """Words by their numbers in a vocabulary, and one that is not in it."""
        words = [PADDING, *sorted({word for sentence in SENTENCES for word in sentence})]
        numbers = torch.zeros(self.ids.shape[:2], dtype=torch.long)
        for row, sentence in enumerate(SENTENCES):
            numbers[row, : len(sentence)] = torch.tensor([words.index(word) for word in sentence])
        elmo = self.make(vocab_to_cache=words)
        self.keep("cached", elmo(self.ids, numbers))
        self.arrays["cached/numbers"] = numbers.numpy()
        self.arrays["cached/weight"] = elmo.state_dict()["_elmo_lstm._word_embedding.weight"].numpy()

    def stateful(self):
        """One call after another, each with its own number of sentences."""
        elmo, done = self.make(), 0
        for call, size in enumerate(CALLS):
            self.keep(f"stateful/{call}", elmo(self.allennlp.batch_to_ids(SENTENCES[done : done + size])))
            done += size

    def layers(self):
        """The biLM itself, as AllenNLP's former ElmoEmbedder gave it: no bounds, all in one batch."""
        bilm = self.allennlp._ElmoBiLm(*self.files)
        output = bilm(self.ids)
        inner = [self.allennlp.remove_sentence_boundaries(layer, output["mask"])[0] for layer in output["activations"]]
        self.arrays["layers"] = torch.stack(inner, dim=1).numpy()

    def odd_ids(self):
        """Tokens spelled as no word is: 0 and padding among their characters."""
        ids = self.ids.clone()
        ids[:, ::2, 3] = 0
        ids[:, ::3, 1:3] = 261
        ids[:, 1::4, 20:] = 0
        ids *= self.ids.any(dim=-1, keepdim=True)
        self.arrays["odd/ids"] = ids.numpy().astype(np.int16)
        self.keep("odd", self.make()(ids))
        encoder = self.allennlp._ElmoCharacterEncoder(*self.files)
        for name, given in (("usual", self.ids), ("odd", ids)):
            output = encoder(given)
            vectors, mask = self.allennlp.remove_sentence_boundaries(output["token_embedding"], output["mask"])
            self.arrays[f"encoder/{name}"] = (vectors * mask[..., None]).numpy()
        self.arrays["encoder/bounds"] = output["token_embedding"][0, [0, int(output["mask"][0].sum()) - 1]].numpy()

    def token_embedder(self):
        """One mix, normed and projected."""
        embedder = self.allennlp.ElmoTokenEmbedder(*self.files, do_layer_norm=True, dropout=0.0, projection_dim=5)
        for weight in embedder._projection.parameters():
            weight.data = torch.arange(weight.numel(), dtype=torch.float64).sin().to(weight.dtype).view_as(weight)
        self.arrays["projected/state"] = np.array(sorted(name for name in embedder.state_dict() if "lstm" not in name))
        self.arrays["projected"] = embedder(self.ids).detach().numpy()

    def gradients(self, name, elmo):
        """Of every weight that learns, for a loss that weighs every number of the output differently."""
        vectors = torch.stack(elmo(self.ids)["elmo_representations"])
        factors = torch.arange(vectors.numel(), dtype=torch.float64).sin().to(vectors.dtype).view_as(vectors)
        (vectors * factors).sum().backward()
        for weight, values in elmo.named_parameters():
            if values.grad is not None:
                self.arrays[f"{name}/{weight}"] = values.grad.numpy()


def main():
    """Write a file a model."""
    allennlp = import_allennlp()
    target = pathlib.Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for argument in sys.argv[2:]:
        weights = pathlib.Path(argument).resolve()
        np.savez_compressed(target / f"{weights.parent.name}.npz", **Scenarios(allennlp, weights).run())


if __name__ == "__main__":
    main()
