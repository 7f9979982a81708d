"""Multiply-adds of Relax operators, by the tensor they compute."""

from __future__ import annotations

from math import prod

import tvm

from .recurrent import NAME as RECURRENT
from .recurrent import Recurrent


def macs_by_tensor(mod: tvm.IRModule) -> dict[str, int]:
    """Return the multiply-adds of each variable of ``main`` that a convolution, product or recurrent layer computes."""
    found = {}
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, tvm.ir.Call) and (macs := macs_of(binding.value)):
                found[binding.var.name] = macs
    return found


def macs_of(call: tvm.ir.Call) -> int:
    """Return the multiply-adds of one call; 0 for operators that are no convolution, product or recurrent layer."""
    name = getattr(call.op, "name", "")
    if name == "relax.call_pure_packed" and call.args[0].global_symbol == RECURRENT:
        return _recurrent(call)
    if name not in ("relax.nn.conv2d", "relax.nn.conv2d_transpose", "relax.matmul"):
        return 0
    out = prod(int(d) for d in call.ty.shape)
    x, w = ([int(d) for d in a.ty.shape] for a in call.args[:2])
    if name == "relax.matmul":
        return out * x[-1]
    if name == "relax.nn.conv2d":
        return out * prod(w[1:])  # OIHW
    return prod(x) * prod(w[1:])  # IOHW: every input element meets every weight of its channel


def _recurrent(call: tvm.ir.Call) -> int:
    """Return T * N * D * G * H * (I + H): both products of every step, as if no sequence were shorter than T."""
    _, *tensors, text = call.args
    operands = dict(zip(Recurrent.from_json(text.value).operands, tensors, strict=True))
    steps, batch = (int(d) for d in operands["x"].ty.shape.values[:2])
    return steps * batch * sum(prod(int(d) for d in operands[name].ty.shape) for name in ("w", "r"))
