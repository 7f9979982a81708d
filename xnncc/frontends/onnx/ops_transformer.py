"""Blocks of transformers that onnxruntime's optimiser writes as one node (domain com.microsoft)."""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..network import shape_of
from ..refused import Refused
from .node import Node
from .registry import converter

R = relax.op
_LOWEST = float(np.finfo("float32").min)


@converter("com.microsoft.SkipLayerNormalization")
def skip_layer_norm(n: Node) -> list[Expr | None]:
    """Inputs: x, skip, gamma, beta, bias of the sum. Outputs: y, mean, inverse deviation, the sum."""
    total = _sum_of(n, (0, 1, 4))
    y = R.nn.layer_norm(total, n.expr(2), _beta(n, 3, 2), [-1], float(n.attr("epsilon", 1e-12)))
    return [y, None, None, total]


@converter("com.microsoft.SkipSimplifiedLayerNormalization")
def skip_simplified_layer_norm(n: Node) -> list[Expr | None]:
    """Inputs: x, skip, gamma, bias of the sum. Outputs: y, (mean), inverse deviation, the sum."""
    total = _sum_of(n, (0, 1, 3))
    y, inverse = _root_mean_square(n, total, -1, float(n.attr("epsilon", 1e-12)))
    return [R.multiply(y, n.expr(2)), None, inverse, total]


@converter("SimplifiedLayerNormalization", "com.microsoft.SimplifiedLayerNormalization")
def simplified_layer_norm(n: Node) -> list[Expr | None]:
    """Inputs: x, gamma. Outputs: y, inverse deviation. Up to now onnxruntime files it under ai.onnx."""
    n.ignore("stash_type")
    axis = n.axis(int(n.attr("axis", -1)))
    y, inverse = _root_mean_square(n, n.emit(n.expr(0)), axis, float(n.attr("epsilon", 1e-5)))
    return [R.multiply(y, n.expr(1)), inverse]


@converter("com.microsoft.EmbedLayerNormalization")
def embed_layer_norm(n: Node) -> list[Expr | None]:
    """Words, positions and segments [N, S] looked up in their tables, added and normalised.

    Inputs: input_ids, segment_ids, word, position and segment tables, gamma, beta, mask [N, S], position_ids. Outputs:
    y [N, S, H], the mask's sums [N] (0 without a mask), the sum before.
    """
    if n.attr("mask_index_type", 0) not in (0, 1):
        raise Refused(f"mask_index_type {n.attr('mask_index_type')} is not supported", "Supported: 0, 1.")
    batch, steps = n.shape()
    total = _looked_up(n, 2, n.expr(0))
    if n.has(8):
        places = n.emit(R.broadcast_to(n.expr(8), (batch, steps)))
        total = R.add(total, _looked_up(n, 3, places))
    else:
        total = R.add(total, _looked_up(n, 3, n.build.constant(np.arange(steps, dtype="int32"))))
    if n.has(1) and n.has(4):
        total = R.add(total, _looked_up(n, 4, n.expr(1)))
    total = n.emit(total)
    y = R.nn.layer_norm(total, n.expr(5), n.expr(6), [-1], float(n.attr("epsilon", 1e-12)))
    lengths = R.astype(R.sum(n.expr(7), [1]), "int32") if n.has(7) else R.zeros((batch,), "int32")
    return [y, lengths if n.wants(1) else None, total]


@converter("com.microsoft.Attention")
def attention(n: Node) -> list[Expr | None]:
    """x: [N, S, C], weights: [C, 3 H], bias: [3 H] -> [N, S, H]; mask: lengths [N] or flags [N, S]."""
    _refuse_caches(n, (4, 6), "past and past_sequence_length")
    steps = n.shape()[1]
    heads = int(n.attr("num_heads", 0))
    sizes = [int(size) for size in n.attr("qkv_hidden_sizes") or [n.shape(1)[1] // 3] * 3]
    projected = n.emit(R.matmul(n.expr(0), n.expr(1)))
    projected = n.emit(R.add(projected, n.expr(2))) if n.has(2) else projected
    ends = list(np.cumsum(sizes))
    parts = [
        n.emit(R.strided_slice(projected, [2], [int(end) - size], [int(end)], [1]))
        for end, size in zip(ends, sizes, strict=True)
    ]
    added = _mask(n, 3, steps)
    if n.has(5):
        added.append(n.expr(5))
    if n.attr("unidirectional", 0):
        added.append(n.build.constant(np.triu(np.full((steps, steps), _LOWEST, "float32"), 1)))
    return [_attended(n, parts, heads, added)]


@converter("com.microsoft.MultiHeadAttention")
def multi_head_attention(n: Node) -> list[Expr | None]:
    """query [N, S, H], key and value [N, T, H], bias [3 H], mask of the keys [N] or [N, T], addend [N, heads, S, T]."""
    _refuse_caches(n, (6, 7, 8, 9), "past_key, past_value and what belongs to them")
    if n.rank() != 3 or not n.has(1) or not n.has(2) or n.rank(1) != 3 or n.rank(2) != 3:
        raise Refused("packed query, key and value are not supported", "Supported: three tensors of rank 3.")
    heads = int(n.attr("num_heads", 0))
    parts, start = [n.expr(i) for i in range(3)], 0
    for i in range(3) if n.has(3) else ():
        size = n.shape(i)[2]
        bias = n.emit(R.strided_slice(n.expr(3), [0], [start], [start + size], [1]))
        parts[i], start = n.emit(R.add(parts[i], bias)), start + size
    steps, keys = n.shape()[1], n.shape(1)[1]
    added = _mask(n, 4, keys)
    if n.has(5):
        added.append(n.expr(5))
    if n.attr("unidirectional", 0):
        added.append(n.build.constant(np.triu(np.full((steps, keys), _LOWEST, "float32"), 1 + keys - steps)))
    return [_attended(n, parts, heads, added)]


def _attended(n: Node, parts: list[Expr], heads: int, added: list[Expr]) -> Expr:
    """Return softmax(q k' scale + added) v of q, k, v [N, S or T, heads D], as [N, S, heads D]."""
    n.ignore("do_rotary", "past_present_share_buffer", "rotary_embedding_dim")  # without a cache they say nothing
    if n.attr("do_rotary", 0):
        raise Refused("do_rotary is not supported", "Export without onnxruntime's fusions.")
    if heads < 1 or any(shape_of(part)[2] % heads for part in parts):
        raise Refused(f"num_heads {heads} does not divide {[shape_of(part)[2] for part in parts]}")
    q, k, v = (_by_head(n, part, heads) for part in parts)
    scale = float(n.attr("scale", 0.0)) or 1 / math.sqrt(shape_of(q)[3])
    scores = R.multiply(R.matmul(q, n.emit(R.permute_dims(k, [0, 1, 3, 2]))), n.scalar(scale))
    for addend in added:
        scores = R.add(scores, addend)
    y = n.emit(R.matmul(n.emit(R.nn.softmax(n.emit(scores), 3)), v))
    batch, _, steps, depth = shape_of(y)
    return n.reshaped(R.permute_dims(y, [0, 2, 1, 3]), [batch, steps, heads * depth])


def _by_head(n: Node, x: Expr, heads: int) -> Expr:
    batch, steps, size = shape_of(x)
    return n.emit(R.permute_dims(n.reshaped(x, [batch, steps, heads, size // heads]), [0, 2, 1, 3]))


def _mask(n: Node, index: int, keys: int) -> list[Expr]:
    """Return what a mask adds to scores [N, heads, S, T]: lengths [N] or flags [N, T]; nothing without one."""
    value = float(n.attr("mask_filter_value", -10000.0))
    if not n.has(index):
        return []
    batch = n.shape()[0]
    if n.shape(index) == (batch,):
        places = n.build.constant(np.arange(keys, dtype="int32")[None])
        is_seen = R.less(places, n.reshaped(R.astype(n.expr(index), "int32"), [batch, 1]))
    elif n.shape(index) == (batch, keys):
        is_seen = R.greater(n.expr(index), n.scalar(0, n.dtype(index)))
    else:
        raise Refused(f"a mask of shape {list(n.shape(index))} is not supported", f"Supported: [{batch}, {keys}].")
    added = R.where(is_seen, n.scalar(0.0), n.scalar(value))
    return [n.emit(n.reshaped(added, [batch, 1, 1, keys]))]


def _refuse_caches(n: Node, inputs: tuple[int, ...], words: str) -> None:
    if any(n.has(index) for index in inputs) or n.wants(1):
        raise Refused(f"{words} are not supported", "Export without the cache of keys and values.")


def _sum_of(n: Node, inputs: tuple[int, ...]) -> Expr:
    """Return the sum of those inputs that are given; the skip may lack the batch."""
    total = n.expr(inputs[0])
    for index in inputs[1:]:
        total = R.add(total, n.expr(index)) if n.has(index) else total
    return n.emit(total)


def _beta(n: Node, index: int, gamma: int) -> Expr:
    return n.expr(index) if n.has(index) else n.build.constant(np.zeros(n.shape(gamma), n.dtype(gamma)))


def _root_mean_square(n: Node, x: Expr, axis: int, epsilon: float) -> tuple[Expr, Expr]:
    """Return x over the root of the mean of its squares, over all axes from ``axis`` on; and that root's inverse."""
    rank = len(shape_of(x))
    squares = R.mean(R.multiply(x, x), list(range(axis % rank, rank)), keepdims=True)
    root = n.emit(R.sqrt(R.add(squares, n.scalar(epsilon))))
    return R.divide(x, root), R.divide(n.scalar(1.0), root)


def _looked_up(n: Node, table: int, places: Expr) -> Expr:
    return R.take(n.expr(table), places, 0, mode="clip")
