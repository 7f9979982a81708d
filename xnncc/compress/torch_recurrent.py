"""``xnn.recurrent`` in torch: the steps of ``ir/recurrent.py``, differentiable. Sequence lengths must be constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from tvm import relax
from tvm.ir import Call

from ..ir.recurrent import NAME, Activation, Recurrent

_ACTIVATIONS: dict[str, Callable[[Tensor, float, float], Tensor]] = {
    "sigmoid": lambda x, a, b: torch.sigmoid(x),
    "tanh": lambda x, a, b: torch.tanh(x),
    "relu": lambda x, a, b: torch.relu(x),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: torch.where(x < 0, a * x, x),
    "hardsigmoid": lambda x, a, b: (a * x + b).clamp(0, 1),
    "softsign": lambda x, a, b: x / (1 + x.abs()),
}


def recurrent(call: Call, function: relax.ExternFunc, *operands: Any) -> Any:
    """Return the layer's outputs; None for other functions, activations that are not here, and ``lens``."""
    if function.global_symbol != NAME:
        return None
    *tensors, text = operands
    spec = Recurrent.from_json(text.value)
    if "lens" in spec.operands or any(activation.name not in _ACTIVATIONS for activation in spec.activations):
        return None
    named = dict(zip(spec.operands, tensors, strict=True))
    results: dict[str, list[Tensor]] = {"y": [], "yh": [], "yc": []}
    for direction, is_reverse in enumerate(spec.reverse):
        own = {name: named[name][direction] for name in named if name != "x"}
        for name, value in zip(results, _run(spec, named["x"], own, is_reverse), strict=True):
            results[name].append(value)
    stacked = {name: torch.stack(parts, 1 if name == "y" else 0) for name, parts in results.items()}
    wanted = tuple(stacked[name] for name in spec.outputs)
    return wanted if len(wanted) > 1 else wanted[0]


def _run(spec: Recurrent, x: Tensor, own: dict[str, Tensor], is_reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """x: [T, N, I]; returns y [T, N, H] and the last h and c."""
    zero = x.new_zeros(x.shape[1], spec.hidden)
    h, c = own.get("h0", zero), own.get("c0", zero)
    projected, outputs = x @ own["w"].transpose(0, 1), []
    for t in reversed(range(x.shape[0])) if is_reverse else range(x.shape[0]):
        h, c = _STEPS[spec.cell](spec, own, projected[t], h, c)
        outputs.append(h)
    return torch.stack(outputs[::-1] if is_reverse else outputs), h, c


def _act(spec: Recurrent, index: int, x: Tensor) -> Tensor:
    activation: Activation = spec.activations[index]
    x = x.clamp(-spec.clip, spec.clip) if spec.clip else x
    return _ACTIVATIONS[activation.name](x, activation.alpha, activation.beta)


def _biases(spec: Recurrent, own: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    zero = own["r"].new_zeros(spec.gates * spec.hidden)
    parts = own["b"].chunk(2) if "b" in own else (zero, zero)
    return parts[0], parts[1]


def _lstm(spec: Recurrent, own: dict[str, Tensor], x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    wb, rb = _biases(spec, own)
    i, o, f, g = (x + h @ own["r"].transpose(0, 1) + wb + rb).chunk(4, dim=1)
    pi, po, pf = own["p"].chunk(3) if "p" in own else (wb.new_zeros(1),) * 3
    i = _act(spec, 0, i + pi * c)
    f = 1 - i if spec.is_input_forget else _act(spec, 0, f + pf * c)
    c = f * c + i * _act(spec, 1, g)
    last = spec.activations[2]
    return _act(spec, 0, o + po * c) * _ACTIVATIONS[last.name](c, last.alpha, last.beta), c


def _gru(spec: Recurrent, own: dict[str, Tensor], x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    wb, rb = _biases(spec, own)
    two = 2 * spec.hidden
    r_zr, r_h = own["r"][:two].transpose(0, 1), own["r"][two:].transpose(0, 1)
    inputs = x + wb
    z, r = _act(spec, 0, inputs[:, :two] + h @ r_zr + rb[:two]).chunk(2, dim=1)
    inner = r * (h @ r_h + rb[two:]) if spec.is_linear_before_reset else (r * h) @ r_h + rb[two:]
    return (1 - z) * _act(spec, 1, inputs[:, two:] + inner) + z * h, c


def _rnn(spec: Recurrent, own: dict[str, Tensor], x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    wb, rb = _biases(spec, own)
    return _act(spec, 0, x + h @ own["r"].transpose(0, 1) + wb + rb), c


_STEPS = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}
