"""Layouts of elementwise operators: they run in whatever form their operand has."""

from __future__ import annotations

from math import prod

import numpy as np
import tvm
from tvm import relax

from ..kernels import conv2d, elementwise
from .layout_linear import fold_constant
from .layout_walk import BROADCAST, ELEMENTWISE, INJECTIVE, Value, Walk, constant, per_channel, shape_of

FOLDED = ("relax.add", "relax.subtract", "relax.multiply", "relax.divide")  # by a constant, into a pending operator


def unary_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """An operator of ``kernels.elementwise.UNARY`` on float32."""
    return apply_unary(walk, call, elementwise.UNARY[call.op.name])


def clip_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Clip with constant bounds."""
    low, high = (float(a.value) for a in call.args[1:3])
    return apply_unary(walk, call, elementwise.clip(low, high))


def leaky_relu_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """x if x > 0 else alpha x."""
    return apply_unary(walk, call, elementwise.leaky_relu(float(call.attrs.alpha)))


def apply_unary(walk: Walk, call: tvm.ir.Call, fn: elementwise.Fn1) -> Value | None:
    """Emit ``fn`` of the operand in the form it has."""
    x = walk.value(call.args[0])
    if x.dtype != "float32" or x.const is not None:
        return None
    walk.settle(x)
    hint = call.op.name.split(".")[-1]
    y = walk.emit(lambda t: elementwise.unary(t, fn, hint), x.expr, hint=hint, pattern=ELEMENTWISE)
    return walk.packed_result(y, x.shape) if x.image else Value(x.shape, expr=y, name=walk.name)


def power_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """x ** 2 and x ** 0.5 without a call of powf for each element."""
    exponent = walk.value(call.args[1]).const
    if exponent is None or exponent.size != 1 or exponent.ndim > len(shape_of(call.args[0])):
        return None
    x = walk.settle(walk.value(call.args[0]))
    may_be_negative = x.image is not None and _has_padding(walk, x)  # padded lanes hold anything
    if float(exponent.reshape(())) == 2.0:
        return apply_unary(walk, call, lambda x: x * x)
    if float(exponent.reshape(())) == 0.5 and not may_be_negative:
        return apply_unary(walk, call, lambda x: tvm.tirx.sqrt(x))
    return None


def binary_handler(walk: Walk, call: tvm.ir.Call) -> Value | None:
    """Fold a constant into a pending operator, or combine in packed form, or leave both plain."""
    op = call.op.name
    if op in FOLDED and (folded := fold_constant(walk, op, call)):
        return folded
    x, y = walk.value(call.args[0]), walk.value(call.args[1])
    if x.dtype != "float32" or y.dtype != "float32":
        return None
    walk.settle(x)
    walk.settle(y)
    if x.image is None and y.image is None:
        return _plain_scalar(walk, call, x, y) or _plain_tensors(walk, call, x, y)
    if op == "relax.divide" and _divides_by_padding(y) and (_has_padding(walk, x) or _has_padding(walk, y)):
        walk.note(f"{walk.name}: division in padded lanes; kept plain")
        return None
    return _packed_binary(walk, call, x, y)


def _has_padding(walk: Walk, v: Value) -> bool:
    """Whether the packed form of ``v`` has lanes beyond its last channel."""
    if v.image is not None and v.expr is not None:
        return shape_of(v.expr)[1] * walk.lanes != v.shape[1]
    return len(v.shape) == 4 and v.shape[1] % walk.lanes != 0


def _pattern(a: relax.Expr, b: relax.Expr, pattern: int) -> int:
    """Packed operands may differ by a block of padding; their result has another shape than the larger one, so it
    must not be fused into the convolution that made that."""
    return pattern if shape_of(a)[1] == shape_of(b)[1] else INJECTIVE


def _divides_by_padding(y: Value) -> bool:
    """Whether the divisor's padded lanes would be zero: anything but one scalar."""
    return y.const is None or y.const.size != 1


def _plain_scalar(walk: Walk, call: tvm.ir.Call, x: Value, y: Value) -> Value | None:
    """A plain tensor with a scalar constant: a kernel that needs no operand in memory."""
    fn, hint = elementwise.BINARY[call.op.name], call.op.name.split(".")[-1]
    for v, c, swapped in ((x, y, False), (y, x, True)):
        if c.const is not None and c.const.size == 1 and v.const is None and c.const.ndim <= len(v.shape):
            number = float(c.const.reshape(()))
            y_expr = walk.emit(
                lambda t, n=number, s=swapped: elementwise.with_scalar(t, n, fn, s, hint),
                v.expr, hint=hint, pattern=ELEMENTWISE,
            )  # fmt: skip
            return Value(v.shape, expr=y_expr, name=walk.name)
    return None


def _plain_tensors(walk: Walk, call: tvm.ir.Call, x: Value, y: Value) -> Value | None:
    """Two plain tensors of one shape, one of them the reshaped output of a kernel: combined in that kernel's shape, so
    that its tail can do it."""
    fn, hint = elementwise.BINARY[call.op.name], call.op.name.split(".")[-1]
    if x.shape != y.shape or x.const is not None or y.const is not None:
        return None
    shape = next((shape_of(f) for v in (x, y) if (f := walk.unshaped(v.expr)) is not v.expr), None)
    if shape is None:
        return None
    a, b = (walk.reshaped(walk.unshaped(v.expr), shape) for v in (x, y))
    combined = walk.emit(lambda a, b: elementwise.binary(a, b, fn, hint), a, b, hint=hint, pattern=ELEMENTWISE)
    return Value(x.shape, expr=walk.reshaped(combined, x.shape), name=walk.name)


def _packed_binary(walk: Walk, call: tvm.ir.Call, x: Value, y: Value) -> Value | None:
    """At least one operand is packed: combine with a tensor, a channel vector, a plane or a scalar."""
    fn, hint, out = elementwise.BINARY[call.op.name], call.op.name.split(".")[-1], shape_of(call)
    big, small, swapped = (x, y, False) if x.shape == out and x.image is not None else (y, x, True)
    if big.shape != out or big.const is not None:
        return None
    big = walk.packed(big)
    n, c = out[:2]
    if small.const is not None:
        return _packed_with_constant(walk, big, small.const, fn, swapped, hint)
    if small.shape == out:
        args = [walk.packed(small).expr, big.expr] if swapped else [big.expr, walk.packed(small).expr]
        pattern = _pattern(args[0], args[1], ELEMENTWISE)
        y_expr = walk.emit(lambda a, b: elementwise.binary(a, b, fn, hint), *args, hint=hint, pattern=pattern)
    elif small.shape in ((n, c, 1, 1), (1, c, 1, 1)):
        te_fn = lambda a, b: elementwise.with_channels(a, b, fn, swapped, hint)  # noqa: E731
        other = walk.packed(small).expr
        y_expr = walk.emit(te_fn, big.expr, other, hint=hint, pattern=_pattern(big.expr, other, BROADCAST))
    elif small.shape in ((n, 1, *out[2:]), (1, 1, *out[2:])):
        te_fn = lambda a, b: elementwise.with_plane(a, b, fn, swapped, hint)  # noqa: E731
        y_expr = walk.emit(te_fn, big.expr, walk.plain(small), hint=hint, pattern=BROADCAST)
    else:
        return None
    return walk.packed_result(y_expr, out)


def _packed_with_constant(
    walk: Walk, big: Value, const: np.ndarray, fn: elementwise.Fn2, swapped: bool, hint: str
) -> Value | None:
    v = walk.lanes
    if const.size == 1:
        number = float(const.reshape(()))
        scalar_fn = lambda t: elementwise.with_scalar(t, number, fn, swapped, hint)  # noqa: E731
        return walk.packed_result(walk.emit(scalar_fn, big.expr, hint=hint, pattern=ELEMENTWISE), big.shape)
    blocks = shape_of(big.expr)[1]
    vector = per_channel(const, big.shape, 1)
    if vector is not None:
        fill = (
            conv2d.pack_vector(vector - 1, v, blocks) + 1 if hint == "divide" else conv2d.pack_vector(vector, v, blocks)
        )
        te_fn = lambda a, b: elementwise.with_channels(a, b, fn, swapped, hint)  # noqa: E731
        other = constant(fill.reshape(1, blocks, 1, v).astype("float32"))
        return walk.packed_result(walk.emit(te_fn, big.expr, other, hint=hint, pattern=BROADCAST), big.shape)
    if prod(const.shape) == prod(big.shape):
        full = walk.packed(Value(big.shape, const=const.reshape(big.shape), name="constant"))
        args = [full.expr, big.expr] if swapped else [big.expr, full.expr]
        pattern = _pattern(args[0], args[1], ELEMENTWISE)
        y = walk.emit(lambda a, b: elementwise.binary(a, b, fn, hint), *args, hint=hint, pattern=pattern)
        return walk.packed_result(y, big.shape)
    return None
