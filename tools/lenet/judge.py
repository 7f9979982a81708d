"""Top-1 accuracy of a Relax module on digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import Digits


def accuracy(mod: Any, digits: Digits) -> float:
    """Return the share of ``digits`` that the module has right, in percent."""
    import torch

    from xnncc.compress.result import Samples
    from xnncc.compress.torch_network import TorchNetwork

    network, right = TorchNetwork(mod), 0
    with torch.no_grad():
        for start in range(0, len(digits.labels), 500):
            rows = slice(start, start + 500)
            (logits,) = network.run(network.tensors(Samples({"image": digits.images[rows]})))
            right += int(np.sum(logits.reshape(-1, 10).argmax(1).numpy() == digits.labels[rows]))
    return 100 * right / len(digits.labels)
