"""Layers that only move elements."""

from __future__ import annotations

import numpy as np

from .formulas import Array, formula
from .net import Layer


@formula("Flatten")
def flatten(layer: Layer, xs: list[Array]) -> Array:
    p, shape = layer.params("flatten_param"), xs[0].shape
    first, last = p.whole("axis", 1, -9) % len(shape), p.whole("end_axis", -1, -9) % len(shape)
    return xs[0].reshape(*shape[:first], -1, *shape[last + 1 :])


@formula("Reshape")
def reshape(layer: Layer, xs: list[Array]) -> Array:
    p, shape = layer.params("reshape_param"), xs[0].shape
    axis, count = p.whole("axis", 0, -9), p.whole("num_axes", -1, -1)
    start = axis if axis >= 0 else len(shape) + 1 + axis
    end = len(shape) if count == -1 else start + count
    given = p.message_of("shape")
    dims = [shape[start + i] if d == 0 else d for i, d in enumerate(given.wholes("dim", -1) if given else [])]
    return xs[0].reshape(*shape[:start], *dims, *shape[end:])


@formula("Permute")
def permute(layer: Layer, xs: list[Array]) -> Array:
    order = layer.params("permute_param").wholes("order")
    return xs[0].transpose(order + sorted(set(range(xs[0].ndim)) - set(order)))


@formula("ShuffleChannel")
def shuffle_channel(layer: Layer, xs: list[Array]) -> Array:
    x, group = xs[0], layer.params("shuffle_channel_param").whole("group", 1)
    each = x.shape[1] // group
    return x[:, [g * each + i for i in range(each) for g in range(group)]]


@formula("Concat")
def concat(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("concat_param")
    return np.concatenate(xs, p.whole("concat_dim", 1) if p.has("concat_dim") else p.whole("axis", 1, -9))


@formula("Slice")
def slices(layer: Layer, xs: list[Array]) -> list[Array]:
    p = layer.params("slice_param")
    axis = p.whole("slice_dim", 1) if p.has("slice_dim") else p.whole("axis", 1, -9)
    return np.split(xs[0], p.wholes("slice_point") or len(layer.outputs), axis)


@formula("Split")
def split(layer: Layer, xs: list[Array]) -> list[Array]:
    return xs * len(layer.outputs)


@formula("Silence")
def silence(layer: Layer, xs: list[Array]) -> list[Array]:
    return []


@formula("Crop")
def crop(layer: Layer, xs: list[Array]) -> Array:
    p, (x, like) = layer.params("crop_param"), xs
    axis, offsets = p.whole("axis", 2, -9) % x.ndim, p.wholes("offset")
    for i, a in enumerate(range(axis, x.ndim)):
        start = offsets[min(i, len(offsets) - 1)] if offsets else 0
        x = x.take(range(start, start + like.shape[a]), a)
    return x


@formula("Tile")
def tile(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("tile_param")
    return np.concatenate([xs[0]] * p.whole("tiles", 1), p.whole("axis", 1, -9))


@formula("Parameter")
def parameter(layer: Layer, xs: list[Array]) -> Array:
    shape = layer.params("parameter_param").message_of("shape")
    return layer.blobs[0].reshape(shape.wholes("dim") if shape else ())
