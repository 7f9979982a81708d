"""Multiply-adds of Relax operators, by the tensor they compute."""

from __future__ import annotations

from math import prod

import tvm


def macs_by_tensor(mod: tvm.IRModule) -> dict[str, int]:
    """Return, for each variable of ``main`` that a convolution or matrix product computes, its multiply-adds."""
    found = {}
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, tvm.ir.Call) and (macs := _macs(binding.value)):
                found[binding.var.name] = macs
    return found


def _macs(call: tvm.ir.Call) -> int:
    name = getattr(call.op, "name", "")
    if name not in ("relax.nn.conv2d", "relax.nn.conv2d_transpose", "relax.matmul"):
        return 0
    out = prod(int(d) for d in call.ty.shape)
    x, w = ([int(d) for d in a.ty.shape] for a in call.args[:2])
    if name == "relax.matmul":
        return out * x[-1]
    if name == "relax.nn.conv2d":
        return out * prod(w[1:])  # OIHW
    return prod(x) * prod(w[1:])  # IOHW: every input element meets every weight of its channel
