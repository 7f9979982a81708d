"""Deep Compression, the pipeline of 2015, as the baseline to beat: prune and retrain, share values, train those.

    1  section 2     the smallest weights of each layer go, in stages, the others are retrained
    2  section 3.1   k-means with linear initialisation over the weights that stay
    3  section 3.3   the shared values are trained: a value's gradient is the sum over its weights
    4  section 4     Huffman over gaps and values: the file's coder does it

Han, Mao and Dally 2015, "Deep Compression: Compressing Deep Neural Networks with Pruning, Trained Quantization and
Huffman Coding". Where we differ: a codebook has at most an eighth as many entries as weights that stay (their 256
entries for the 330 weights of LeNet's first layer would take more room than the weights), and the loss may listen to a
teacher (``share``; 0 here, as in the paper).

``densities`` are the paper's shares of each layer; layers without one follow ``density``, or from the strength s
1 - 0.9 s.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..ir.coded import CodedTensor, digest
from .constants import constant_names, rebuilt
from .layer_report import coded_line
from .layers import Layer, weight_layers
from .masked_training import TRAINING, TRAINING_LIMITS, MaskedTraining
from .prune_gradually import densities
from .quantise_codebook import shared_values
from .result import Data, MethodReport, Progress, Squeezed, StepConfig

Array = np.ndarray

DEFAULTS: dict[str, bool | int | float | str | tuple] = {
    **TRAINING,
    "optimiser": "sgd",
    "lr": 0.02,
    "weight_decay": 1e-4,
    "share": 0.0,
    "densities": (),  # "pattern=share" of weights that stay, by layer
    "density": 0.0,  # of the other layers; 0: from the strength
    "stages": 3,
    "last_epochs": 6,  # of retraining after the last stage
    "bits_conv": 8,
    "bits": 5,  # of all other layers
    "iterations": 30,  # of k-means
    "value_epochs": 2,  # of training the shared values
    "value_lr": 1e-4,
}
LIMITS = {"density": (0.0, 1.0), "stages": (1, 1000), "bits_conv": (1, 16), "bits": (1, 16), **TRAINING_LIMITS}
NEEDS = "train"


def deep_compression(state: Squeezed, config: StepConfig, data: Data, seed: int, progress: Progress) -> Squeezed:
    """Return the network with sparse weights that share a few values in each layer.

    Raises:
        CompressError: torch is missing, no training samples, or a layer that does not exist.
    """
    p = config.params
    training = MaskedTraining(state.mod, config, data, seed)
    chosen = {name: layer for name, layer in training.layers.items() if not config.why_not(layer.name)}
    left_alone = {layer.name: why for layer in weight_layers(state.mod) if (why := config.why_not(layer.name))}
    shares = densities(p["densities"], chosen)
    for name, layer in chosen.items():
        shares.setdefault(name, float(p["density"]) or 1 - 0.9 * config.strength_of(layer.name))
    masks: dict[str, Array] = {}
    stages = max(int(p["stages"]), 1)
    for stage in range(1, stages + 1):
        weights = training.weights()
        masks = {name: largest(weights[name], shares[name] ** (stage / stages)) for name in chosen}
        epochs = int(p["last_epochs"]) if stage == stages else int(p["epochs"])
        training.run(f"prune, stage {stage}", progress, masks, epochs=epochs)
    coded = _share_values(training, chosen, config)
    _train_values(training, coded, masks, config, progress)
    return _result(state, training, chosen, coded, left_alone)


def largest(w: Array, share: float) -> Array:
    """Return the mask of the ``share`` of weights with the largest magnitude."""
    count = max(1, int(w.size * share))
    threshold = np.partition(np.abs(w).ravel(), w.size - count)[w.size - count]
    return np.abs(w) >= threshold


def _share_values(training: MaskedTraining, chosen: Mapping[str, Layer], config: StepConfig) -> dict[str, CodedTensor]:
    """Set every weight to its nearest shared value; returns indices and values."""
    import torch

    p, coded = config.params, {}
    for name, w in training.weights().items():
        if name in chosen:
            bits = int(p["bits_conv"] if chosen[name].kind.startswith("conv") else p["bits"])
            coded[name] = shared_values(w, 1 << bits, None, int(p["iterations"]))
            with torch.no_grad():
                training.network.weights[name].copy_(torch.from_numpy(coded[name].values()))
    return coded


def _train_values(
    training: MaskedTraining,
    coded: dict[str, CodedTensor],
    masks: Mapping[str, Array],
    config: StepConfig,
    progress: Progress,
) -> None:
    """Train the shared values in place. Weights that share one get one gradient, so that they stay equal."""
    import torch

    index = {name: torch.from_numpy(tensor.integers.astype(np.int64)).flatten() for name, tensor in coded.items()}
    sizes = {name: len(tensor.codebook) for name, tensor in coded.items() if tensor.codebook is not None}

    def change() -> None:
        for name, at in index.items():
            gradient = training.network.weights[name].grad
            assert gradient is not None, f"no gradient reaches {name}"
            sums = torch.zeros(sizes[name]).index_add_(0, at, gradient.flatten())
            gradient.copy_(sums[at].reshape(gradient.shape))

    p = config.params
    if int(p["value_epochs"]):
        epochs, lr = int(p["value_epochs"]), float(p["value_lr"])
        training.run("train shared values", progress, masks, epochs=epochs, lr=lr, change=change)
    for name, w in training.weights().items():
        if name not in coded:
            continue
        book = np.zeros(sizes[name], np.float32)
        book[coded[name].integers.ravel()] = w.ravel()  # equal for all weights of an entry, but for entries without any
        coded[name] = _sorted(coded[name].integers, book)


def _sorted(integers: Array, book: Array) -> CodedTensor:
    """Return the tensor with its values in order: training may have moved one past another, or dropped an entry."""
    used = np.unique(integers)
    order = used[np.argsort(book[used], kind="stable")]
    rank = np.zeros(len(book), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return CodedTensor(rank[integers], codebook=book[order])


def _result(
    state: Squeezed,
    training: MaskedTraining,
    chosen: Mapping[str, Layer],
    coded: Mapping[str, CodedTensor],
    left_alone: Mapping[str, str],
) -> Squeezed:
    arrays = {name: tensor.values() for name, tensor in coded.items()}
    mod = rebuilt(training.result(), arrays)
    table = {digest(arrays[name]): tensor for name, tensor in coded.items()}
    still = {digest(constant.value.numpy()) for constant in constant_names(mod)}
    table.update({key: tensor for key, tensor in state.coded.items() if key in still})
    lines = tuple(coded_line(layer, coded[name], state.coded.get(layer.digest)) for name, layer in chosen.items())
    return Squeezed(mod, table, MethodReport("deep_compression", lines, left_alone))
