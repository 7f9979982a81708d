"""Which vectors a network's channels fill best, where a machine has long and short ones.

Given: relax.nn.conv2d of 24 -> 24 channels      Result: a third of 16 lanes would be empty, so the target of 8 lanes
"""

from __future__ import annotations

from collections.abc import Sequence

import tvm

from ..ir.cost import macs_of
from ..ir.tiles import cycles, tiles
from ..target import Machine, Target
from .conv_emitters import FIRST_LAYER_CHANNELS, blocks_for

LEAST_GAIN = 0.98  # long vectors have less overhead than the model sees


def choose_vectors(mods: Sequence[tvm.IRModule], target: Target) -> Target:
    """Return ``target`` or, where the layers of ``mods`` take fewer cycles with them, its shorter vectors."""
    narrower = target.narrower
    if narrower is None:
        return target
    wide, narrow = (sum(network_cycles(mod, t.machine) for mod in mods) for t in (target, narrower))
    return narrower if narrow < LEAST_GAIN * wide else target


def network_cycles(mod: tvm.IRModule, machine: Machine) -> float:
    """Return cycles of one core for the layers with constant weights of ``main``, empty lanes included."""
    calls = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    return sum(_layer_cycles(c, machine) for c in calls if isinstance(c, tvm.ir.Call))


def _layer_cycles(call: tvm.ir.Call, machine: Machine) -> float:
    name, v = getattr(call.op, "name", ""), machine.lanes
    if name not in ("relax.nn.conv2d", "relax.matmul") or not isinstance(call.args[1], tvm.ir.GenericConst):
        return 0.0
    out, x = ([int(d) for d in e.ty.shape] for e in (call, call.args[0]))
    steps = macs_of(call) / v
    if name == "relax.matmul":
        blocks, rows = blocks_for(out[-1], v), max(1, out[-2] if len(out) > 1 else 1)
        return steps * blocks * v / out[-1] * _tile_cycles(blocks, rows, machine)
    c, o, groups = x[1], out[1], int(call.attrs.groups)
    if groups > 1:
        return steps * -(-o // v) * v / o / machine.fma_ports
    blocks = blocks_for(o, v)
    filled = (o / (blocks * v)) * (c / (-(-c // v) * v) if c > FIRST_LAYER_CHANNELS else 1)
    return steps / filled * _tile_cycles(blocks, out[2] * out[3], machine)


def _tile_cycles(blocks: int, pixels: int, machine: Machine) -> float:
    ob, _, t = tiles(blocks, 1, pixels, machine)[0]
    return cycles(ob, t, machine)
