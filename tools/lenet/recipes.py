"""How each network is squeezed: the steps of ``max`` and ``deep-compression`` with the numbers for these networks.

Several rates are tried for ``max``; the smallest file that keeps its accuracy on the validation images is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from xnncc.compress.result import Data, Squeezed, StepConfig

Progress = Callable[[str, int, int], None]

# network -> final sizes of its layers, rates to try, epochs of quantisation-aware training
MAX: dict[str, tuple[tuple[str, ...], tuple[float, ...], int]] = {
    "lenet": (("conv1*=8", "conv2*=18", "ip1*=48"), (0.09,), 20),
    "lenet-300-100": (("ip1*=120", "ip2*=50"), (0.6, 1.5), 30),
}
# network -> what Han et al. 2015 give: shares that stay (tables 2 and 3), and how the weights are retrained
DEEP_COMPRESSION: dict[str, dict[str, Any]] = {
    "lenet": {
        "densities": ("conv1*=0.66", "conv2*=0.12", "ip1*=0.08", "logits*=0.19"), "lr": 0.02,
        "epochs": 2, "last_epochs": 12, "value_epochs": 2,
    },
    "lenet-300-100": {
        "densities": ("ip1*=0.08", "ip2*=0.09", "logits*=0.26"), "lr": 0.05, "batch": 128, "bits": 6,
        "epochs": 3, "last_epochs": 6, "value_epochs": 2,
    },
}  # fmt: skip


def candidates(
    network: str, recipe: str, state: Squeezed, data: Data, seed: int, journal: Path, progress: Progress
) -> list[tuple[str, Squeezed]]:
    """Return the networks among which the validation images choose, with a word for each."""
    if recipe == "deep-compression":
        from xnncc.compress import deep_compression as method

        config = _config(method, DEEP_COMPRESSION[network], journal)
        return [("as in the paper", method.deep_compression(state, config, data, seed, progress))]
    from xnncc.compress import prune_neurons, quantise_entropy

    widths, rates, epochs = MAX[network]
    cut = {"widths": widths, "factor": 2.2, "epochs": 1, "samples": 2048, "shift_px": 1}
    small = prune_neurons.prune_neurons(state, _config(prune_neurons, cut, journal), data, seed, progress)
    found = []
    for rate in rates:
        config = _config(quantise_entropy, {"epochs": epochs, "rate": rate, "shift_px": 1}, journal / f"r{rate}")
        found.append((f"rate {rate}", quantise_entropy.quantise_entropy(small, config, data, seed, progress)))
    return found


def _config(method: Any, params: dict[str, Any], journal: Path) -> StepConfig:
    unknown = set(params) - set(method.DEFAULTS)
    assert not unknown, f"{method.__name__} has no {sorted(unknown)}"
    return StepConfig({**method.DEFAULTS, **params}, journal=str(journal))
