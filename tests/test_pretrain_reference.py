"""A whole training step against a plain, slow reference: the equations word by word, in double precision.

The reference shares no code with the package: loops over time, columns, characters and words, and torch's autograd.
"""

import math
import random

import numpy as np
import pytest
import torch

from elmokit.config import CharacterConfig, ModelConfig, SoftmaxConfig, WordConfig
from elmokit.model.language_model import LanguageModel
from elmokit.model.softmax import draw_sample
from elmokit.pretrain.corpus import prepare
from elmokit.pretrain.recipe import Recipe, TrainSettings
from elmokit.pretrain.trainer import Trainer, model_config

FILTERS = ((1, 3), (2, 2), (4, 3))
MAX_CHARACTERS = 8
HIDDEN, PROJECTION, LAYERS = 5, 3, 2
CELL_CLIP, OUTPUT_CLIP = 0.4, 0.3
BATCH, UNROLL, CHUNKS = 3, 7, 2
GRADIENT_SCALE = 20.0
SEED = 3
SAMPLES = 5
CUTOFFS = (5, 9)
BOUNDS = {"<S>": 256, "</S>": 257}
BEGINS = ("<S>", "</S>")  # forward, backward


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Short sentences, some of whose words the vocabulary lacks and some of which are cut."""
    words = "the cat sees a bird and 小猫 likes 月亮 remembering internationalisation".split()
    pick = random.Random(0)
    weights = range(len(words), 0, -1)
    lines = [" ".join([*pick.choices(words, weights, k=pick.randint(1, 4)), f"rare{n}"][n % 2 :]) for n in range(60)]
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    settings = {"tokenizer": "whitespace", "lines": "sentences", "min_count": 2, "valid_share": 0.0, "workers": 1}
    return prepare([folder / "a.txt"], folder / "ids", **settings)


def make_trainer(corpus, *, kind, cell, reset) -> Trainer:
    """All weights large enough that clips, gates and resets matter."""
    model = ModelConfig(
        characters=CharacterConfig(max_characters=MAX_CHARACTERS, dim=4, filters=FILTERS, highways=1),
        words=WordConfig(dim=2),
        cell=cell,
        hidden=HIDDEN,
        projection=PROJECTION,
        layers=LAYERS,
        cell_clip=CELL_CLIP,
        projection_clip=OUTPUT_CLIP,
        forget_bias=1.0,
        softmax=SoftmaxConfig(kind=kind, samples=SAMPLES, cutoffs=CUTOFFS),
    )
    training = TrainSettings(
        batch=BATCH,
        unroll=UNROLL,
        reset=reset,
        dropout=0.0,
        gradient_scale=GRADIENT_SCALE,
        accumulate=CHUNKS,
        seed=SEED,
    )
    recipe = Recipe(model=model, training=training)
    language_model = LanguageModel(model_config(recipe, corpus)).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in language_model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64) * 0.6)
    return Trainer(language_model, recipe, corpus)


class Reference:
    """The same weights, by their names on disk; `run` adds to their gradients."""

    def __init__(self, weights, vocabulary, *, kind, cell, reset):
        self.w = {name: weight.detach().clone().requires_grad_() for name, weight in weights.items()}
        self.vocabulary, self.reset = list(vocabulary), reset
        self.cell = {"lstm": self.lstm, "gru": self.gru}[cell]
        self.loss_of = {"full": self.full, "sampled": self.sampled, "adaptive": self.adaptive}[kind]
        zeros = torch.zeros(PROJECTION, dtype=torch.float64), torch.zeros(HIDDEN, dtype=torch.float64)
        keys = [
            (direction, column, level) for direction in range(2) for column in range(BATCH) for level in range(LAYERS)
        ]
        self.zeros, self.state = zeros, dict.fromkeys(keys, zeros)

    def run(self, chunk, number):
        """The summed loss and the number of targets of one chunk of text, as (time, column) in each direction."""
        loss, targets = torch.zeros((), dtype=torch.float64), 0
        self.state = {key: (h.detach(), c.detach()) for key, (h, c) in self.state.items()}
        for direction, (words, wanted) in enumerate(chunk):
            self.sample = self.draw(number, direction)
            for time in range(UNROLL):
                for column in range(BATCH):
                    output = self.output(direction, column, words[time][column])
                    if wanted[time][column] >= 0:
                        loss = loss + self.loss_of(output, wanted[time][column])
                        targets += 1
        (0.5 * GRADIENT_SCALE * loss / (BATCH * UNROLL * CHUNKS)).backward()
        return loss.item(), targets

    def output(self, direction, column, word):
        """The top layer at one step: the clipped output recurs, the residual is outside of it."""
        x = self.token(word)
        begins = self.reset == "sentence" and word == BEGINS[direction]
        for level in range(LAYERS):
            name = f"{('forward', 'backward')[direction]}_layers.{level}"
            h, c = self.zeros if begins else self.state[direction, column, level]
            h, c = self.cell(name, x, h, c)
            self.state[direction, column, level] = h, c
            x = h + x if level > 0 else h
        return x

    def token(self, word):
        """[word vector; highway(relu(max over positions (conv + bias)))], projected."""
        known = self.vocabulary.index(word if word in self.vocabulary else "<UNK>")
        spelled = [BOUNDS[word]] if word in BOUNDS else list(word.encode())[: MAX_CHARACTERS - 2]
        ids = [258, *spelled, 259]
        ids += [260] * (MAX_CHARACTERS - len(ids))
        rows = [self.w["tokens.characters.embedding.weight"][id] for id in ids]
        found = []
        for number, (width, _) in enumerate(FILTERS):
            kernel, bias = self.pair(f"tokens.characters.convolutions.{number}")  # (n, E, width), (n,)
            starts = range(MAX_CHARACTERS - width + 1)
            windows = [bias + sum(kernel[:, :, k] @ rows[start + k] for k in range(width)) for start in starts]
            found.append(torch.stack(windows).max(dim=0).values)
        x = torch.cat(found).relu()
        gate, transform = (self.linear(f"tokens.characters.highways.0.{part}", x) for part in ("gate", "transform"))
        gate = torch.sigmoid(gate)
        x = gate * transform.relu() + (1 - gate) * x
        return self.linear("tokens.projection", torch.cat([self.w["tokens.words.weight"][known], x]))

    def pair(self, name):
        return self.w[f"{name}.weight"], self.w[f"{name}.bias"]

    def linear(self, name, x):
        weight, bias = self.pair(name)
        return weight @ x + bias

    def lstm(self, name, x, h, c):
        i, f, o, g = self.linear(name, torch.cat([x, h])).split(HIDDEN)
        c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
        c = c.clamp(-CELL_CLIP, CELL_CLIP)
        h = self.w[f"{name}.projection"] @ (torch.sigmoid(o) * torch.tanh(c))
        return h.clamp(-OUTPUT_CLIP, OUTPUT_CLIP), c

    def gru(self, name, x, h, c):
        weight, bias = self.pair(name)
        x_r, x_z, x_n = (weight[:, :PROJECTION] @ x + bias).split(HIDDEN)
        h_r, h_z, h_n = (weight[:, PROJECTION:] @ h).split(HIDDEN)
        r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        n = torch.tanh(x_n + r * (h_n + self.w[f"{name}.candidate_bias"]))
        c = ((1 - z) * n + z * c).clamp(-CELL_CLIP, CELL_CLIP)
        return (self.w[f"{name}.projection"] @ c).clamp(-OUTPUT_CLIP, OUTPUT_CLIP), c

    def full(self, h, target, name="softmax"):
        return -torch.log_softmax(self.linear(name, h), dim=0)[target]

    def adaptive(self, h, target):
        if target < CUTOFFS[0]:
            return self.full(h, target, "softmax.head")
        group = sum(target >= cutoff for cutoff in CUTOFFS) - 1
        narrow = self.w[f"softmax.projections.{group}.weight"] @ h
        own = self.full(narrow, target - CUTOFFS[group], f"softmax.tails.{group}")
        return self.full(h, CUTOFFS[0] + group, "softmax.head") + own

    def draw(self, number, direction):
        """The sample that training draws in this step and direction."""
        seed = np.random.SeedSequence((SEED, number, direction, 0)).generate_state(1, np.uint64)[0]
        return draw_sample(len(self.vocabulary), SAMPLES, torch.Generator().manual_seed(int(seed)))

    def sampled(self, h, target):
        """The target first, then the words drawn, each less the log of how likely it is to be among them."""
        weight, bias = self.pair("softmax")
        logits = []
        for word in [target, *(word for word in self.sample.words.tolist() if word != target)]:
            p = math.log((word + 2) / (word + 1)) / math.log(len(self.vocabulary) + 1)
            logits.append(weight[word] @ h + bias[word] - math.log(1 - (1 - p) ** self.sample.tries))
        return torch.stack(logits).logsumexp(dim=0) - logits[0]


def read_ahead(trainer, corpus):
    """The words and targets of the chunks that come next, as plain lists; the streams stay where they are."""
    here = trainer.streams.state()
    chunks = [next(trainer.streams) for _ in range(CHUNKS)]
    trainer.streams.restore(here)
    return [
        [
            ([[corpus.words[id] for id in row] for row in direction.inputs], direction.targets.tolist())
            for direction in chunk
        ]
        for chunk in chunks
    ]


@pytest.mark.parametrize("reset", ["sentence", "never"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("kind", ["full", "sampled", "adaptive"])
def test_loss_and_gradients_are_those_of_the_reference(kind, cell, reset, corpus):
    """Over two chunks of text: state goes from one to the other, gradients do not."""
    trainer = make_trainer(corpus, kind=kind, cell=cell, reset=reset)
    reference = Reference(trainer.model.weights(), corpus.vocabulary.words, kind=kind, cell=cell, reset=reset)
    for number, chunk in enumerate(read_ahead(trainer, corpus)):
        assert trainer.accumulate_gradients() == pytest.approx(reference.run(chunk, number), rel=1e-12)
    gradients = {name.removeprefix("bilm."): weight.grad for name, weight in trainer.model.named_parameters()}
    assert gradients.keys() == reference.w.keys()
    for name, gradient in gradients.items():
        assert gradient.abs().sum() > 0, name
        # double precision, and sums in another order
        torch.testing.assert_close(gradient, reference.w[name].grad, rtol=1e-9, atol=1e-12, msg=name)


def test_the_example_has_everything_in_it(corpus):
    """Words the vocabulary lacks, words cut short, ends of sentences in mid-chunk, clips reached."""
    trainer = make_trainer(corpus, kind="full", cell="lstm", reset="never")
    chunks = read_ahead(trainer, corpus)
    words = {word for chunk in chunks for direction, _ in chunk for row in direction for word in row}
    assert words - set(corpus.vocabulary.words)
    assert any(len(word.encode()) > MAX_CHARACTERS - 2 for word in words)
    assert any(-1 in row for chunk in chunks for _, targets in chunk for row in targets[:-1])
    for _ in range(CHUNKS):
        trainer.accumulate_gradients()
    assert (trainer.state.c.abs() == CELL_CLIP).any()
    assert (trainer.state.h.abs() == OUTPUT_CLIP).any()
    assert (trainer.state.h.abs() < OUTPUT_CLIP).any()
