"""What the compiler decided about a network, free of TVM: tensors, memory regions, operators and the memory plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

DTYPE_BYTES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2,
    "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "bool": 1,
}  # fmt: skip


@dataclass(frozen=True)
class TensorInfo:
    """A tensor as its user knows it: the model's own name, static shape, numpy dtype name."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size_bytes(self) -> int:
        """Bytes of the dense tensor."""
        return prod(self.shape) * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True)
class Region:
    """Bytes of an operand: ``space`` is "weights", "prepared", "arena", "input" or "output".

    For weights, prepared memory and arena ``offset`` counts bytes from the base; for input and output ``index`` says
    which one and ``offset`` counts bytes within it. ``shape``/``dtype`` describe the logical tensor; ``layout`` is
    "plain" or "NCHW<v>c" for [N, C/v, H*W, v] of the logical [N, C, H, W], channels zero-padded to a multiple of v.
    """

    space: str
    offset: int
    size: int
    index: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    layout: str = "plain"


@dataclass(frozen=True)
class OpRecord:
    """One call of the graph function, in order."""

    index: int
    kernel: str  # kernel symbol without the model's prefix
    rule: str  # schedule rule that tiled it
    reason: str  # why this configuration: "analytic 2x14", "record", "fallback: ..."
    source: tuple[str, ...]  # names of the model's tensors that this op completes (last one = its output)
    macs: int
    inputs: tuple[Region, ...]
    outputs: tuple[Region, ...]
    scratch: tuple[Region, ...] = ()


@dataclass(frozen=True)
class BufferLife:
    """A buffer of the arena: bytes [offset, offset + size) during ops first..last (inclusive)."""

    name: str
    offset: int
    size: int
    first: int
    last: int
    kind: str = "tensor"  # "tensor" or "scratch"


@dataclass(frozen=True)
class MemoryPlan:
    """Static memory of one network. All in bytes; every offset is a multiple of 64."""

    arena_bytes: int
    thread_scratch_bytes: int
    weights_bytes: int
    peak_live_bytes: int  # largest sum of live buffers at any op: the lower bound of arena_bytes
    buffers: tuple[BufferLife, ...] = field(default=())
    prepared_bytes: int = 0  # made once at open from the weights, beside the arena
