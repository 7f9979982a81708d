"""Cut neurons and channels: weights really become smaller, and the network faster.

    importance of each neuron -> choose -> correct the weights that stay -> cut -> fine-tune

in steps that shrink no layer by more than ``factor``. Which neurons can go, and what goes with each, is found by
``channel_groups.py``. What each is worth follows from the data: with training samples the first-order importance
(``channel_taylor.py``), with calibration samples what readers lose after correction, without any the l2 norm.
``importance`` names another one (``channel_importance.py``). With training samples every step ends with fine-tuning by
distillation; with calibration samples the weights that stay are fitted to the outputs as they were
(``channel_correction.py``).

What a step of more than about 1.6 loses, no fine-tuning brings back (LeNet, 79.7 % right after one large step: 0.2
points for good).

Strength s cuts 0.6 s of the multiply-adds; ``cut`` other than 0 wins. ``widths`` gives the final size of groups by name
("conv1*=8") in place of a search.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import tvm

from ..errors import CompressError
from ..ir.coded import digest
from ..ir.cost import macs_by_tensor
from .channel_correction import corrected
from .channel_costs import Costs, choose
from .channel_groups import ChannelGroups, Group, channel_groups
from .channel_importance import Inputs, by_reconstruction, by_spread, by_weights, watch_inputs
from .constants import constant_names
from .cut_channels import cut_channels
from .layers import weight_layers
from .result import Data, LayerReport, MethodReport, Progress, Squeezed, StepConfig

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "importance": "auto",  # l1, l2, batch_norm, reconstruction or taylor
    "cost": "macs",  # or "weights": what ``cut`` is a share of
    "cut": 0.0,  # share of the cost, [0, 1); 0: from the strength
    "widths": (),  # "pattern=neurons": final sizes instead of a search
    "least": 0.1,  # share of a group's neurons that stay in any case
    "factor": 1.6,  # by which one step shrinks a group at most
    "multiple": 1,  # sizes of groups are multiples of this: lanes of a vector register, for speed
    "correct": True,
    "samples": 4096,  # for importance, at most
    "epochs": 2,  # of fine-tuning after each step, with training samples
    "steps": 0,  # updates, instead of epochs
    "batch": 512,
    "lr": 1e-3,
    "shift_px": 0,
    "share": 0.5,
    "temperature": 2.0,
}
LIMITS = {
    "importance": ("auto", "l1", "l2", "batch_norm", "reconstruction", "taylor"),
    "cost": ("macs", "weights"),
    "cut": (0.0, 0.999),
    "least": (0.0, 1.0),
    "factor": (1.01, 1e6),
    "multiple": (1, 4096),
    "samples": (1, 1 << 30),
    "batch": (1, 1 << 20),
    "shift_px": (0, 64),
}
NEEDS = "nothing"

_EXTRA_STEPS = 4  # where rounding to whole neurons kept the steps from their goal


def prune_neurons(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return the network with fewer neurons.

    Raises:
        CompressError: a ``widths`` that names no group, or an importance whose data was not given.
    """
    p, mod = config.params, state.mod
    kind = _importance(p, data)
    before = {layer.name: layer for layer in weight_layers(mod)}
    goal = _goal(mod, config, kind)
    for index in range(goal.steps + _EXTRA_STEPS if goal.steps else 0):
        groups = _allowed(channel_groups(mod), config, kind)
        costs = Costs(mod, groups, str(p["cost"]))
        worth, inputs = _worth(kind, mod, groups, data, p, seed)
        gone = goal.chosen(groups, costs, worth, index, config)
        if not gone:
            break  # there, or nothing may go any more
        if inputs is not None and p["correct"]:
            mod = corrected(mod, groups, gone, inputs)
        mod = cut_channels(mod, groups, gone)
        if data.train is not None and (p["epochs"] or p["steps"]):
            mod = _fine_tuned(mod, config, data, seed + index, f"neurons {index + 1} of {goal.steps}", progress)
        progress("prune neurons", index + 1, goal.steps)
    return _result(state, mod, before, _left_alone(state.mod, config, kind), kind)


def _importance(params: Mapping[str, Any], data: Data) -> str:
    kind = str(params["importance"])
    if kind == "auto":
        return "taylor" if data.train is not None else "reconstruction" if data.calib is not None else "l2"
    needs = {"taylor": data.train, "batch_norm": data.calib, "reconstruction": data.calib}
    if kind in needs and needs[kind] is None:
        flag = "--train" if kind == "taylor" else "--calib"
        raise CompressError(
            f"importance '{kind}'", "there are no samples for it", f"Give them with {flag}, or use 'l2'."
        )
    if kind not in needs and kind not in ("l1", "l2"):
        raise CompressError(
            f"importance '{kind}'", "no such importance", "One of: auto, l1, l2, batch_norm, reconstruction, taylor."
        )
    return kind


@dataclass(frozen=True)
class _Goal:
    """Where the steps lead: a share of the cost, or sizes of groups by name."""

    steps: int
    share: float  # of the cost that is left at the end
    start: float  # cost before
    sizes: Mapping[str, int]  # group -> neurons at the end
    begin: Mapping[str, int]  # group -> neurons before
    factor: float
    least: float

    def chosen(
        self, groups: ChannelGroups, costs: Costs, worth: Mapping[int, float], index: int, config: StepConfig
    ) -> set[int]:
        """Return the neurons that go in step ``index``."""
        part = min((index + 1) / self.steps, 1.0)
        if self.sizes:
            gone: set[int] = set()
            for group in groups.groups:
                if group.name in self.sizes:
                    end, full = self.sizes[group.name], self.begin[group.name]
                    size = max(end, round(full * (end / full) ** part))
                    order = sorted(group.neurons, key=lambda n: (worth[n], n))
                    gone.update(order[: max(len(group.neurons) - size, 0)])
            return gone
        smallest = {
            g.name: max(math.ceil(len(g.neurons) / self.factor), math.ceil(self.begin.get(g.name, 1) * self.least), 1)
            for g in groups.groups
        }
        target = self.start * self.share**part
        return choose(groups, costs, worth, target, smallest, int(config.params["multiple"]))[0]


def _goal(mod: tvm.IRModule, config: StepConfig, kind: str) -> _Goal:
    p = config.params
    groups = _allowed(channel_groups(mod), config, kind)
    factor, begin = float(p["factor"]), {g.name: len(g.neurons) for g in groups.groups}
    start = Costs(mod, groups, str(p["cost"])).total()
    sizes = _widths(p["widths"], groups)
    if sizes:
        ratio = max(begin[name] / size for name, size in sizes.items())
        steps = max(1, math.ceil(math.log(ratio) / math.log(factor) - 1e-9))
        return _Goal(steps, 1.0, start, sizes, begin, factor, 0.0)
    cut = float(p["cut"]) or 0.6 * config.strength
    if cut <= 0 or not groups.groups:
        return _Goal(0, 1.0, start, {}, begin, factor, 0.0)
    if cut >= 1:
        raise CompressError(f"cut = {cut}", "a share of the cost below 1 was expected", "Try cut = 0.5.")
    steps = max(1, math.ceil(math.log(1 / (1 - cut)) / math.log(factor) - 1e-9))
    return _Goal(steps, 1 - cut, start, {}, begin, factor, float(p["least"]))


def _widths(widths: tuple[str, ...], groups: ChannelGroups) -> dict[str, int]:
    """Return group -> size for each entry ``pattern=size``."""
    sizes: dict[str, int] = {}
    for entry in widths:
        pattern, _, size = entry.rpartition("=")
        hits = [g for g in groups.groups if any(fnmatchcase(maker, pattern) for maker in g.makers)]
        if not hits or not size.strip().isdigit() or int(size) < 1:
            names = ", ".join(g.name for g in groups.groups)
            raise CompressError(f"widths: '{entry}'", "no such layer, or no size", f"Layers: {names}.")
        sizes.update({g.name: min(int(size), len(g.neurons)) for g in hits})
    return sizes


def _allowed(groups: ChannelGroups, config: StepConfig, kind: str) -> ChannelGroups:
    """Return ``groups`` with only those that may be cut."""
    chosen = tuple(g for g in groups.groups if not _why_not(g, groups, config, kind))
    return ChannelGroups(chosen, groups.left_alone, groups.constants, groups.values, groups.readers, groups.in_products)


def _why_not(group: Group, groups: ChannelGroups, config: StepConfig, kind: str) -> str:
    reasons = [config.why_not(maker) for maker in group.makers]
    if any(reasons):
        return next(reason for reason in reasons if reason)
    if groups.in_products.intersection(group.neurons):
        return "a product of two activations sums over it"
    read = {int(n) for reader in groups.readers for n in reader.classes}
    if kind in ("taylor", "reconstruction") and not read.issuperset(group.neurons):
        return "no layer with constant weights reads it"
    return ""


def _left_alone(mod: tvm.IRModule, config: StepConfig, kind: str) -> dict[str, str]:
    groups = channel_groups(mod)
    refused = {m: why for g in groups.groups if (why := _why_not(g, groups, config, kind)) for m in g.makers}
    return {**groups.left_alone, **refused}


def _worth(
    kind: str, mod: tvm.IRModule, groups: ChannelGroups, data: Data, params: Mapping[str, Any], seed: int
) -> tuple[dict[int, float], Inputs | None]:
    """Return the importance of every neuron, and what calibration saw of the readers' inputs."""
    count = int(params["samples"])
    if kind == "taylor":
        from .channel_taylor import by_taylor

        assert data.train is not None
        return by_taylor(mod, groups, data.train[:count], seed), None
    inputs = watch_inputs(mod, groups, data.calib[:count], seed) if data.calib is not None else None
    if kind in ("l1", "l2"):
        return by_weights(mod, groups, 1 if kind == "l1" else 2), inputs
    assert inputs is not None
    return (by_spread(groups, inputs) if kind == "batch_norm" else by_reconstruction(mod, groups, inputs)), inputs


def _fine_tuned(
    mod: tvm.IRModule, config: StepConfig, data: Data, seed: int, name: str, progress: Progress
) -> tvm.IRModule:
    from .fine_tune import fine_tuned

    return fine_tuned(mod, config, data, seed, name, progress)


def _result(
    state: Squeezed, mod: tvm.IRModule, before: Mapping[str, Any], left_alone: Mapping[str, str], kind: str
) -> Squeezed:
    lines = []
    for layer in weight_layers(mod):
        old = before[layer.name]
        lines.append(
            LayerReport(
                name=layer.name,
                weights=old.weights.size,
                bytes_before=old.weights.nbytes,
                bytes_after=layer.weights.nbytes,
                kept=layer.weights.size,
                sparsity=float((layer.weights == 0).mean()),
                macs_before=old.macs,
                macs_after=layer.macs,
            )
        )
    macs = [sum(macs_by_tensor(m).values()) for m in (state.mod, mod)]
    facts: dict[str, str | int | float] = {"importance": kind, "MACs before": macs[0], "MACs after": macs[1]}
    still = {digest(constant.value.numpy()) for constant in constant_names(mod)}
    coded = {key: tensor for key, tensor in state.coded.items() if key in still}
    return Squeezed(mod, coded, MethodReport("prune_neurons", tuple(lines), left_alone, facts))
