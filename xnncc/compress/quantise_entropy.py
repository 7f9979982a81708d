"""Entropy-regularised quantisation-aware training: weights are pulled to integers that are cheap to code.

    w_q = step * round(w / step)        straight-through gradient, a learned step for each layer
    loss = distillation + rate * (bits of all integers) / (number of weights)

The bits of an integer are its code length under the layer's own histogram, refreshed every 50 updates (10 in short
runs), interpolated linearly between neighbours: the gradient pushes each weight towards the cheaper one, mostly towards
zero. So sparsity appears where it pays, with no mask and no separate pruning. Code lengths must grow with the
magnitude: a raw histogram feeds itself (few zeros make zeros dear, and dear zeros become fewer), so it is made
symmetric, mixed with a Laplacian and made monotone before it is used.

A layer that comes as integers and steps, from ``quantise_fisher`` say, keeps them as its start: weights begin in the
middle of their cells, steps stay by row where they were, and an update moves a weight by at most about ``cell_lr`` of
a cell. What compensation has found is so given up slowly and only where that pays. Other layers begin with one step.

Straight-through estimate: Bengio, Leonard, Courville 2013, section 4. Learned steps: Esser and others 2020, "Learned
Step Size Quantization", equations 1 to 5, gradients scaled by 1/sqrt(weights) as there. Rate from the layer's own
histogram in the loss: Agustsson and others 2017, "Soft-to-hard vector quantization", section 3; where we differ: hard
rounding, and interpolation in place of soft assignments.

``bits`` other than 0 is a goal in place of a rate: the rate goes up while the entropy of all integers is above a line
that falls to the goal over the first 0.7 of the run, and down while it is below the goal.

Strength s: rate 0.01 * 100^s loss units for one bit a weight; ``rate`` other than 0 wins. ``gentler`` scales the rate
of a layer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.coded import CodedTensor, digest
from .constants import constant_names, rebuilt
from .layer_report import coded_line
from .layers import Layer, weight_layers
from .result import Data, MethodReport, Progress, Squeezed, StepConfig

if TYPE_CHECKING:
    import torch

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    "rate": 0.0,  # loss units for one bit a weight; 0: from the strength
    "bits": 0.0,  # for a weight, mean over all layers, to which the rate is steered; 0: the rate stays
    "largest": 7,  # magnitude of the integers
    "first_step": 0.5,  # steps begin at this many standard deviations of the layer's weights, where it has none yet
    "cell_lr": 0.01,  # learning rate of layers that have steps, in steps
    "epochs": 25,
    "steps": 0,  # updates, instead of epochs
    "batch": 512,
    "lr": 3e-3,
    "step_lr": 1e-4,  # of the logarithm of the steps; at 1e-3 steps drift over thousands of updates and nets collapse
    "shift_px": 0,
    "share": 0.5,  # of the teacher in the loss when there are labels
    "temperature": 2.0,
    "bias_bits": 8,  # of biases and other vectors; 0 and 1 leave them floats
}
LIMITS = {
    "rate": (0.0, 1e6),
    "bits": (0.0, 32.0),
    "largest": (1, 1 << 15),
    "first_step": (1e-6, 1e6),
    "cell_lr": (0.0, 1.0),
    "batch": (1, 1 << 20),
    "bias_bits": (0, 16),
    "shift_px": (0, 64),
}
NEEDS = "train"

_EVERY = 50  # updates between two histograms
_RAMP = 0.3  # share of the run over which the rate term grows to its full weight
_FALL = 0.7  # share of the run after which the goal of bits is the final one
_GAIN = 3.0  # by which the logarithm of the rate follows the share of bits too many, at one histogram
_MOST_OF_VECTOR = 1 << 16  # elements of a constant that is taken for biases or scales


@dataclass
class _Coded:
    """One layer in training. ``table``: code length of each integer from -largest to largest, in bits, float32."""

    layer: Layer
    name: str  # of the constant
    weight: torch.Tensor
    log_step: torch.Tensor  # a scalar, or one for each row, in a shape that fits the weight
    rate: float
    largest: int  # magnitude of the integers
    lr: float  # of the weight
    table: torch.Tensor | None = None


def quantise_entropy(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return the network with every chosen weight as integers and a step, trained for few bits.

    Raises:
        CompressError: torch is missing, or there are no training samples.
    """
    from .torch_network import TorchNetwork

    network = TorchNetwork(state.mod)
    layers, left_alone = _chosen(state, config, network.weights)
    if not layers:
        return Squeezed(state.mod, state.coded, MethodReport("quantise_entropy", (), left_alone))
    vectors = _vectors(network.weights, layers) if int(config.params["bias_bits"]) > 1 else []
    run = _Run(network, layers, vectors, state.coded, config, data, seed)
    run.train(progress)
    return run.result(state, left_alone)


def _chosen(
    state: Squeezed, config: StepConfig, weights: Mapping[str, Any]
) -> tuple[list[tuple[Layer, str]], dict[str, str]]:
    """Return the layers to code with the names of their constants, and why the others stay."""
    names, chosen, left_alone = constant_names(state.mod), [], {}
    for layer in weight_layers(state.mod):
        name, why = names[layer.call.args[layer.operand]], config.why_not(layer.name)
        if not why and name not in weights:
            why = "no gradient reaches it"
        if not why and not np.any(layer.weights):
            why = "all its weights are zero"
        if why:
            left_alone[layer.name] = why
        else:
            chosen.append((layer, name))
    return chosen, left_alone


def _vectors(weights: Mapping[str, Any], layers: list[tuple[Layer, str]]) -> list[str]:
    """Return the names of biases and scales: constants with one axis that is longer than 1."""
    taken = {name for _, name in layers}
    return [
        name
        for name, w in weights.items()
        if name not in taken and sum(size > 1 for size in w.shape) == 1 and w.numel() <= _MOST_OF_VECTOR
    ]


class _Run:
    """The state of the training."""

    def __init__(
        self,
        network: Any,
        layers: list[tuple[Layer, str]],
        vectors: list[str],
        coded: Mapping[str, CodedTensor],
        config: StepConfig,
        data: Data,
        seed: int,
    ) -> None:
        import torch

        from .distil import Lesson

        p = config.params
        self._network, self._params, self._journal = network, p, config.journal
        self._lesson = Lesson(data, int(p["batch"]), seed, int(p["shift_px"]))
        self._largest = int(p["largest"])
        self._steps = int(p["steps"]) or int(p["epochs"]) * self._lesson.steps_per_epoch
        self._layers = [self._begin(layer, name, config, coded.get(layer.digest)) for layer, name in layers]
        self._vectors = {name: network.weights[name].requires_grad_() for name in vectors}
        self._count = sum(one.weight.numel() for one in self._layers)
        self._hopeless = float("inf")
        # loss of late; factor on the rate, halved when that loss nears a network's that knows nothing; how often it
        # was; factor by which ``bits`` steer; bits at the start
        self._now = torch.tensor([0.0, 1.0, 0.0, 1.0, 0.0], dtype=torch.float64)

    def _begin(self, layer: Layer, name: str, config: StepConfig, known: CodedTensor | None) -> _Coded:
        import torch

        weight = self._network.weights[name].requires_grad_()
        rate = float(self._params["rate"]) * config.gentler.get(layer.name, 1.0)
        rate = rate or 0.01 * 100.0 ** config.strength_of(layer.name)
        if known is not None and known.steps is not None:
            steps = torch.from_numpy(known.steps).reshape(_along(known)).clamp(min=1e-12)
            largest = max(self._largest, int(np.abs(known.integers).max(initial=0)))
            lr = float(self._params["cell_lr"]) * float(np.mean(known.steps))
        else:
            spread = weight.detach().std(unbiased=False) if weight.numel() > 1 else weight.detach().abs().mean()
            steps = (spread * float(self._params["first_step"])).clamp(min=1e-8)
            largest, lr = self._largest, float(self._params["lr"])
        return _Coded(layer, name, weight, steps.log().clone().requires_grad_(), rate, largest, lr)

    def train(self, progress: Progress) -> None:
        """Run all updates."""
        from .fit import Group, Plan, fit

        lr, step_lr = float(self._params["lr"]), float(self._params["step_lr"])
        groups = [
            Group([*(one.weight for one in self._layers if one.lr == lr), *self._vectors.values()]),
            *(Group([one.weight], one.lr / lr) for one in self._layers if one.lr != lr),
            Group([one.log_step for one in self._layers], step_lr / lr),
        ]
        every = min(_EVERY, max(self._steps // 40, 10))
        plan = Plan("quantise entropy", self._steps, lr, every=every)
        fit(plan, groups, self._loss, self._journal, progress, before=self._refresh, kept=self._now)

    def _refresh(self, step: int) -> None:
        """Take the code lengths anew from the integers as they are."""
        import torch

        with torch.no_grad():
            for one in self._layers:
                integers = (one.weight / one.log_step.exp()).round().clamp(-one.largest, one.largest)
                one.table = code_lengths(integers, one.largest)
            self._steer(step)
        if step > self._steps * _RAMP and self._now[0] > 0.5 * self._hopeless:
            self._now[1] *= 0.5
            self._now[2] += 1

    def _steer(self, step: int) -> None:
        """Turn the rate up or down by how far the bits are from their goal."""
        goal = float(self._params["bits"])
        if not goal:
            return
        bits = sum(_entropy(one) * one.weight.numel() for one in self._layers) / self._count
        if not step:
            self._now[4] = bits
        share = min(1.0, step / (self._steps * _FALL))
        line = (1 - share) * float(self._now[4]) + share * goal
        off = bits / line - 1 if bits > line else min(bits / goal - 1, 0.0)
        self._now[3] *= math.exp(min(max(_GAIN * off, -1.0), 1.0))

    def _loss(self, step: int) -> torch.Tensor:
        from .distil import distillation_loss, uniform_loss
        from .straight_through import Rounded

        inputs, labels, taught = self._lesson.draw(step)
        quantised = {one.name: Rounded.apply(one.weight, one.log_step.exp(), one.largest) for one in self._layers}
        quantised.update({name: _short(v, int(self._params["bias_bits"])) for name, v in self._vectors.items()})
        outputs = self._network.run(inputs, {**self._network.weights, **quantised})
        share, temperature = float(self._params["share"]), float(self._params["temperature"])
        task = distillation_loss(self._lesson.heads, outputs, taught, labels, share, temperature)
        self._hopeless = uniform_loss(self._lesson.heads, outputs)
        own, recent = float(task.detach()), float(self._now[0])
        self._now[0] = 0.9 * recent + 0.1 * own if step else own
        ramp = float(self._now[1] * self._now[3]) * min(1.0, step / (self._steps * _RAMP)) / self._count
        return task + ramp * sum(one.rate * self._bits(one) for one in self._layers)

    def _bits(self, one: _Coded) -> torch.Tensor:
        """Return the code length of a layer's weights, interpolated between integers."""
        assert one.table is not None
        z = (one.weight / one.log_step.exp()).clamp(-one.largest + 1e-3, one.largest - 1e-3)
        low = z.detach().floor()
        share, at = z - low, (low + one.largest).long()
        return (one.table[at] * (1 - share) + one.table[at + 1] * share).sum()

    def result(self, state: Squeezed, left_alone: Mapping[str, str]) -> Squeezed:
        """Return the module with coded constants, and the report."""
        arrays: dict[str, np.ndarray] = {}
        coded = dict(state.coded)
        lines = []
        for one in self._layers:
            tensor = self._coded(one)
            arrays[one.name] = tensor.values()
            coded[digest(arrays[one.name])] = tensor
            lines.append(coded_line(one.layer, tensor, state.coded.get(one.layer.digest)))
        for name, vector in self._vectors.items():
            tensor = coded_vector(vector.detach().numpy(), int(self._params["bias_bits"]))
            arrays[name] = tensor.values()
            coded[digest(arrays[name])] = tensor
        facts: dict[str, str | int | float] = {"updates": self._steps, "last loss": round(float(self._now[0]), 5)}
        if self._params["bits"]:
            facts["rate steered by"] = round(float(self._now[3]), 5)
        if self._now[2]:
            facts["rate halved because it swamped the loss"] = int(self._now[2])
        mod = rebuilt(state.mod, arrays)
        still = {digest(constant.value.numpy()) for constant in constant_names(mod)}
        kept = {key: tensor for key, tensor in coded.items() if key in still}
        return Squeezed(mod, kept, MethodReport("quantise_entropy", tuple(lines), dict(left_alone), facts))

    def _coded(self, one: _Coded) -> CodedTensor:
        import torch

        with torch.no_grad():
            step = one.log_step.exp()
            integers = (one.weight / step).round().clamp(-one.largest, one.largest)
        return CodedTensor(integers.numpy().astype(np.int32), step.flatten().numpy(), axis=one.layer.axis)


def _along(tensor: CodedTensor) -> list[int]:
    """Return the shape in which the steps fit the weight: a scalar's, or long along one axis."""
    assert tensor.steps is not None
    if len(tensor.steps) == 1:
        return []
    return [-1 if axis == tensor.axis else 1 for axis in range(tensor.integers.ndim)]


def _entropy(one: _Coded) -> float:
    """Return bits for a weight of the layer as its integers are."""
    import torch

    integers = (one.weight / one.log_step.exp()).round().clamp(-one.largest, one.largest)
    shares = torch.bincount((integers + one.largest).long().flatten()).double() / integers.numel()
    return float(-(shares * torch.log2(shares.clamp(min=1e-30))).sum())


def code_lengths(integers: torch.Tensor, largest: int) -> torch.Tensor:
    """Return bits for each integer from -largest to largest, [2 * largest + 1], rising with the magnitude."""
    import torch

    counts = torch.bincount((integers + largest).long().flatten(), minlength=2 * largest + 1).float()
    counts = (counts + counts.flip(0)) / 2
    sizes = torch.arange(-largest, largest + 1).abs().float()
    laplacian = torch.exp(-sizes) + 1e-6 / (1 + sizes.square())  # far out as Exp-Golomb codes, or lengths were infinite
    counts = counts + 0.3 * counts.sum() * laplacian / laplacian.sum()
    half = counts[largest:].flip(0).cummax(0).values.flip(0)  # never rarer nearer to zero
    counts = torch.cat([half[1:].flip(0), half])
    return -torch.log2(counts / counts.sum())


def coded_vector(array: np.ndarray, bits: int) -> CodedTensor:
    """Return biases or scales as integers of ``bits`` bits with one step."""
    largest = 2 ** (bits - 1) - 1
    step = np.float32(np.abs(array).max() / largest) if array.size else np.float32(0)
    if not step > 0:
        return CodedTensor(np.zeros(array.shape, np.int32), np.ones(1, np.float32))
    integers = np.round(array / step).clip(-largest, largest).astype(np.int32)
    return CodedTensor(integers, np.array([step], np.float32))


def _short(vector: torch.Tensor, bits: int) -> torch.Tensor:
    """Return the vector as ``coded_vector`` will store it, with the gradient of the vector itself."""
    step = vector.detach().abs().max() / (2 ** (bits - 1) - 1) + 1e-30
    return vector + ((vector / step).round() * step - vector).detach()
