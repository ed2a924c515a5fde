"""The biLM made fast for inference on a CPU: what `BiLM` computes, in fewer and larger steps."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from elmokit.model.bilm import BiLM, State
from elmokit.model.cache import TokenCache
from elmokit.model.fast_tokens import FastTokens
from elmokit.model.linear import Linear, Precision, make_linear
from elmokit.model.packing import Packing, pack
from elmokit.model.recurrent import RecurrentLayer
from elmokit.model.threads import side_by_side
from elmokit.model.tokens import as_tensors
from elmokit.text.words import WordIds

GROUP_SENTENCES = 32  # at least so many sentences to a pair of threads
WINDOW_ROWS = 256  # rows whose input gates are computed at once: enough for full speed, and memory stays bounded


class FastLstm(NamedTuple):
    """One layer in one direction, in terms that need the fewest operations a step.

    Torch's sigmoid is several times as fast as its tanh, so tanh(x) is 2 sigmoid(2x) - 1: the candidate's weights and
    the cells are kept doubled, which is exact, and -m = o - 2 o sigmoid(2c) is projected by minus the projection.
    """

    layer: RecurrentLayer
    input: Linear
    recurrent: Linear
    bias: Tensor
    minus_projection: Linear | None

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], h: Tensor | None, c: Tensor) -> Tensor:
        """The outputs, (N, P), from h, (B, P), None for zeros, and c, (B, D), which becomes each sentence's last."""
        outputs = x.new_empty(len(x), self.layer.output_size)
        c.mul_(2)
        done = 0
        if h is None:
            done = batch_sizes[0]
            h = self._first_step(x[:done], c, out=outputs[:done])
        for steps in _windows(batch_sizes[1:] if done else batch_sizes):
            gates = self.input(x[done : done + sum(steps)], self.bias)  # (rows, 4D)
            for step in gates.split(steps):
                running = len(step)
                gates_now = self.recurrent.add_to(step, h[:running])
                h = self._step(gates_now, c[:running], out=outputs[done : done + running])
                done += running
        c.div_(2)
        return outputs

    def _first_step(self, x: Tensor, doubled: Tensor, *, out: Tensor) -> Tensor:
        """From a zero state; sentences that all begin with the same token, <S>, are one as yet."""
        rows = 1 if bool((x == x[0]).all()) else len(x)
        self._step(self.input(x[:rows], self.bias), doubled[:rows], out=out[:rows])
        if rows < len(x):
            out[1:], doubled[1 : len(x)] = out[0], doubled[0]
        return out

    def _step(self, gates: Tensor, doubled: Tensor, *, out: Tensor) -> Tensor:
        """One time step of the sentences still running; the new outputs."""
        i, f, o, g = gates.sigmoid_().chunk(4, dim=-1)
        doubled.mul_(f).addcmul_(i, g, value=4).sub_(i, alpha=2)
        if self.layer.cell_clip is not None:
            doubled.clamp_(-2 * self.layer.cell_clip, 2 * self.layer.cell_clip)
        minus_m = torch.addcmul(o, o, torch.sigmoid(doubled, out=g), value=-2, out=g)
        if self.minus_projection is None:
            return torch.neg(minus_m, out=out)
        if self.layer.projection_clip is None:
            return out.copy_(self.minus_projection(minus_m))
        bound = self.layer.projection_clip
        return torch.clamp(self.minus_projection(minus_m), -bound, bound, out=out)


class PlainLayer(NamedTuple):
    """A layer run as the module itself runs it."""

    layer: RecurrentLayer

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], h: Tensor | None, c: Tensor) -> Tensor:
        """The outputs, (N, P), from h, None for zeros, and c, which becomes the last."""
        outputs: Tensor
        h = c.new_zeros(len(c), self.layer.output_size) if h is None else h
        outputs, _, last_c = self.layer(x, batch_sizes, h, c)
        c.copy_(last_c)
        return outputs


FastLayer = FastLstm | PlainLayer


class Prepared(NamedTuple):
    """The weights made ready, and which weights they were made from."""

    versions: list[tuple[int, int]]
    tokens: FastTokens
    cache: TokenCache
    stacks: tuple[list[FastLayer], list[FastLayer]]


class Engine:
    """Runs a biLM without gradients, both directions at once, one thread each."""

    def __init__(self, bilm: BiLM, precision: Precision = "fp32", *, token_cache_mb: float = 64) -> None:
        self.bilm, self.precision, self.token_cache_mb = bilm, precision, token_cache_mb
        self._prepared: Prepared | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_prepared": None}  # packed weights are made again where they are needed

    @property
    def versions(self) -> list[tuple[int, int]]:
        """Changes whenever a weight does."""
        return [(weight.data_ptr(), weight._version) for weight in self.bilm.parameters()]

    @property
    def prepared(self) -> Prepared:
        """The weights made ready: at first use, and again after they were trained."""
        versions = self.versions
        if self._prepared is None or self._prepared.versions != versions:
            self._prepared = None
            stacks = (self._stack(self.bilm.forward_layers), self._stack(self.bilm.backward_layers))
            cache = TokenCache(self.bilm.config.projection, self.token_cache_mb)
            self._prepared = Prepared(versions, FastTokens(self.bilm.tokens, self.precision), cache, stacks)
        return self._prepared

    def _stack(self, layers: nn.ModuleList) -> list[FastLayer]:
        return [_fast(layer, self.precision) for layer in layers if isinstance(layer, RecurrentLayer)]

    def token_vectors(self, words: list[str], encode: Callable[[list[str]], WordIds]) -> Tensor:
        """The context-free vectors of distinct words, (N, P); words seen before are not computed again."""
        prepared = self.prepared
        return prepared.cache.lookup(words, lambda new: prepared.tokens(*as_tensors(encode(new))))

    def layers(self, x: Tensor, lengths: Sequence[int], state: State | None = None) -> tuple[Tensor, State]:
        """What `BiLM.forward` gives."""
        last = self.bilm.zero_state(len(lengths)) if state is None else State(state.h.clone(), state.c.clone())
        return self._filled(x, lengths, last, zero=state is None, ends=True), last

    def inner_layers(self, x: Tensor, lengths: Sequence[int]) -> Tensor:
        """The same from a zero state, but for the last step of each direction, which no token within hears of.

        So the forward half of </S> and the backward half of <S> are zeros above layer 0.
        """
        return self._filled(x, lengths, self.bilm.zero_state(len(lengths)), zero=True, ends=False)

    def _filled(self, x: Tensor, lengths: Sequence[int], state: State, *, zero: bool, ends: bool) -> Tensor:
        outputs = x.new_zeros(self.bilm.config.layers + 1, len(x), 2, self.bilm.config.projection)
        outputs[0] = x[:, None]
        side_by_side(self._jobs(lengths, outputs, state, zero=zero, ends=ends))
        return outputs.flatten(2)

    def _jobs(
        self, lengths: Sequence[int], outputs: Tensor, state: State, *, zero: bool, ends: bool
    ) -> list[Callable[[], None]]:
        """Each direction of each group of sentences, which fill their own parts of the outputs and the state."""
        jobs: list[Callable[[], None]] = []
        first = start = 0
        for group in _groups(lengths, most=torch.get_num_threads() // 2):
            rows, columns = slice(first, first + len(group)), slice(start, start + sum(group))
            first, start = rows.stop, columns.stop
            packing, own = pack(group, ends=ends), State(state.h[:, :, rows], state.c[:, :, rows])
            for way, stack in enumerate(self.prepared.stacks):
                jobs.append(partial(self._run, stack, way, packing, outputs[:, columns], own, zero=zero))
        return jobs

    def _run(
        self, stack: list[FastLayer], way: int, packing: Packing, outputs: Tensor, state: State, *, zero: bool
    ) -> None:
        """One direction, from layer 0 of the outputs into the layers above; the state becomes the last one."""
        order = packing.backward if way else packing.forward
        x = outputs[0, order, way]  # (N, P)
        for level, layer in enumerate(stack):
            h = None if zero else state.h[way, level]
            output = layer(x, packing.batch_sizes, h, state.c[way, level])
            state.h[way, level] = output[packing.last_rows]
            x = output.add_(x) if self.bilm.config.residual and level > 0 else output
            outputs[level + 1, :, way].index_copy_(0, order, x)


def _groups(lengths: Sequence[int], *, most: int) -> list[Sequence[int]]:
    """Consecutive sentences with about as many tokens in each group, few enough groups to keep the products large."""
    count = max(1, min(most, len(lengths) // GROUP_SENTENCES))
    ends = np.searchsorted(np.cumsum(lengths), np.arange(1, count) * (sum(lengths) / count)).tolist()
    return [lengths[start:end] for start, end in pairwise([0, *ends, len(lengths)]) if end > start]


def _windows(batch_sizes: Sequence[int]) -> Iterator[list[int]]:
    """Consecutive steps of about so many rows in all."""
    steps: list[int] = []
    for size in batch_sizes:
        if steps and sum(steps) + size > WINDOW_ROWS:
            yield steps
            steps = []
        steps.append(size)
    if steps:
        yield steps


def _fast(layer: RecurrentLayer, precision: Precision) -> FastLayer:
    if layer.cell != "lstm":
        return PlainLayer(layer)
    candidate = slice(3 * layer.hidden, None)
    weight, bias = layer.weight.detach().clone(), layer.gate_bias().detach().clone()
    weight[candidate] *= 2
    bias[candidate] *= 2
    return FastLstm(
        layer,
        make_linear(weight[:, : layer.input_size], precision),
        make_linear(weight[:, layer.input_size :], precision),
        bias,
        None if layer.projection is None else make_linear(-layer.projection.detach(), precision),
    )
