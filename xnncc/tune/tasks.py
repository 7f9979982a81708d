"""What there is to tune in a network: its distinct kernels with their spaces, and its convolutions' algorithms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import tvm
from tvm import relax, tirx
from tvm.tirx.buffer import is_buffer_var

from ..schedule import RULES, tuning_space
from ..schedule.blocks import main_block, schedule_of
from ..schedule.kernel_key import kernel_key
from ..target import Target
from ..transform.pipeline import LoweredGraph, lower_graph

ALIGN = 64


@dataclass
class Task:
    """One distinct kernel: ``space`` of its rule, the analytic choice first, and how often an inference calls it."""

    key: str
    rule: Any
    numbers: dict[str, int]
    func: tirx.PrimFunc
    space: list[Any]
    layers: list[str] = field(default_factory=list)  # the model's tensors that its calls complete
    calls: int = 0  # an inference, with the analytic algorithms

    @property
    def sizes(self) -> list[int]:
        """Float32 elements of each operand, the output last."""
        return [prod(int(d) for d in p.shape) for p in self.func.params]

    @property
    def offsets(self) -> list[int]:
        """Where each operand lies in the arena of a measurement, bytes; then where scratch may begin."""
        at, places = 0, []
        for size in self.sizes:
            places.append(at)
            at += -(-4 * size // ALIGN) * ALIGN
        return [*places, at]


@dataclass
class Choice:
    """One distinct convolution: the kernels that its calls need by each algorithm, the analytic algorithm first."""

    key: str
    algorithms: tuple[str, ...]
    kernels: dict[str, Counter[str]] = field(default_factory=dict)  # algorithm -> kernel key -> calls


@dataclass
class Tasks:
    """Everything that can be tuned in one network."""

    tasks: dict[str, Task]
    choices: dict[str, Choice]


def collect_tasks(mods: Sequence[tvm.IRModule], target: Target, is_exact: bool = False) -> Tasks:
    """Return the tasks of prepared networks (one, or one for each of its inputs' shapes)."""
    found = Tasks({}, {})
    for mod in mods:
        _collect(found, mod, target, is_exact)
    complete = {
        key: choice
        for key, choice in found.choices.items()
        if len(choice.kernels) > 1
        and all(kernel in found.tasks for names in choice.kernels.values() for kernel in names)
    }
    chosen_by = {kernel for choice in complete.values() for names in choice.kernels.values() for kernel in names}
    tasks = {key: task for key, task in found.tasks.items() if len(task.space) > 1 or key in chosen_by}
    return Tasks(tasks, complete)


def heaviest(found: Tasks, count: int) -> Tasks:
    """Return the ``count`` convolutions, or kernels that are none, with the most work of an inference."""
    in_choice = {kernel for choice in found.choices.values() for names in choice.kernels.values() for kernel in names}
    work: dict[str, int] = {
        key: sum(calls * _work(found.tasks[k]) for k, calls in choice.kernels[choice.algorithms[0]].items())
        for key, choice in found.choices.items()
    }
    work |= {key: task.calls * _work(task) for key, task in found.tasks.items() if key not in in_choice}
    kept = set(sorted(work, key=lambda key: (-work[key], key))[:count])
    choices = {key: choice for key, choice in found.choices.items() if key in kept}
    kept |= {kernel for choice in choices.values() for names in choice.kernels.values() for kernel in names}
    return Tasks({key: task for key, task in found.tasks.items() if key in kept}, choices)


def _work(task: Task) -> int:
    """Return how often the innermost statement of a kernel's main block runs."""
    sch = schedule_of(task.func)
    block, *_ = main_block(sch)
    return prod(int(var.dom.extent) for var in sch.get(block).iter_vars)


def _collect(found: Tasks, mod: tvm.IRModule, target: Target, is_exact: bool) -> None:
    """Add the tasks of one network. It is lowered once by the analytic algorithms and again by each other algorithm
    that its convolutions have, so that every kernel has the tail and the shapes of its place."""
    tvm_target = target.tvm_target()
    graph = lower_graph(mod, target.machine, tvm_target, is_exact)
    _add_graph(found, graph, target, calls=1)
    chosen = {c.key: c for c in graph.convolutions.values()}
    for number in range(1, max((len(c.algorithms) for c in chosen.values()), default=1)):
        others = {key: c.algorithms[number] for key, c in chosen.items() if number < len(c.algorithms)}
        _add_graph(found, lower_graph(mod, target.machine, tvm_target, is_exact, others), target, calls=0, only=others)


def _add_graph(
    found: Tasks, graph: LoweredGraph, target: Target, calls: int, only: Mapping[str, str] | None = None
) -> None:
    """Add the kernels of one lowering; of a further one only those of the convolutions in ``only``."""
    keys: dict[str, str | None] = {}
    for var, kernel in _running_calls(graph.mod["main"]):
        sources = graph.sources.get(var, ())
        chosen = next((graph.convolutions[s] for s in sources if s in graph.convolutions), None)
        if only is not None and (chosen is None or chosen.key not in only):
            continue
        if kernel not in keys:
            keys[kernel] = _add_task(found, graph.mod[kernel], target)
        key = keys[kernel]
        if key is None:
            continue
        found.tasks[key].calls += calls
        if calls and sources:
            found.tasks[key].layers.append(sources[-1])
        if chosen is not None:
            choice = found.choices.setdefault(chosen.key, Choice(chosen.key, chosen.algorithms))
            choice.kernels.setdefault(chosen.algorithm, Counter())[key] += 1


def _running_calls(main: relax.Function) -> list[tuple[relax.Var, str]]:
    """Return (variable, kernel) of each call that runs in an inference: not those that read nothing but constants."""
    calls, constant = [], set()
    for block in main.body.blocks:
        for binding in block.bindings:
            var, expr = binding.var, binding.value
            if not isinstance(expr, tvm.ir.Call):
                continue
            operands = expr.args[1].fields if getattr(expr.op, "name", "") == "relax.call_tir" else expr.args
            if operands and all(isinstance(o, tvm.ir.GenericConst) or o in constant for o in operands):
                constant.add(var)
            elif getattr(expr.op, "name", "") == "relax.call_tir":
                calls.append((var, expr.args[0].name_hint))
    return calls


def _add_task(found: Tasks, func: tirx.PrimFunc, target: Target) -> str | None:
    """Add a kernel that a rule tiles and that can be measured (float32, one output); return its key."""
    if func.body.block.name_hint != "root":
        return None
    block, name, numbers = main_block(schedule_of(func))
    outputs = int(func.attrs.get("num_outputs", 1)) if func.attrs else 1
    floats = all(is_buffer_var(p) and str(p.dtype) == "float32" for p in func.params)
    if block is None or name not in RULES or not floats or outputs != 1:
        return None
    key = kernel_key(func, RULES[name])
    if key not in found.tasks:
        space = tuning_space(RULES[name], numbers, target.machine)
        found.tasks[key] = Task(key, RULES[name], numbers, func, space)
    return key
