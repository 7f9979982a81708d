"""factorise_low_rank: one weight becomes two smaller ones in a row where a lower rank gives nearly the same output.

    Given:                      Result, of rank r:
      y = matmul(x, w)            y = matmul(matmul(x, a), b)            a [I, r], b [r, O]
      y = conv2d(x, w)            y = conv2d(conv2d(x, a), b)            a [r, C, KH, KW], b [O, r, 1, 1]
                             or   the same                               a [r, C, KH, 1],  b [O, r, 1, KW]

The first form projects outputs: with H the second moment of the inputs, W H W' is that of the outputs, and the first r
of its eigenvectors U lose least: a = U'W, b = U (Zhang, Zou, He and Sun 2015, "Accelerating Very Deep Convolutional
Networks for Classification and Detection", equations 4 to 6; without samples H is the identity, which is the singular
value decomposition of Denton, Zaremba, Bruna, LeCun and Fergus 2014, "Exploiting Linear Structure Within Convolutional
Networks for Efficient Evaluation", section 3.2). The second form takes a from the singular value decomposition over
[C KH, KW O] (Jaderberg, Vedaldi and Zisserman 2014, "Speeding up Convolutional Neural Networks with Low Rank
Expansions", scheme 2, equation 5); where we differ: b is then the least-squares fit of the outputs.

Each layer gets the least rank whose relative RMS output error is at most ``error`` (0 takes it from the strength s:
0.4 s), in the form that is smaller then; it stays as it is unless ``cost`` falls by at least ``gain`` and neither
weights nor multiply-adds grow. Run before the methods that make integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call

from ..ir.cost import macs_by_tensor
from .choose_layers import choose_layers
from .compensate import output_error
from .constants import FIRST, rebuilt
from .layer_bias import biases_of, with_shifted_biases
from .layers import Layer
from .result import Data, LayerReport, MethodReport, Progress, Squeezed, StepConfig
from .statistics import Statistics, even_statistics
from .weight_matrix import has_matrix, to_rows

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "error": 0.0,  # of a layer's output, relative RMS; 0: from the strength
    "cost": "weights",  # or "macs": what must fall
    "gain": 0.1,  # by this share at least
    "spatial": True,  # try the second form as well
    "samples": 64,
}
LIMITS = {"error": (0.0, 1.0), "cost": ("weights", "macs"), "gain": (0.0, 0.99), "samples": (1, 1 << 30)}
NEEDS = "nothing"


@dataclass(frozen=True)
class Factors:
    """``a`` and ``b`` in the shapes of their operators; ``rows`` [1, R, n]: the weight that they stand for."""

    a: Array
    b: Array
    rows: Array
    error: float  # relative RMS of the output
    macs: int


def factorise_low_rank(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return ``state`` with two smaller weights in the place of each that has a low rank."""
    params = {**DEFAULTS, **config.params}
    choice = choose_layers(state.mod, config, lambda layer: _refused(layer, state))
    layers, chosen, left = choice.every, choice.chosen, choice.left
    found = Statistics()
    if data.calib is not None and chosen:
        samples = data.calib[: int(params["samples"])]
        found = even_statistics(state.mod, chosen, samples, seed, config.journal, progress)
    biases = biases_of(state.mod, layers)
    new: dict[str, Factors] = {}
    shifted: dict[str, Array] = {}
    for done, layer in enumerate(chosen):
        progress(f"factorise {layer.name}", done, len(chosen))
        bias = biases.get(layer.digest)
        second, first = _moments(layer, found, bias is not None)
        most = float(params["error"]) or 0.4 * config.strength_of(layer.name)
        factors = _best(layer, second, most, params)
        if factors is None:
            left[layer.name] = f"no rank that pays keeps its output within {most:.1%}"
            continue
        new[layer.name] = factors
        if bias is not None and first is not None:
            change = to_rows(layer, layer.weights) - factors.rows
            shifted[bias] = np.matmul(change, first[:, :, None]).reshape(-1)
    shifted_state = with_shifted_biases(state, shifted)
    mod = _factorised(shifted_state.mod, new)
    lines = tuple(_line(layer, new[layer.name], mod) for layer in chosen if layer.name in new)
    macs = [sum(macs_by_tensor(m).values()) for m in (state.mod, mod)]
    facts: dict[str, str | int | float] = {"layers factorised": len(new), "MACs before": macs[0], "MACs after": macs[1]}
    return Squeezed(mod, shifted_state.coded, MethodReport("factorise_low_rank", lines, left, facts))


def _refused(layer: Layer, state: Squeezed) -> str:
    if layer.digest in state.coded:
        return "it is made of integers, which two factors would not be"
    if layer.shared:
        return "several operators read it"
    if not has_matrix(layer) or layer.kind == "conv2d_transpose" or layer.groups != 1:
        return f"a {layer.kind} weight of {layer.groups} groups is no matrix of one input"
    return "" if layer.weights.any() else "it is zero"


def _moments(layer: Layer, found: Statistics, has_bias: bool) -> tuple[Array, Array | None]:
    """Return H [1, n, n] float64 and the mean input [1, n], centred where a bias takes up the mean."""
    if layer.digest not in found.moments:
        n = to_rows(layer, layer.weights).shape[2]
        return np.eye(n)[None], None
    second, first = (array.astype(np.float64) for array in found.inputs(layer.digest))
    if not has_bias:
        return second, None
    return second - first[:, :, None] * first[:, None, :], first


def _best(layer: Layer, second: Array, most: float, params: Mapping[str, object]) -> Factors | None:
    """Return the factors of least cost whose error is at most ``most``; None when none pay."""
    forms = [_outputs_projected(layer, second, most)]
    if params["spatial"] and layer.kind == "conv2d" and min(layer.weights.shape[2:]) > 1:
        forms.append(_kernel_split(layer, second, most))
    before = {"weights": layer.weights.size, "macs": layer.macs}
    good = []
    for factors in (form for form in forms if form is not None):
        after = {"weights": factors.a.size + factors.b.size, "macs": factors.macs}
        pays = all(after[kind] <= before[kind] for kind in before)
        cost = str(params["cost"])
        if pays and after[cost] <= (1 - float(str(params["gain"]))) * before[cost]:
            good.append((after[cost], factors))
    return min(good, key=lambda one: one[0])[1] if good else None


def _outputs_projected(layer: Layer, second: Array, most: float) -> Factors | None:
    """Return the first form."""
    w = to_rows(layer, layer.weights)[0].astype(np.float64)
    values, vectors = np.linalg.eigh(w @ second[0] @ w.T)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    if not values.sum() > 0:
        return None
    lost = np.sqrt(np.maximum(1 - np.cumsum(values) / values.sum(), 0))
    rank = int(np.argmax(lost <= max(most, 1e-6))) + 1
    u = vectors[:, :rank]
    a, b = (u.T @ w).astype(np.float32), u.astype(np.float32)
    rows = (b @ a)[None]
    out = prod(int(d) for d in layer.call.ty.shape) // len(w)  # positions
    macs = out * (a.size + b.size)
    if layer.kind == "matmul":
        return Factors(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T), rows, float(lost[rank - 1]), macs)
    shape = layer.weights.shape
    return Factors(a.reshape(rank, *shape[1:]), b.reshape(shape[0], rank, 1, 1), rows, float(lost[rank - 1]), macs)


def _kernel_split(layer: Layer, second: Array, most: float) -> Factors | None:
    """Return the second form; the rank is found by bisection, since more rank never loses more."""
    outputs, channels, high, wide = layer.weights.shape
    taken = layer.weights.transpose(1, 2, 3, 0).reshape(channels * high, wide * outputs).astype(np.float64)
    left = np.linalg.svd(taken, full_matrices=False)[0]
    w = to_rows(layer, layer.weights)[0].astype(np.float64)
    energy = output_error(w[None], second)
    if not energy > 0:
        return None

    def made(rank: int) -> Factors:
        a = left[:, :rank].T.reshape(rank, channels, high)
        # what the second kernel sees, from what the whole one sees: [rank wide, channels high wide]
        seen = np.einsum("rch,vw->rvchw", a, np.eye(wide)).reshape(rank * wide, -1)
        inner = seen @ second[0] @ seen.T
        inner += 1e-8 * float(np.trace(inner)) / len(inner) * np.eye(len(inner))
        b = np.linalg.solve(inner, seen @ second[0] @ w.T).T
        rows = (b @ seen)[None]
        error = float(np.sqrt(max(output_error(w[None] - rows, second), 0) / energy))
        first, last = a[..., None].astype(np.float32), b.reshape(outputs, rank, 1, wide).astype(np.float32)
        return Factors(first, last, rows.astype(np.float32), error, _split_macs(layer, rank))

    low, top = 0, left.shape[1]
    while top - low > 1:
        middle = (low + top) // 2
        low, top = (low, middle) if made(middle).error <= max(most, 1e-6) else (middle, top)
    return made(top)


def _split_macs(layer: Layer, rank: int) -> int:
    outputs, channels, high, wide = layer.weights.shape
    rows, columns = (int(d) for d in layer.call.ty.shape.values[2:])
    width = int(layer.call.args[0].ty.shape.values[3])  # the first kernel leaves it
    return rank * rows * (channels * high * width + outputs * wide * columns)


def _factorised(mod: tvm.IRModule, new: Mapping[str, Factors]) -> tvm.IRModule:
    """Return ``mod`` with the layers in ``new`` as two operators each."""
    if not new:
        return mod

    def rewrite(binding: relax.VarBinding, call: Call) -> Call:
        factors = new.get(binding.var.name)
        if factors is None:
            return call
        a, b = (relax.const(array, "float32") for array in (factors.a, factors.b))
        if call.op.name == "relax.matmul":
            return relax.op.matmul(relax.op.matmul(call.args[0], a), b)
        return _two_convolutions(call, a, b, is_split=factors.b.shape[3] > 1)

    return rebuilt(mod, {}, rewrite)


def _two_convolutions(call: Call, a: relax.Expr, b: relax.Expr, is_split: bool) -> Call:
    """Return the convolution with ``a``, then ``b``; ``is_split``: one over the height, one over the width."""
    strides, dilation, padding = ([int(v) for v in getattr(call.attrs, k)] for k in ("strides", "dilation", "padding"))
    if not is_split:
        first = relax.op.nn.conv2d(call.args[0], a, strides=strides, padding=padding, dilation=dilation)
        return relax.op.nn.conv2d(first, b)
    top, left, bottom, right = padding
    first = relax.op.nn.conv2d(
        call.args[0], a, strides=[strides[0], 1], padding=[top, 0, bottom, 0], dilation=[dilation[0], 1]
    )
    return relax.op.nn.conv2d(first, b, strides=[1, strides[1]], padding=[0, left, 0, right], dilation=[1, dilation[1]])


def _line(layer: Layer, factors: Factors, mod: tvm.IRModule) -> LayerReport:
    macs, kept = macs_by_tensor(mod), factors.a.size + factors.b.size
    return LayerReport(
        name=layer.name,
        weights=layer.weights.size,
        bytes_before=layer.weights.nbytes,
        bytes_after=4 * kept,
        kept=kept,
        sparsity=0.0,
        macs_before=layer.macs,
        macs_after=macs[layer.name] + macs[f"{layer.name}/{FIRST}"],
        error=factors.error,
    )
