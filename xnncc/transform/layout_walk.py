"""PlanLayouts' walk: one pass over ``main`` that decides for every value whether it is plain or packed.

    Given:                                       Result:
      y = nn.conv2d(x, w)     NCHW                 x1 = pack(x)                    [N, C/v, H*W, v]
      z = add(y, b)                                z  = conv2d(x1, packed w, b)    one kernel, weights packed by numpy
      a = nn.relu(z)                               a  = relu(z)                    a kernel that FuseOps merges into z
      c = reshape(a)                               a1 = unpack(a); c = reshape(a1)

Each operator has a handler (``layout_*.py``). It asks ``packed(v)`` or ``plain(v)`` for its operands, and only there a
pack or unpack kernel is emitted, so transforms stand at real borders alone. An operator without a handler is unpacked
and handed on to TVM's legaliser.

A convolution or matrix product with constant weights stays *pending*: constant bias, scale and batch norm fold into its
numpy weights while it has one use; the first other use packs the weights and emits it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import tvm
from tvm import relax

from ..ir.placement import CodedTable
from ..kernels import packing
from ..target import Machine

if TYPE_CHECKING:
    from .choose_conv import Chosen
    from .stored_weights import Stored

# Relax's operator patterns, which decide what FuseOps merges.
ELEMENTWISE, BROADCAST, INJECTIVE, REDUCE, OUT_FUSABLE, OPAQUE = 0, 1, 2, 3, 4, 8

# Kernels that repeat their operand about twenty times (kernels/math.py): never two in one fused kernel, for these
# factors multiply. Three in a row took 68 s to compile (2026-11).
POLYNOMIALS = ("exp", "sigmoid", "tanh", "erf", "silu", "gelu")


@dataclass
class Pending:
    """A linear operator whose weights may still change: weights [O, ...] (or [..., O] with ``last``), bias [O]."""

    weights: np.ndarray
    bias: np.ndarray
    emit: Callable[[Pending], relax.Expr]
    names: tuple[str, ...]  # tensors of the model that it completes, its own last
    last: bool = False  # output channels are the last axis of weights and of the value
    stored: Stored | None = None  # the weights as the model stores them, if not as float32

    def scaled(self, k: np.ndarray) -> Pending:
        """Return the operator times ``k`` [O]."""
        shape = (1,) * (self.weights.ndim - 1) + (-1,) if self.last else (-1,) + (1,) * (self.weights.ndim - 1)
        stored = self.stored.times(k.reshape(shape)) if self.stored is not None else None
        return replace(self, weights=self.weights * k.reshape(shape), bias=self.bias * k, stored=stored)

    def named(self, name: str) -> Pending:
        """Return the operator as the one that computes tensor ``name`` now."""
        return replace(self, names=(*self.names, name))

    def shifted(self, b: np.ndarray) -> Pending:
        """Return the operator plus ``b`` [O]."""
        return replace(self, bias=self.bias + b)


@dataclass
class Value:
    """A constant, a pending operator, or an expression, which is packed when ``image`` (C, H, W) is set."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    expr: relax.Expr | None = None
    image: tuple[int, ...] | None = None
    const: np.ndarray | None = None
    stored: Stored | None = None  # the constant as the model stores it, if not as float32
    pending: Pending | None = None
    name: str = ""


@dataclass
class Walk:
    """State of one walk. Handlers use ``value``, ``packed``, ``plain``, ``emit``, ``uses`` and ``note``."""

    machine: Machine
    builder: relax.BlockBuilder
    env: dict[relax.Var, Value] = field(default_factory=dict)
    uses: dict[relax.Var, int] = field(default_factory=dict)
    exact: bool = False  # no algorithm whose rounding is larger than that of plain sums
    algorithms: Mapping[str, str] = field(default_factory=dict)  # convolution_key -> algorithm, of tuned records
    convolutions: dict[str, Chosen] = field(default_factory=dict)  # tensor -> how the convolution that makes it runs
    coded: CodedTable = field(default_factory=CodedTable)  # weights that are stored as integers
    name: str = ""
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)  # variable name -> tensors it completes
    completes: tuple[str, ...] = ()  # tensors folded into what is being emitted, its own last
    packed_values: dict[str, tuple[tuple[int, ...], int]] = field(default_factory=dict)  # var name -> NCHW shape, v
    notes: list[str] = field(default_factory=list)
    polynomials: set[relax.Var] = field(default_factory=set)  # what may be fused with one of POLYNOMIALS
    aliased: set[relax.Var] = field(default_factory=set)  # buffers that are already a part of a concatenation

    @property
    def lanes(self) -> int:
        """Channels of a block."""
        return self.machine.lanes

    def value(self, expr: relax.Expr) -> Value:
        """Return what is known of an operand (not of a tuple)."""
        if isinstance(expr, tvm.ir.GenericConst):
            array = expr.value.numpy()
            return Value(array.shape, str(array.dtype), const=array)
        return self.env[expr]

    def used_once(self, expr: relax.Expr) -> bool:
        """Return whether ``expr`` has a single reader, so that it may be folded into that."""
        return self.uses.get(expr, 0) == 1

    def emit(self, fn: Callable, *args: relax.Expr, hint: str, pattern: int, name: str | None = None) -> relax.Var:
        """Emit TE function ``fn`` of ``args`` as a kernel of its own; its variable gets the name of the tensor."""
        after_polynomial = any(isinstance(a, relax.Var) and a in self.polynomials for a in args)
        if hint in POLYNOMIALS and after_polynomial:
            pattern = OPAQUE
        call = self.builder.call_te(fn, *args, primfunc_name_hint=hint, primfunc_attrs={"op_pattern": pattern})
        var = self.builder.emit(call, name or self.name)
        if (hint in POLYNOMIALS or after_polynomial) and pattern in (ELEMENTWISE, BROADCAST):
            self.polynomials.add(var)
        self.sources[var.name] = (*self.completes, *([name or self.name] if name or not self.completes else []))
        return var

    def settle(self, v: Value) -> Value:
        """Emit ``v`` if it was pending."""
        if v.pending is not None:
            reader, self.name, self.completes = self.name, v.name, v.pending.names
            v.expr = v.pending.emit(v.pending)
            v.pending = None
            self.remember(v)
            self.name, self.completes = reader, ()
        return v

    def packed(self, v: Value) -> Value:
        """Return ``v`` [N, C, H, W] in packed form."""
        if v.const is not None:
            v = Value(v.shape, v.dtype, expr=constant(v.const), name=v.name)
        self.settle(v)
        if v.image is not None:
            return v
        expr = self.emit(lambda x: packing.pack(x, self.lanes), v.expr, hint="pack", pattern=INJECTIVE, name="packed")
        return Value(v.shape, v.dtype, expr=expr, image=v.shape[1:], name=v.name)

    def plain(self, v: Value) -> relax.Expr:
        """Return ``v`` as an expression of its logical shape."""
        if v.const is not None:
            from .stored_weights import stored_or_float

            return stored_or_float(self, v.const, v.stored)
        self.settle(v)
        if v.image is None:
            return v.expr
        c, h, w = v.image
        name = v.name or "unpacked"
        return self.emit(lambda x: packing.unpack(x, c, h, w), v.expr, hint="unpack", pattern=INJECTIVE, name=name)

    def packed_result(self, expr: relax.Expr, shape: tuple[int, ...]) -> Value:
        """Return the packed value of logical ``shape`` held by ``expr``."""
        return self.remember(Value(shape, expr=expr, image=tuple(shape[1:]), name=self.name))

    def remember(self, v: Value) -> Value:
        """Note which variables hold packed tensors, for layer-by-layer comparison."""
        if v.image is not None and isinstance(v.expr, relax.Var):
            self.packed_values[v.expr.name] = (v.shape, self.lanes)
        return v

    def relax_op(self, expr: relax.Expr) -> relax.Var:
        """Emit a Relax operator as it is, under the tensor's name."""
        var = self.builder.emit(expr, self.name)
        self.sources[var.name] = (self.name,)
        return var

    def reshaped(self, expr: relax.Expr, shape: tuple[int, ...]) -> relax.Expr:
        """Return ``expr`` with another shape: a view, never a kernel."""
        if shape_of(expr) == tuple(shape):
            return expr
        return self.builder.emit(relax.op.reshape(expr, shape))

    def unshaped(self, expr: relax.Expr) -> relax.Expr:
        """Return what ``expr`` is a reshaped view of, ``expr`` itself when it is none."""
        while isinstance(expr, relax.Var):
            bound = self.builder.lookup_binding(expr)
            if not (isinstance(bound, tvm.ir.Call) and getattr(bound.op, "name", "") == "relax.reshape"):
                break
            expr = bound.args[0]
        return expr

    def own_memory(self, expr: relax.Expr) -> relax.Expr:
        """Return ``expr`` in a buffer that may become an output or a part of a concatenation: a constant, an input
        and a buffer that already is one of these are copied."""
        root = self.unshaped(expr)
        is_free = isinstance(root, relax.Var) and root not in self.aliased
        if not is_free or self.builder.lookup_binding(root) is None:
            expr = root = self.emit(packing.copy, expr, hint="copy", pattern=OPAQUE, name="copied")
        self.aliased.add(root)
        return expr

    def note(self, text: str) -> None:
        """Record why something was left unpacked; it stands in the report."""
        self.notes.append(text)


def constant(array: np.ndarray) -> relax.Expr:
    """Return ``array`` as a Relax constant."""
    return relax.const(np.asarray(array, order="C"), str(array.dtype))


def shape_of(expr: relax.Expr) -> tuple[int, ...]:
    """Return the static shape of a tensor expression."""
    return tuple(int(d) for d in expr.ty.shape)


def per_channel(const: np.ndarray, shape: tuple[int, ...], axis: int) -> np.ndarray | None:
    """Return ``const`` as a vector [shape[axis]] if it broadcasts against ``shape`` along that axis alone."""
    size = shape[axis]
    if const.size == 1:
        return np.full(size, const.reshape(()), const.dtype)
    padded = (1,) * (len(shape) - const.ndim) + const.shape
    if len(padded) != len(shape) or padded[axis] != size or prod(padded) != size:
        return None
    return const.reshape(size)
