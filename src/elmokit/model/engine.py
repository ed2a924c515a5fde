"""The biLM made fast for inference on a CPU: what `BiLM` computes, in fewer and larger steps."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import pairwise
from threading import Lock, RLock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmokit.model.bilm import BiLM, Packing, State, pack, run_stack
from elmokit.model.linear import Precision
from elmokit.model.recurrent import FastLayer, RecurrentLayer
from elmokit.model.small_batch import SmallBatchLstm, kept_as, kernel
from elmokit.model.threads import side_by_side
from elmokit.model.tokens import FastTokens, as_tensors
from elmokit.text.characters import WordIds

FEW_SENTENCES = 16  # with which the compiled layers are faster by a fifth or more, for layers of
COMPILED_WEIGHTS = 1 << 22  # at most so many weights; larger ones wait for memory in either form
GROUP_SENTENCES = 32  # at least so many sentences to a pair of threads
BYTES_A_KEY = 200  # a Python string and its entry in the dictionary, roughly
LONGEST_KEY = 64  # longer words are rare, and would make the cache larger than it says


class Prepared:
    """The weights made ready, and which weights they were made from."""

    def __init__(self, engine: "Engine", versions: list[tuple[int, int]]) -> None:
        self.bilm, self.precision, self.versions = engine.bilm, engine.precision, versions
        self.tokens = FastTokens(engine.bilm.tokens, engine.precision)
        self.cache = TokenCache(engine.bilm.config.projection, engine.token_cache_mb)
        self._stacks: dict[bool, list[list[FastLayer]]] = {}
        self._lock = Lock()

    @cached_property
    def compiled(self) -> bool:
        """Whether layers in the form for few sentences are fast, and can be had here."""
        layer = self.bilm.stacks[0][0]
        if self.bilm.config.cell != "lstm" or layer.weight.numel() > COMPILED_WEIGHTS:
            return False
        return kernel(kept_as(layer, self.precision)) is not None

    def stacks(self, *, small: bool) -> list[list[FastLayer]]:
        """Both directions' layers in the form for few sentences or for many, each made when it is first needed."""
        with self._lock:
            if small not in self._stacks:
                self._stacks[small] = [[self._made(layer, small) for layer in stack] for stack in self.bilm.stacks]
            return self._stacks[small]

    def _made(self, layer: RecurrentLayer, small: bool) -> FastLayer:
        return (SmallBatchLstm if small else layer.cell.fast)(layer, self.precision)


class Engine:
    """Runs a biLM without gradients, both directions at once, one thread each, for any number of callers at once."""

    def __init__(
        self, bilm: BiLM, precision: Precision = "fp32", *, token_cache_mb: float = 64, reproducible: bool = False
    ) -> None:
        settings = {"bilm": bilm, "precision": precision, "token_cache_mb": token_cache_mb}
        self.__setstate__({**settings, "reproducible": reproducible})

    def __getstate__(self) -> dict[str, Any]:
        own = {"_prepared", "_weights", "lock"}  # packed weights are made again where they are needed
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, settings: dict[str, Any]) -> None:
        self.bilm: BiLM = settings["bilm"]
        self.precision: Precision = settings["precision"]
        self.token_cache_mb: float = settings["token_cache_mb"]
        self.reproducible: bool = settings["reproducible"]
        self.lock = RLock()  # held while weights are made ready, and while a state that calls share goes on
        self._prepared: Prepared | None = None
        self._weights = [module._parameters for module in self.bilm.modules()]  # `parameters` walks through all modules

    @property
    def versions(self) -> list[tuple[int, int]]:
        """Changes whenever a weight does."""
        weights = (weight for group in self._weights for weight in group.values() if weight is not None)
        return [(weight.data_ptr(), weight._version) for weight in weights]

    @property
    def prepared(self) -> Prepared:
        """The weights made ready: at first use, and again after they were trained."""
        versions, prepared = self.versions, self._prepared
        if prepared is not None and prepared.versions == versions:
            return prepared
        with self.lock:  # another caller may have done it by now
            if self._prepared is None or self._prepared.versions != versions:
                self._prepared = None
                self._prepared = Prepared(self, versions)
            return self._prepared

    def runs_compiled(self, sentences: int) -> bool:
        """Whether sentences are few and layers small enough for `SmallBatchLstm`, and it can be had here."""
        return not self.reproducible and sentences <= FEW_SENTENCES and self.prepared.compiled

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
        """Each direction of each group of sentences is a job, which fills its own part of the outputs and the state."""
        outputs = x.new_zeros(self.bilm.config.layers + 1, len(x), 2, self.bilm.config.projection)
        outputs[0] = x[:, None]
        jobs: list[Callable[[], None]] = []
        small = self.runs_compiled(len(lengths))
        stacks = self.prepared.stacks(small=small)
        first = start = 0
        for group in _groups(lengths, most=torch.get_num_threads() // 2):
            rows, columns = slice(first, first + len(group)), slice(start, start + sum(group))
            first, start = rows.stop, columns.stop
            packing, own = pack(group, ends=ends), State(state.h[:, :, rows], state.c[:, :, rows])
            for direction, stack in enumerate(stacks):
                jobs.append(partial(self._run, direction, stack, packing, outputs[:, columns], own, zero=zero))
        side_by_side(jobs)
        return outputs.flatten(2)

    def _run(
        self, direction: int, stack: list[FastLayer], packing: Packing, outputs: Tensor, state: State, *, zero: bool
    ) -> None:
        """One direction, from layer 0 of the outputs into the layers above; the state becomes the last one."""
        order = packing.backward if direction else packing.forward
        h, c = state.h[direction], state.c[direction]

        def run(level: int, layer: FastLayer, x: Tensor) -> Tensor:
            output = layer(x, packing.batch_sizes, None if zero else h[level], c[level])
            h[level] = output[packing.last_rows]
            return output

        x = outputs[0, order, direction]  # (N, P)
        for level, output in enumerate(run_stack(stack, x, run, residual=self.bilm.config.residual), 1):
            outputs[level, :, direction].index_copy_(0, order, output)


def _groups(lengths: Sequence[int], *, most: int) -> list[Sequence[int]]:
    """Consecutive sentences with about as many tokens in each group, few enough groups to keep the products large."""
    count = max(1, min(most, len(lengths) // GROUP_SENTENCES))
    ends = np.searchsorted(np.cumsum(lengths), np.arange(1, count) * (sum(lengths) / count)).tolist()
    return [lengths[start:end] for start, end in pairwise([0, *ends, len(lengths)]) if end > start]


class TokenCache:
    """The most recently used words' vectors, within a bound of memory; any number of threads may look up at once."""

    def __init__(self, width: int, megabytes: float) -> None:
        self.capacity = int(megabytes * 2**20) // (4 * width + BYTES_A_KEY)
        self.table = torch.empty(self.capacity, width)
        self.rows: OrderedDict[str, int] = OrderedDict()
        self.lock = Lock()

    def lookup(self, words: Sequence[str], compute: Callable[[list[str]], Tensor]) -> Tensor:
        """A vector for each of the words, which are distinct; those not known are computed and kept."""
        vectors = self.table.new_empty(len(words), self.table.shape[1])
        with self.lock:
            known = [index for index, word in enumerate(words) if word in self.rows]
            for index in known:
                self.rows.move_to_end(words[index])
            if known:
                vectors[known] = self.table[[self.rows[words[index]] for index in known]]
        if len(known) < len(words):
            unknown = sorted(set(range(len(words))).difference(known))
            vectors[unknown] = compute([words[index] for index in unknown])
            self._keep({words[index]: index for index in unknown if len(words[index]) <= LONGEST_KEY}, vectors)
        return vectors

    def _keep(self, indices: dict[str, int], vectors: Tensor) -> None:
        """Put the words' vectors, at these indices, into free rows, or those of the words not used for longest."""
        with self.lock:  # others may have computed some of them meanwhile
            new = [word for word in indices if word not in self.rows][: self.capacity]
            for word in new:
                full = len(self.rows) == self.capacity
                self.rows[word] = self.rows.popitem(last=False)[1] if full else len(self.rows)
            if new:
                self.table[[self.rows[word] for word in new]] = vectors[[indices[word] for word in new]]

    def clear(self) -> None:
        with self.lock:
            self.rows.clear()
