"""Recurrent: the operator ``xnn.recurrent`` between importer and compiler, one layer of LSTM, GRU or RNN over time.

The importer writes ``call_pure_packed("xnn.recurrent", operands..., spec as JSON)``, and ``layout_recurrent.py`` in
``transform`` makes one kernel of it, so the graph never holds a step. What it computes is ``compute`` below, in numpy:
the importer's check runs it and the kernel's tests compare with it. Front-ends cannot import kernels and kernels have
no business with files, so this is where they meet: a new cell is a step here, a kernel file (and its line in
``kernels/recurrent.py``) and a converter. Layouts and gate orders are ONNX's with ``layout`` 0:

    x [T, N, I], w [D, G*H, I], r [D, G*H, H], b [D, 2*G*H], p [D, 3*H] (LSTM: i, o, f), h0 and c0 [D, N, H], lens [N]
    y [T, D, N, H], yh and yc [D, N, H]; gates: LSTM i, o, f, c; GRU z, r, h; RNN one

D directions, G gates, H units. A sequence that is shorter than T keeps its state after its last step; there y is zero.
An empty one has yh and yc of zero: the standard does not say, onnxruntime 1.32 does so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Array = np.ndarray

NAME = "xnn.recurrent"
OPERANDS = ("x", "w", "r", "b", "p", "h0", "c0", "lens")
OUTPUTS = ("y", "yh", "yc")
GATES = {"lstm": 4, "gru": 3, "rnn": 1}


@dataclass(frozen=True)
class Activation:
    """An activation by its ONNX name in lower case, with its two numbers."""

    name: str
    alpha: float = 0.0
    beta: float = 0.0


@dataclass(frozen=True)
class Recurrent:
    """Everything about a layer but its tensors. ``operands`` and ``outputs`` say which ones there are, in order."""

    cell: str  # a key of GATES
    hidden: int
    reverse: tuple[bool, ...]  # for each direction
    activations: tuple[Activation, ...]  # f, g, h of the LSTM; f, g of the GRU; f of the RNN
    operands: tuple[str, ...]
    outputs: tuple[str, ...]
    clip: float = 0.0  # of what enters an activation; 0: none
    is_linear_before_reset: bool = False  # GRU
    is_input_forget: bool = False  # LSTM: f = 1 - i

    @property
    def gates(self) -> int:
        """Gates of the cell."""
        return GATES[self.cell]

    def shape(self, output: str, steps: int, batch: int) -> tuple[int, ...]:
        """Return the shape of ``output``."""
        state = (len(self.reverse), batch, self.hidden)
        return (steps, *state) if output == "y" else state

    def to_json(self) -> str:
        """Return the text that ``from_json`` reads."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> Recurrent:
        """Return what ``to_json`` wrote."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(text).items()
        }
        fields["activations"] = tuple(Activation(**one) for one in fields["activations"])
        return Recurrent(**fields)


def compute(spec: Recurrent, operands: Mapping[str, Array]) -> dict[str, Array]:
    """Return every output of the layer, wanted or not, in the dtype of ``x``."""
    x = operands["x"]
    steps, batch = x.shape[:2]
    lens = operands.get("lens", np.full(batch, steps))
    results: dict[str, list[Array]] = {name: [] for name in OUTPUTS}
    for d, is_reverse in enumerate(spec.reverse):
        own = {name: operands[name][d] for name in ("w", "r", "b", "p", "h0", "c0") if name in operands}
        zero = np.zeros((batch, spec.hidden), x.dtype)
        h, c, y = own.get("h0", zero), own.get("c0", zero), np.zeros((steps, *zero.shape), x.dtype)
        step = _STEPS[spec.cell](spec, own)
        projected = x @ own["w"].T
        for t in reversed(range(steps)) if is_reverse else range(steps):
            new_h, new_c = step(projected[t], h, c)
            runs = (t < lens)[:, None]
            h, c, y[t] = np.where(runs, new_h, h), np.where(runs, new_c, c), np.where(runs, new_h, 0)
        is_empty = (lens <= 0)[:, None]
        for name, value in zip(OUTPUTS, (y, np.where(is_empty, 0, h), np.where(is_empty, 0, c)), strict=True):
            results[name].append(value)
    return {name: np.stack(parts, 1 if name == "y" else 0).astype(x.dtype) for name, parts in results.items()}


def activate(activation: Activation, x: Array) -> Array:
    """Return the activation of every element."""
    return _ACTIVATIONS[activation.name](x, activation.alpha, activation.beta)


_ACTIVATIONS: dict[str, Callable[[Array, float, float], Array]] = {
    "sigmoid": lambda x, a, b: 1 / (1 + np.exp(-x)),
    "tanh": lambda x, a, b: np.tanh(x),
    "relu": lambda x, a, b: np.maximum(x, 0),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "thresholdedrelu": lambda x, a, b: np.where(x > a, x, 0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x < 0, a * (np.exp(np.minimum(x, 0)) - 1), x),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.logaddexp(x, 0),
}
ACTIVATIONS = tuple(_ACTIVATIONS)

_Step = Callable[[Array, Array, Array], tuple[Array, Array]]  # projected [N, G*H], h, c [N, H] -> new h, c


def _act(spec: Recurrent, index: int, x: Array) -> Array:
    """Clip and activate."""
    clipped = np.clip(x, -spec.clip, spec.clip) if spec.clip else x
    return activate(spec.activations[index], clipped)


def _biases(spec: Recurrent, own: Mapping[str, Array]) -> tuple[Any, Any]:
    """Return the input's and the recurrence's bias, each [G*H]."""
    return tuple(np.split(own["b"], 2)) if "b" in own else (0, np.zeros(spec.gates * spec.hidden, own["r"].dtype))  # type: ignore[return-value]


def _lstm(spec: Recurrent, own: Mapping[str, Array]) -> _Step:
    """Hochreiter and Schmidhuber 1997 with the forget gate and peepholes of Gers and others 2002."""
    wb, rb = _biases(spec, own)
    pi, po, pf = np.split(own["p"], 3) if "p" in own else (0, 0, 0)

    def step(projected: Array, h: Array, c: Array) -> tuple[Array, Array]:
        i, o, f, g = np.split(projected + h @ own["r"].T + wb + rb, 4, axis=1)
        i = _act(spec, 0, i + pi * c)
        f = 1 - i if spec.is_input_forget else _act(spec, 0, f + pf * c)
        c = f * c + i * _act(spec, 1, g)
        return _act(spec, 0, o + po * c) * activate(spec.activations[2], c), c

    return step


def _gru(spec: Recurrent, own: Mapping[str, Array]) -> _Step:
    """Cho and others 2014; with ``is_linear_before_reset`` the reset gate scales the product, not the state."""
    wb, rb = _biases(spec, own)
    units = spec.hidden
    r_zr, r_h = own["r"][: 2 * units], own["r"][2 * units :]

    def step(projected: Array, h: Array, c: Array) -> tuple[Array, Array]:
        inputs = projected + wb
        zr = _act(spec, 0, inputs[:, : 2 * units] + h @ r_zr.T + rb[: 2 * units])
        z, r = np.split(zr, 2, axis=1)
        rb_h = rb[2 * units :]
        inner = r * (h @ r_h.T + rb_h) if spec.is_linear_before_reset else (r * h) @ r_h.T + rb_h
        return (1 - z) * _act(spec, 1, inputs[:, 2 * units :] + inner) + z * h, c

    return step


def _rnn(spec: Recurrent, own: Mapping[str, Array]) -> _Step:
    """h' = f(W x + R h + b)."""
    wb, rb = _biases(spec, own)

    def step(projected: Array, h: Array, c: Array) -> tuple[Array, Array]:
        return _act(spec, 0, projected + h @ own["r"].T + wb + rb), c

    return step


_STEPS: dict[str, Callable[[Recurrent, Mapping[str, Array]], _Step]] = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}
