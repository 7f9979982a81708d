"""Random inputs that a network can digest: floats, indices inside their tables, flags among their values.

Floats lie in [-1, 1) after the scaling that the network itself begins with: one that computes x / 127.5 - 1 first
gets 0 to 255. Noise far smaller than what a network was made for turns into constants and ties.

What an integer input may be is read off the module: where it reaches ``take``, the table's size bounds it; where it
is compared with constants, those are the interesting values, and each of a scalar's gets a run of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import tvm
from tvm import relax
from tvm.ir import Call, GenericConst
from tvm.relax import Var

from ..ir.plan import TensorInfo
from ..ir.recurrent import Recurrent
from .network import array_in

SEED = 20261130
MAX_RUNS = 3
MAX_LENGTH = 2**20
_FOLLOWED = ("astype", "reshape", "permute_dims", "expand_dims", "squeeze", "where", "add", "clip", "maximum",
             "broadcast_to", "strided_slice", "concat")  # fmt: skip
_MOVED = ("permute_dims", "reshape", "strided_slice")
_COMPARED = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def random_inputs(mod: tvm.IRModule, inputs: Sequence[TensorInfo], seed: int = SEED) -> list[dict[str, np.ndarray]]:
    """Return one feed, or one for each value that a scalar integer input is compared with (at most ``MAX_RUNS``)."""
    limits, values = _uses(mod)
    scalings = _scalings(mod)
    scalars = [info for info in inputs if info.shape in ((), (1,)) and values.get(info.name)]
    runs = min(max((len(values[info.name]) + 1 for info in scalars), default=1), MAX_RUNS)
    rng = np.random.default_rng(seed)
    feeds = []
    for run in range(runs):
        feed = {info.name: _random(rng, info, limits.get(info.name), values.get(info.name)) for info in inputs}
        for info in inputs:
            if info.dtype.startswith("float"):
                factor, shift = scalings.get(info.name, (1.0, 0.0))
                feed[info.name] = ((feed[info.name] - shift) / factor).astype(info.dtype)
        for info in scalars:
            choices = sorted(values[info.name])
            chosen = choices[run] if run < len(choices) else choices[0] + 1
            feed[info.name] = np.full(info.shape, chosen, info.dtype)
        feeds.append(feed)
    return feeds


def random_stream(mod: tvm.IRModule, inputs: Sequence[TensorInfo], steps: int) -> list[dict[str, np.ndarray]]:
    """Return the feeds of several runs in a row, each with numbers of its own."""
    return [random_inputs(mod, inputs, SEED + step)[0] for step in range(steps)]


def _random(rng: np.random.Generator, info: TensorInfo, limit: int | None, values: set[float] | None) -> np.ndarray:
    if info.dtype == "bool":
        return rng.integers(0, 2, info.shape).astype(bool)
    if info.dtype.startswith("float"):
        return rng.uniform(-1, 1, info.shape).astype(info.dtype)
    if limit is None and values and len(values) > 2:
        return rng.choice(sorted(values), info.shape).astype(info.dtype)
    if limit is None and info.dtype in ("uint8", "int8"):
        bounds = np.iinfo(info.dtype)
        return rng.integers(bounds.min, bounds.max + 1, info.shape).astype(info.dtype)
    return rng.integers(0, limit or 2, info.shape).astype(info.dtype)


def _scalings(mod: tvm.IRModule) -> dict[str, tuple[float, float]]:
    """Return for each input the factor and shift of the arithmetic with constants that comes first."""
    found: dict[str, tuple[float, float]] = {}
    for param in mod["main"].params:
        var, factor, shift = param, 1.0, 0.0
        while (step := _only_reader(mod, var)) is not None:
            name = step.value.op.name.removeprefix("relax.")
            value = _constant_operand(step.value, 1)
            if value is None and name in ("add", "multiply"):
                value = _constant_operand(step.value, 0)
            if name in ("add", "subtract") and value is not None:
                shift += value if name == "add" else -value
            elif name in ("multiply", "divide") and value:
                ratio = value if name == "multiply" else 1 / value
                factor, shift = factor * ratio, shift * ratio
            elif name not in _MOVED:
                break
            var = step.var
        found[param.name] = (factor, shift)
    return found


def _constant_operand(call: Call, index: int) -> float | None:
    """Return the mean of a constant operand: one number for a mean or deviation per channel."""
    array = array_in(call.args[index]) if len(call.args) > index else None
    return float(array.mean()) if array is not None and array.size else None


def _only_reader(mod: tvm.IRModule, var: Var) -> relax.VarBinding | None:
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    readers = [b for b in bindings if isinstance(b.value, Call) and any(var.same_as(arg) for arg in b.value.args)]
    return readers[0] if len(readers) == 1 else None


def _uses(mod: tvm.IRModule) -> tuple[dict[str, int], dict[str, set[float]]]:
    """Return for each input the smallest table it indexes, and the constants it is compared with."""
    origins: dict[Var, set[str]] = {var: {var.name} for var in mod["main"].params}
    limits: dict[str, int] = {}
    values: dict[str, set[float]] = defaultdict(set)
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if not isinstance(call, Call):
                continue
            name = call.op.name.removeprefix("relax.")
            if name == "take":
                table = call.args[0].ty.shape.values
                for source in origins.get(call.args[1], ()):
                    size = int(table[int(call.attrs.axis or 0)])
                    limits[source] = min(limits.get(source, size), size)
            elif name == "call_pure_packed":
                _limit_lengths(call, origins, limits)
            elif name in _COMPARED:
                _note_constants(call, origins, values)
            elif name in _FOLLOWED:
                operands = [f for arg in call.args for f in (arg.fields if isinstance(arg, relax.Tuple) else [arg])]
                origins[binding.var] = set().union(*[origins.get(o, set()) for o in operands if isinstance(o, Var)])
    return limits, values


def _limit_lengths(call: Call, origins: dict[Var, set[str]], limits: dict[str, int]) -> None:
    """A recurrent layer's lengths are at most its steps."""
    spec = Recurrent.from_json(call.args[-1].value)
    operands = dict(zip(spec.operands, call.args[1:-1], strict=True))
    for source in origins.get(operands.get("lens"), ()):
        limits[source] = min(limits.get(source, MAX_LENGTH), int(operands["x"].ty.shape.values[0]) + 1)


def _note_constants(call: Call, origins: dict[Var, set[str]], values: dict[str, set[float]]) -> None:
    for left, right in (call.args, list(call.args)[::-1]):
        if isinstance(left, Var) and isinstance(right, GenericConst):
            array = right.value.numpy()
            if array.size <= 4096:
                for source in origins.get(left, ()):
                    values[source].update(array.reshape(-1).tolist())
