"""A flat ``main`` of kernel calls and views -> operators over memory regions, and where each buffer lies.

Inputs and outputs stay where the caller has them, constants lie in the weights blob. Kernels that read nothing but
weights run once, at open, and write to prepared memory. Both are shared by the variants of a network (the same
network for other input shapes): ``Shared``. Everything else shares one arena: a buffer lives from the first operator
that writes into it to the last that reads it, and two buffers that live at once never overlap. Parts of a
concatenation are views of the whole; reshapes are views of their operand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import prod

import numpy as np
import tvm
from tvm import relax

from ..ir.plan import DTYPE_BYTES, BufferLife

ALIGN = 64
MOVES = 30  # tries of each order to get from greedy placement to the peak


def aligned(n: int) -> int:
    """Return ``n`` rounded up to the alignment of every buffer."""
    return -(-n // ALIGN) * ALIGN


@dataclass(eq=False)
class Buffer:
    """Memory of one value; ``base`` and ``shift`` make it a view of another. ``place`` is set by the planner: bytes
    from the start of the arena, or of the prepared memory when ``is_prepared``."""

    size: int
    name: str = ""
    kind: str = "tensor"
    base: Buffer | None = None
    shift: int = 0
    first: int = -1
    last: int = -1
    place: int = -1
    is_prepared: bool = False
    output: int = -1  # index of the output that it is

    def root(self) -> tuple[Buffer, int]:
        """Return the buffer that this one is a view of, and the bytes before it."""
        buffer, shift = self, 0
        while buffer.base is not None:
            shift, buffer = shift + buffer.shift, buffer.base
        return buffer, shift


@dataclass(frozen=True)
class Operand:
    """What a kernel reads or writes: exactly one of ``buffer``, ``weight`` (byte offset) and ``input`` (index)."""

    shape: tuple[int, ...]
    dtype: str
    buffer: Buffer | None = None
    weight: int = -1
    input: int = -1

    @property
    def size(self) -> int:
        """Bytes of the tensor."""
        return prod(self.shape) * DTYPE_BYTES[self.dtype]


@dataclass
class Call:
    """One kernel call; ``var`` is the variable of ``main`` that it computes."""

    kernel: str
    var: relax.Var
    inputs: list[Operand]
    outputs: list[Operand]
    scratch: list[Buffer] = field(default_factory=list)


@dataclass
class Weights:
    """The weights blob: every constant once, 64-byte aligned, in order of first use."""

    blob: bytearray = field(default_factory=bytearray)
    offsets: dict[bytes, int] = field(default_factory=dict)
    arrays: dict[int, np.ndarray] = field(default_factory=dict)  # by offset

    def add(self, array: np.ndarray) -> int:
        """Return the offset of ``array`` in the blob."""
        data = np.ascontiguousarray(array).tobytes()
        if data not in self.offsets:
            self.blob.extend(bytes(aligned(len(self.blob)) - len(self.blob)))
            self.offsets[data] = len(self.blob)
            self.arrays[len(self.blob)] = array
            self.blob.extend(data)
        return self.offsets[data]


@dataclass
class Shared:
    """What the variants of a network have together: constants, and what the kernels at open make of them."""

    weights: Weights = field(default_factory=Weights)
    prepared: dict[Hashable, list[int]] = field(default_factory=dict)  # kernel and operands -> places of its results
    prepared_bytes: int = 0

    def prepare(self, call: Call) -> bool:
        """Place the results of a call at open; return whether no variant made the same ones before."""
        key = (call.kernel, *(_constant_place(operand) for operand in call.inputs))
        is_new = key not in self.prepared
        if is_new:
            places = self.prepared[key] = []
            for operand in call.outputs:
                places.append(self.prepared_bytes)
                self.prepared_bytes += aligned(operand.size)
        for operand, place in zip(call.outputs, self.prepared[key], strict=True):
            assert operand.buffer is not None
            operand.buffer.is_prepared, operand.buffer.place = True, place
        return is_new


def _constant_place(operand: Operand) -> tuple[str, int]:
    """Return where an operand of a call at open lies: a weight, or the result of an earlier one."""
    if operand.buffer is None:
        return "weights", operand.weight
    root, shift = operand.buffer.root()
    return "prepared", root.place + shift


@dataclass
class Layout:
    """Calls with all operands placed; ``opening`` are those that run once, at open.

    ``weights`` and ``prepared_bytes`` are those of all variants up to this one.
    """

    calls: list[Call]
    opening: list[Call]
    prepared_bytes: int
    weights: bytes
    arena_bytes: int
    peak_live_bytes: int
    lives: tuple[BufferLife, ...]
    outputs: list[Operand]


def plan_memory(
    main: relax.Function,
    scratch_of: Callable[[str], tuple[int, ...]],
    shared: Shared | None = None,
    kernel_of: Callable[[str], str] = str,
) -> Layout:
    """Return the calls of ``main`` with every buffer placed; ``scratch_of(kernel)`` gives sizes in bytes.

    ``shared`` holds what the variants before this one have placed; ``kernel_of`` gives the kernel by its name in
    ``main``.
    """
    shared = shared or Shared()
    reader = _Reader(scratch_of, kernel_of, shared.weights)
    for i, p in enumerate(main.params):
        reader.env[p] = [Operand(_shape(p.ty), str(p.ty.dtype), input=i)]
    for block in main.body.blocks:
        for binding in block.bindings:
            reader.read(binding)
    outputs = reader.operands(main.body.body)
    for i, operand in enumerate(outputs):
        assert operand.buffer is not None, "PlanLayouts copies inputs and constants that are outputs"
        buffer, shift = operand.buffer.root()
        assert shift == 0 and buffer.output < 0, "PlanLayouts gives each output memory of its own"
        buffer.output = i
    opening, calls = _split_opening(reader.calls)
    assert not any(call.scratch for call in opening), "no scratch is planned at open"
    opening = [call for call in opening if shared.prepare(call)]
    buffers = _lives(calls)
    movable = [b for b in buffers if b.output < 0]
    arena = _place(movable)
    peak = _peak(movable)
    lives = tuple(BufferLife(b.name, b.place, b.size, b.first, b.last, b.kind) for b in movable)
    return Layout(calls, opening, shared.prepared_bytes, bytes(shared.weights.blob), arena, peak, lives, outputs)


class _Reader:
    """Turns the bindings of ``main`` into calls and buffers. A tensor is a list of one operand, a tuple of several."""

    def __init__(
        self, scratch_of: Callable[[str], tuple[int, ...]], kernel_of: Callable[[str], str], weights: Weights
    ) -> None:
        self.scratch_of, self.kernel_of, self.weights = scratch_of, kernel_of, weights
        self.env: dict[relax.Var, list[Operand]] = {}
        self.calls: list[Call] = []

    def operands(self, expr: relax.Expr) -> list[Operand]:
        """Return where the value of ``expr`` is."""
        if isinstance(expr, tvm.ir.GenericConst):
            array = expr.value.numpy()
            return [Operand(array.shape, str(array.dtype), weight=self.weights.add(array))]
        if isinstance(expr, relax.Tuple):
            return [operand for f in expr.fields for operand in self.operands(f)]
        if isinstance(expr, relax.TupleGetItem):
            return [self.operands(expr.tuple_value)[expr.index]]
        return self.env[expr]

    def read(self, binding: relax.Binding) -> None:
        """Take over one binding."""
        var, expr = binding.var, binding.value
        name = getattr(getattr(expr, "op", None), "name", "")
        if name == "relax.call_tir":
            self.env[var] = self._kernel_call(var, expr)
        elif name == "relax.reshape":
            (operand,) = self.operands(expr.args[0])
            self.env[var] = [Operand(_shape(var.ty), operand.dtype, operand.buffer, operand.weight, operand.input)]
        elif name == "relax.concat":
            self.env[var] = [self._concat(var, expr)]
        elif isinstance(expr, tvm.ir.Call):
            raise AssertionError(f"'{name}' was not lowered to a kernel")
        else:
            self.env[var] = self.operands(expr)

    def _kernel_call(self, var: relax.Var, call: tvm.ir.Call) -> list[Operand]:
        kernel = self.kernel_of(call.args[0].name_hint)
        types = [var.ty] if isinstance(var.ty, relax.TensorType) else list(var.ty.fields)
        outputs = [Operand(_shape(t), str(t.dtype), Buffer(_bytes(t), var.name)) for t in types]
        scratch = [Buffer(size, f"{var.name} scratch", "scratch") for size in self.scratch_of(kernel)]
        self.calls.append(Call(kernel, var, self.operands(call.args[1]), outputs, scratch))
        return outputs

    def _concat(self, var: relax.Var, call: tvm.ir.Call) -> Operand:
        whole, shift = Buffer(_bytes(var.ty), var.name), 0
        for part in self.operands(call.args[0]):
            assert part.buffer is not None, "PlanLayouts copies inputs and constants that are parts"
            buffer, before = part.buffer.root()
            assert before == 0, "PlanLayouts gives each part of a concatenation memory of its own"
            buffer.base, buffer.shift = whole, shift
            shift += part.size
        return Operand(_shape(var.ty), str(var.ty.dtype), whole)


def _split_opening(calls: list[Call]) -> tuple[list[Call], list[Call]]:
    """Return the calls that depend on weights alone, and the others; both in order."""
    opening, running = [], []
    made: set[Buffer] = set()
    for call in calls:
        known = all(o.weight >= 0 or o.buffer in made for o in call.inputs)
        free = all(o.buffer.base is None and o.buffer.output < 0 for o in call.outputs if o.buffer is not None)
        if call.inputs and known and free and not call.scratch:
            made.update(o.buffer for o in call.outputs if o.buffer is not None)
            opening.append(call)
        else:
            running.append(call)
    return opening, running


def _lives(calls: list[Call]) -> list[Buffer]:
    """Set first and last use of every root buffer; return them in order of first use."""
    found: dict[Buffer, None] = {}
    for i, call in enumerate(calls):
        used = [o.buffer for o in (*call.inputs, *call.outputs) if o.buffer is not None] + call.scratch
        for buffer in used:
            root, _ = buffer.root()
            if root.is_prepared:
                continue
            root.first = i if root.first < 0 else root.first
            root.last = i
            found[root] = None
    return list(found)


def _place(buffers: list[Buffer]) -> int:
    """Place all buffers; return the size of the arena.

    Greedy first fit in three orders; each is improved while it stays above the peak of live bytes, by placing the
    buffer that ends last before all others. On random networks of 60 operators ten moves always reach the peak.
    """
    orders: list[Callable[[Buffer], tuple]] = [
        lambda b: (-b.size, b.first),
        lambda b: (-(b.last - b.first + 1) * b.size, b.first),
        lambda b: (b.first, -b.size),
    ]
    peak = _peak(buffers)
    best: tuple[int, list[int]] | None = None
    for order in orders:
        queue = sorted(buffers, key=order)
        for _ in range(MOVES):
            top = _first_fit(queue)
            if best is None or top < best[0]:
                best = (top, [b.place for b in buffers])
            if best[0] <= peak:
                break
            queue.insert(0, queue.pop(max(range(len(queue)), key=lambda i: queue[i].place + aligned(queue[i].size))))
    if best is None:
        return 0
    for buffer, place in zip(buffers, best[1], strict=True):
        buffer.place = place
    return best[0]


def _peak(buffers: list[Buffer]) -> int:
    """Return the largest sum of buffers that live at once: no arena can be smaller."""
    starts = {b.first for b in buffers}
    return max((sum(aligned(b.size) for b in buffers if b.first <= i <= b.last) for i in starts), default=0)


def _first_fit(ordered: list[Buffer]) -> int:
    """Put each buffer at the lowest place free during its life; return the end of the last one."""
    placed: list[Buffer] = []
    for b in ordered:
        at = 0
        for other in sorted((q for q in placed if q.first <= b.last and b.first <= q.last), key=lambda q: q.place):
            if at + aligned(b.size) <= other.place:
                break
            at = max(at, other.place + aligned(other.size))
        b.place = at
        placed.append(b)
    return max((b.place + aligned(b.size) for b in placed), default=0)


def _shape(ty: relax.Type) -> tuple[int, ...]:
    return tuple(int(d) for d in ty.shape)


def _bytes(ty: relax.Type) -> int:
    return prod(_shape(ty)) * DTYPE_BYTES[str(ty.dtype)]
