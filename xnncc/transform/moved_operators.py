"""What each operator does with a transposed operand: run on the base, with its own axes turned, and pass it on.

A handler gets the walk and the call; it returns None when nothing is to move: then the call is emitted as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax import Expr

from ..kernels.elementwise import BINARY, UNARY
from .move_transposes import Axes, Moved, Mover, array_in, constant, inverse, shape_of, size_of

R = relax.op
Handler = Callable[[Mover, tvm.ir.Call], "Moved | list[Moved] | None"]


def _ints(values: Any) -> list[int]:
    return [int(value) for value in values]


def _operand(walk: Mover, call: tvm.ir.Call, index: int = 0) -> Moved | None:
    """Return an operand that is transposed and not flattened, else None."""
    value = walk.value(call.args[index])
    return value if value.axes is not None and value.flat is None else None


def _permute(walk: Mover, call: tvm.ir.Call) -> Moved | None:
    """Join with the transposition of the operand."""
    if array_in(call.args[0]) is not None:
        return None
    value = walk.value(call.args[0])
    if value.flat is not None:
        return None
    rank = len(shape_of(call))
    axes = _ints(call.attrs.axes) if call.attrs.axes is not None else list(range(rank))[::-1]
    before = value.axes or tuple(range(rank))
    return walk.moved(value.base, tuple(before[axis] for axis in axes))


def _unary(walk: Mover, call: tvm.ir.Call) -> Moved | None:
    x = _operand(walk, call)
    if x is None or x.axes is None:
        return None
    return walk.result(tvm.ir.Call(call.op, [x.base, *call.args[1:]], call.attrs, call.ty_args), x.axes)


def _broadcasting(walk: Mover, call: tvm.ir.Call) -> Moved | None:
    """Operands that broadcast: all take the order of the transposed ones, when those are in the majority."""
    axes = _common_axes(walk, list(call.args), shape_of(call))
    if axes is None:
        return None
    args = [_reordered(walk, arg, axes) for arg in call.args]
    return walk.result(tvm.ir.Call(call.op, args, call.attrs, call.ty_args), axes)


def _common_axes(walk: Mover, operands: Sequence[Any], out: tuple[int, ...]) -> Axes | None:
    """Return the axes to compute in, or None when staying as it is moves fewer elements."""
    values = [walk.value(operand) for operand in operands]
    if any(value.flat is not None for value in values):
        return None
    wanted = [v.axes for v in values if v.axes is not None and len(v.axes) == len(out)]
    if not wanted:
        return None
    axes = max(set(wanted), key=lambda a: (wanted.count(a), a))
    stay = sum(size_of(v.base) for v in values if not walk.is_free(v))
    go = 0
    for value in values:
        if value.axes != axes and array_in(value.base) is None:
            go += size_of(value.base) * (1 if walk.is_free(value) else 2)
    return axes if go <= stay else None


def _reordered(walk: Mover, operand: Any, axes: Axes) -> Expr:
    """Return an operand of at most ``len(axes)`` dimensions in the order of the bases."""
    value = walk.value(operand)
    if value.axes == axes:
        return value.base
    expr = walk.plain(value)
    shape, rank = shape_of(expr), len(axes)
    if prod(shape) == 1 and len(shape) < rank:
        return expr  # a scalar broadcasts in any order
    full = (1,) * (rank - len(shape)) + shape
    array = array_in(expr)
    if array is not None:
        return constant(array.reshape(full).transpose(inverse(axes)))
    if full != shape:
        expr = walk.bind(R.reshape(expr, full), f"{walk.name}#1")
    return walk.transposed(expr, inverse(axes), f"{walk.name}#1")


def _concat(walk: Mover, call: tvm.ir.Call) -> Moved | None:
    if not isinstance(call.args[0], relax.Tuple):
        return None
    fields = list(call.args[0].fields)
    axes = _common_axes(walk, fields, shape_of(call))
    if axes is None:
        return None
    axis = axes[int(call.attrs.axis) % len(axes)]
    return walk.result(R.concat([_reordered(walk, field, axes) for field in fields], axis), axes)


def _split(walk: Mover, call: tvm.ir.Call) -> list[Moved] | None:
    x = _operand(walk, call)
    if x is None or x.axes is None:
        return None
    where = call.attrs.indices_or_sections
    where = _ints(where) if hasattr(where, "__iter__") else int(where)
    whole = walk.bind(R.split(x.base, where, x.axes[int(call.attrs.axis) % len(x.axes)]), walk.name)
    count = len(call.ty.fields)
    return [walk.moved(walk.bind(relax.TupleGetItem(whole, i), f"{walk.name}#{i}"), x.axes) for i in range(count)]


def _along_axis(rebuild: Callable[[tvm.ir.Call, Expr, int], Expr]) -> Handler:
    """An operator with one axis that keeps the shape's order."""

    def handler(walk: Mover, call: tvm.ir.Call) -> Moved | None:
        x = _operand(walk, call)
        if x is None or x.axes is None or call.attrs.axis is None:
            return None
        return walk.result(rebuild(call, x.base, x.axes[int(call.attrs.axis) % len(x.axes)]), x.axes)

    return handler


def _strided_slice(walk: Mover, call: tvm.ir.Call) -> Moved | None:
    x = _operand(walk, call)
    if x is None or x.axes is None:
        return None
    axes, begin, end = ([int(v) for v in arg] for arg in call.args[1:4])
    steps = [int(v) for v in call.args[4]] if len(call.args) > 4 else [1] * len(axes)
    return walk.result(R.strided_slice(x.base, [x.axes[a] for a in axes], begin, end, steps), x.axes)


def _take(walk: Mover, call: tvm.ir.Call) -> Moved | None:
    x = _operand(walk, call)
    if x is None or x.axes is None or call.attrs.axis is None or len(shape_of(call.args[1])) != 1:
        return None
    axis = x.axes[int(call.attrs.axis) % len(x.axes)]
    positions = walk.plain(walk.value(call.args[1]))
    return walk.result(R.take(x.base, positions, axis, mode=call.attrs.mode), x.axes)


def _pad(walk: Mover, call: tvm.ir.Call) -> Moved | None:
    x = _operand(walk, call)
    if x is None or x.axes is None:
        return None
    pairs = np.array(_ints(call.attrs.pad_width)).reshape(-1, 2)[list(inverse(x.axes))]
    value = float(call.attrs.pad_value) if call.attrs.pad_value is not None else 0.0
    return walk.result(R.nn.pad(x.base, _ints(pairs.reshape(-1)), str(call.attrs.pad_mode), value), x.axes)


def _reduction(rebuild: Callable[..., Expr]) -> Handler:
    def handler(walk: Mover, call: tvm.ir.Call) -> Moved | None:
        x = _operand(walk, call)
        if x is None or x.axes is None or call.attrs.axis is None:
            return None
        rank = len(x.axes)
        given = call.attrs.axis if hasattr(call.attrs.axis, "__iter__") else [call.attrs.axis]
        logical = {int(a) % rank for a in given}
        reduced, keep = sorted(x.axes[a] for a in logical), bool(call.attrs.keepdims)
        y = rebuild(x.base, reduced, keep)
        if keep:
            return walk.result(y, x.axes)
        kept = [x.axes[i] for i in range(rank) if i not in logical]
        order = sorted(kept)
        axes = tuple(order.index(axis) for axis in kept)
        if axes == tuple(range(len(axes))):
            return Moved(walk.bind(y, walk.name))  # the very tensor
        return walk.result(y, axes)

    return handler


def _reshape(walk: Mover, call: tvm.ir.Call) -> Moved | None:
    """Dimensions of size 1 may come and go; a flattened image may wait for its matrix products."""
    x = _operand(walk, call)
    if x is None or x.axes is None:
        return None
    base, old, new = shape_of(x.base), shape_of(call.args[0]), shape_of(call)
    if [d for d in old if d != 1] == [d for d in new if d != 1]:
        return _with_other_ones(walk, x, new)
    flattens = len(new) == 2 and new[0] == old[0] and x.axes[0] == 0 and len(base) > 2
    if flattens and all(_is_product_with_weights(walk, reader) for reader in walk.readers()):
        return Moved(x.base, x.axes, new, walk.name)
    return None


def _with_other_ones(walk: Mover, x: Moved, new: tuple[int, ...]) -> Moved:
    """Return ``x`` in shape ``new``, which differs by dimensions of size 1 only.

    They come first in the new base: only the order of the others is data.
    """
    base = shape_of(x.base)
    real = [axis for axis in x.axes or () if base[axis] != 1]  # in the value's order
    if real == sorted(real):
        return Moved(walk.bind(R.reshape(x.base, new), walk.name))
    in_base, ones = sorted(real), sum(size == 1 for size in new)
    left, next_one = iter(real), iter(range(ones))
    axes = [next(next_one) if size == 1 else ones + in_base.index(next(left)) for size in new]
    y = walk.bind(R.reshape(x.base, (1,) * ones + tuple(base[axis] for axis in in_base)), f"{walk.name}#1")
    return walk.moved(y, tuple(axes))


def _is_product_with_weights(walk: Mover, reader: Any) -> bool:
    if not isinstance(reader, tvm.ir.Call) or getattr(reader.op, "name", "") != "relax.matmul":
        return False
    weights = array_in(reader.args[1])
    return weights is not None and weights.ndim == 2


def _matmul(walk: Mover, call: tvm.ir.Call) -> Moved | None:
    """[N, K] @ [K, M] of a flattened image: the rows of the weights follow the order of the base."""
    x = walk.value(call.args[0])
    weights = array_in(call.args[1])
    if x.flat is None or x.axes is None or weights is None:
        return None
    base = shape_of(x.base)
    logical = [base[axis] for axis in x.axes[1:]]
    order = [axis - 1 for axis in inverse(x.axes)[1:]]
    turned = weights.reshape(*logical, -1).transpose([*order, len(order)]).reshape(weights.shape)
    flat = walk.bind(R.reshape(x.base, x.flat), f"{walk.name}#flat")
    product = R.matmul(flat, constant(turned), out_dtype=call.attrs.out_dtype or None)
    return Moved(walk.bind(product, walk.name))


_ELEMENTWISE = ("clip", "nn.leakyrelu", "astype", "logical_not", "round", "sign", "sin", "cos", "ceil", "trunc",
                "square", "isnan", "isinf", "nn.silu", "nn.gelu", "abs", "negative", "exp", "log", "sqrt", "rsqrt",
                "floor", "tanh", "sigmoid", "erf", "nn.relu")  # fmt: skip
_COMPARE = ("power", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
            "logical_or", "where", "floor_divide", "floor_mod", "add", "subtract", "multiply", "divide", "maximum",
            "minimum")  # fmt: skip

MOVED: dict[str, Handler] = {
    **dict.fromkeys([*UNARY, *(f"relax.{name}" for name in _ELEMENTWISE)], _unary),
    **dict.fromkeys([*BINARY, *(f"relax.{name}" for name in _COMPARE)], _broadcasting),
    "relax.permute_dims": _permute,
    "relax.concat": _concat,
    "relax.split": _split,
    "relax.strided_slice": _strided_slice,
    "relax.take": _take,
    "relax.nn.pad": _pad,
    "relax.reshape": _reshape,
    "relax.matmul": _matmul,
    "relax.flip": _along_axis(lambda call, x, axis: R.flip(x, axis)),
    "relax.nn.softmax": _along_axis(lambda call, x, axis: R.nn.softmax(x, axis)),
    "relax.nn.log_softmax": _along_axis(lambda call, x, axis: R.nn.log_softmax(x, axis)),
    "relax.sum": _reduction(lambda x, axes, keep: R.sum(x, axes, keepdims=keep)),
    "relax.mean": _reduction(lambda x, axes, keep: R.mean(x, axes, keepdims=keep)),
    "relax.max": _reduction(lambda x, axes, keep: R.max(x, axes, keepdims=keep)),
    "relax.min": _reduction(lambda x, axes, keep: R.min(x, axes, keepdims=keep)),
    "relax.prod": _reduction(lambda x, axes, keep: R.prod(x, axes, keepdims=keep)),
    "relax.argmax": _reduction(lambda x, axes, keep: R.argmax(x, axes[0], keepdims=keep)),
    "relax.argmin": _reduction(lambda x, axes, keep: R.argmin(x, axes[0], keepdims=keep)),
}
