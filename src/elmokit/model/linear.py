"""Matrix products with weights made ready once, for inference on a CPU."""

import os
import warnings
from collections.abc import Iterator
from typing import Literal, Protocol

import torch
from torch import Tensor

from elmokit.errors import ConfigError

Precision = Literal["fp32", "int8"]
INT8_LEVELS = 63  # inputs get 7 bits: pairs of 8-bit products would overflow the 16-bit sums of AVX2
INT8_ROWS = 64  # FBGEMM is fastest on blocks of about so many rows
INT8_LEAST = 1 << 20  # weights; a smaller matrix stays in the cache as it is, where fp32 is as fast
TINY = 1e-30
# oneDNN keeps what it made for each number of rows. Left to themselves, its two caches grow to half a gigabyte and more
# as a long text brings ever other lengths; so many are as fast.
for _cache in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
    os.environ.setdefault(_cache, "256")


class Linear(Protocol):
    """A matrix W, (N, K), ready to be multiplied."""

    def __call__(self, x: Tensor, bias: Tensor | None = None, /) -> Tensor:
        """x W' + bias, a new tensor: (M, K) → (M, N)."""

    def add_to(self, out: Tensor, x: Tensor, /) -> Tensor:
        """out + x W', which takes the place of out: (M, N)."""


class PlainLinear:
    """What torch does with a weight as it is."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight

    def __call__(self, x: Tensor, bias: Tensor | None = None, /) -> Tensor:
        return torch.nn.functional.linear(x, self.weight, bias)

    def add_to(self, out: Tensor, x: Tensor, /) -> Tensor:
        return out.addmm_(x, self.weight.t())


class PackedLinear:
    """oneDNN's own layout of the weight: no packing at every call, and a row's result that no other row changes."""

    def __init__(self, weight: Tensor) -> None:
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), INT8_ROWS)

    def __call__(self, x: Tensor, bias: Tensor | None = None, /) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, bias, "none", [], "")
        return product

    def add_to(self, out: Tensor, x: Tensor, /) -> Tensor:
        return self(x).add_(out)


class Int8Linear:
    """8-bit weights scaled by output channel; each input row is scaled by its own maximum, whatever is beside it."""

    def __init__(self, weight: Tensor) -> None:
        scales = weight.abs().amax(dim=1).clamp_min(TINY) / 127
        zeros = torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch means to replace this kind of 8-bit tensor one day
            quantized = torch.quantize_per_channel(weight.contiguous(), scales.double(), zeros, 0, torch.qint8)
        self.rows = len(weight)
        self.weight = torch.ops.quantized.linear_prepack(quantized, None)

    def __call__(self, x: Tensor, bias: Tensor | None = None, /) -> Tensor:
        addend = x.new_zeros(()) if bias is None else bias
        out = x.new_empty(len(x), self.rows)
        for block, product, scale in self._products(x):
            torch.addcmul(addend, product, scale, out=out[block])
        return out

    def add_to(self, out: Tensor, x: Tensor, /) -> Tensor:
        for block, product, scale in self._products(x):
            out[block].addcmul_(product, scale)
        return out

    def _products(self, x: Tensor) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Block after block of rows: each row scaled to ±1 and multiplied, and what it was scaled by."""
        scale = torch.maximum(x.amax(dim=1, keepdim=True), -x.amin(dim=1, keepdim=True)).clamp_min_(TINY)
        unit = x / scale
        multiply = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32
        for block in (slice(start, start + INT8_ROWS) for start in range(0, len(x), INT8_ROWS)):
            yield block, multiply(unit[block], 1 / INT8_LEVELS, INT8_LEVELS + 1, self.weight), scale[block]


def make_linear(weight: Tensor, precision: Precision) -> Linear:
    """The weight made ready in the fastest form that this machine has."""
    if precision == "fp32" or weight.numel() < INT8_LEAST:
        return PackedLinear(weight) if torch.backends.mkldnn.is_available() else PlainLinear(weight)
    try:
        return Int8Linear(weight)
    except (RuntimeError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"precision 'int8' cannot be had with this build of torch: {reason}") from None
