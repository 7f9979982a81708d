"""Tune everything but the integers: steps, biases, scales of norms, by distillation. The file keeps its size.

    w = integers * step * exp(s)        s trained, integers frozen

What one-shot quantisation with compensation has found is kept: training the weights themselves again flips borderline
ones at random, and the compensation is lost (on a text recogniser at 2.1 bits 80 updates of this took away 40 % of the
damage, while a hundred of straight-through training doubled it). Training scales on frozen integers is what quantised
fine-tuning of large models does: Dettmers and others 2023, "QLoRA", keeps its integers for the same reason.

Strength has no effect. Steps stay as many as they were; codebooks stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.coded import CodedTensor, digest
from .constants import constant_names, rebuilt
from .layer_report import coded_line
from .layers import weight_layers
from .quantise_entropy import coded_vector
from .result import Data, MethodReport, Progress, Squeezed, StepConfig

if TYPE_CHECKING:
    import torch

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "epochs": 1,
    "steps": 0,  # updates, instead of epochs
    "batch": 16,
    "lr": 1e-3,  # of the logarithm of the steps
    "vector_lr": 3e-4,  # of biases and scales
    "shift_px": 0,
    "share": 1.0,
    "temperature": 1.0,
}
NEEDS = "train"

_MOST_OF_VECTOR = 1 << 16  # elements of a constant that is taken for biases or scales


def tune_scales(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return the network with the same integers and better steps and vectors.

    Raises:
        CompressError: torch is missing, or there are no training samples.
    """
    from .torch_network import TorchNetwork

    network = TorchNetwork(state.mod)
    digests = {name: digest(constant.value.numpy()) for constant, name in constant_names(state.mod).items()}
    coded = {n: state.coded[key] for n, key in digests.items() if key in state.coded and n in network.weights}
    frozen = _frozen(state, coded, config)
    vectors = {
        name: weight.requires_grad_()
        for name, weight in network.weights.items()
        if name not in frozen and sum(size > 1 for size in weight.shape) == 1 and weight.numel() <= _MOST_OF_VECTOR
    }
    shifts = _train(network, frozen, vectors, config, data, seed, progress)
    return _result(state, frozen, shifts, vectors, coded)


def _frozen(state: Squeezed, coded: Mapping[str, CodedTensor], config: StepConfig) -> dict[str, CodedTensor]:
    """Return the weights of layers whose integers stay and whose steps are trained."""
    names = constant_names(state.mod)
    layers = {names[layer.call.args[layer.operand]]: layer.name for layer in weight_layers(state.mod)}
    return {
        name: tensor
        for name, tensor in coded.items()
        if name in layers and tensor.steps is not None and not config.why_not(layers[name])
    }


def _train(
    network: Any,
    frozen: Mapping[str, CodedTensor],
    vectors: Mapping[str, torch.Tensor],
    config: StepConfig,
    data: Data,
    seed: int,
    progress: Progress,
) -> dict[str, torch.Tensor]:
    """Train ``vectors`` in place; returns the trained logarithm of the change of each step."""
    import torch

    from .distil import Lesson, distillation_loss
    from .fit import Group, Plan, fit

    p = config.params
    lesson = Lesson(data, int(p["batch"]), seed, int(p["shift_px"]))
    shifts = {n: torch.zeros(len(t.steps), requires_grad=True) for n, t in frozen.items() if t.steps is not None}
    along = {n: _along(t) for n, t in frozen.items()}
    values = {n: torch.from_numpy(t.values()) for n, t in frozen.items()}

    def loss(step: int) -> torch.Tensor:
        inputs, labels, taught = lesson.draw(step)
        scaled = {name: values[name] * shifts[name].exp().reshape(along[name]) for name in frozen}
        outputs = network.run(inputs, {**network.weights, **scaled})
        return distillation_loss(lesson.heads, outputs, taught, labels, float(p["share"]), float(p["temperature"]))

    groups = [
        Group(list(shifts.values())),
        Group(list(vectors.values()), float(p["vector_lr"]) / float(p["lr"])),
    ]
    steps = int(p["steps"]) or int(p["epochs"]) * lesson.steps_per_epoch
    plan = Plan("tune scales", steps, float(p["lr"]), every=10)
    fit(plan, [group for group in groups if group.tensors], loss, config.journal, progress)
    return shifts


def _along(tensor: CodedTensor) -> list[int]:
    assert tensor.steps is not None
    if len(tensor.steps) == 1:
        return [1] * tensor.integers.ndim
    return [-1 if axis == tensor.axis else 1 for axis in range(tensor.integers.ndim)]


def _result(
    state: Squeezed,
    frozen: Mapping[str, CodedTensor],
    shifts: Mapping[str, torch.Tensor],
    vectors: Mapping[str, torch.Tensor],
    coded: Mapping[str, CodedTensor],
) -> Squeezed:
    new: dict[str, CodedTensor] = {}
    arrays: dict[str, np.ndarray] = {}
    for name, tensor in frozen.items():
        assert tensor.steps is not None
        steps = tensor.steps * np.exp(shifts[name].detach().numpy())
        new[name] = CodedTensor(tensor.integers, steps.astype(np.float32), axis=tensor.axis)
    for name, vector in vectors.items():
        arrays[name] = vector.detach().numpy()
        if name in coded:  # as short as it was
            largest = int(np.abs(coded[name].integers).max(initial=1))
            new[name] = coded_vector(arrays[name], largest.bit_length() + 1)
    arrays.update({name: tensor.values() for name, tensor in new.items()})
    names, lines = constant_names(state.mod), []
    for layer in weight_layers(state.mod):
        name = names[layer.call.args[layer.operand]]
        if name in new:
            lines.append(coded_line(layer, new[name], coded.get(name)))
    mod = rebuilt(state.mod, arrays)
    still = {digest(constant.value.numpy()) for constant in constant_names(mod)}
    table = {key: tensor for key, tensor in state.coded.items() if key in still}
    table.update({digest(tensor.values()): tensor for tensor in new.values()})
    return Squeezed(mod, table, MethodReport("tune_scales", tuple(lines)))
