"""The base networks, trained from nothing and written as ONNX: LeNet 20-50-500 and LeNet-300-100.

Both are those of Han et al. 2015 ("Deep Compression"): LeNet as in Caffe's example (431,080 parameters; the only ReLU
is after the first dense layer), LeNet-300-100 with 266,610 parameters. SGD with Nesterov momentum under a one-cycle
learning rate, no augmentation; 55,000 images.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from .data import Digits

# name -> (weights in order with their shapes, epochs, batch, peak learning rate)
NETWORKS: dict[str, tuple[dict[str, tuple[int, ...]], int, int, float]] = {
    "lenet": (
        {"conv1": (20, 1, 5, 5), "conv2": (50, 20, 5, 5), "ip1": (500, 800), "ip2": (10, 500)},
        12, 256, 0.08,
    ),
    "lenet-300-100": ({"ip1": (300, 784), "ip2": (100, 300), "ip3": (10, 100)}, 15, 128, 0.1),
}  # fmt: skip


def _forward(network: str, p: dict[str, Any], x: Any) -> Any:
    """x: [N, 1, 28, 28]; returns logits [N, 10]."""
    import torch.nn.functional as F

    if network == "lenet":
        x = F.max_pool2d(F.conv2d(x, p["conv1.weight"], p["conv1.bias"]), 2)
        x = F.max_pool2d(F.conv2d(x, p["conv2.weight"], p["conv2.bias"]), 2)
        x = F.relu(F.linear(x.flatten(1), p["ip1.weight"], p["ip1.bias"]))
        return F.linear(x, p["ip2.weight"], p["ip2.bias"])
    x = F.relu(F.linear(x.flatten(1), p["ip1.weight"], p["ip1.bias"]))
    x = F.relu(F.linear(x, p["ip2.weight"], p["ip2.bias"]))
    return F.linear(x, p["ip3.weight"], p["ip3.bias"])


def train(network: str, seed: int, data: Digits, epochs: int | None = None) -> dict[str, np.ndarray]:
    """Return trained weights and biases by name; the same seed gives the same weights on the same machine."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(seed)
    shapes, default_epochs, batch, peak = NETWORKS[network]
    epochs = epochs or default_epochs
    p: dict[str, Any] = {}
    for name, shape in shapes.items():  # torch's own initial values for these layers: uniform, 1/sqrt(fan in)
        bound = float(np.prod(shape[1:])) ** -0.5
        p[f"{name}.weight"] = torch.empty(shape).uniform_(-bound, bound).requires_grad_()
        p[f"{name}.bias"] = torch.empty(shape[0]).uniform_(-bound, bound).requires_grad_()
    x, y = torch.from_numpy(data.images), torch.from_numpy(data.labels)
    steps = len(y) // batch
    optimiser = torch.optim.SGD(p.values(), lr=peak, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, peak, total_steps=epochs * steps)
    started = time.monotonic()
    for epoch in range(epochs):
        order = torch.randperm(len(y))
        for step in range(steps):
            chosen = order[step * batch : (step + 1) * batch]
            loss = F.cross_entropy(_forward(network, p, x[chosen]), y[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        done = f"{network} seed {seed}: epoch {epoch + 1} of {epochs}, loss {loss.item():.4f}"
        print(f"{done}, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return {name: value.detach().numpy() for name, value in p.items()}


def write_onnx(network: str, weights: dict[str, np.ndarray], path: Path) -> None:
    """Write the network with batch 1: input ``image`` [1, 1, 28, 28], output ``logits`` [1, 10]."""
    from onnx import TensorProto, checker, helper, numpy_helper, save

    nodes, x, shapes = [], "image", NETWORKS[network][0]
    for index, (name, shape) in enumerate(shapes.items()):
        is_last = index == len(shapes) - 1
        if len(shape) == 2 and (index == 0 or len(list(shapes.values())[index - 1]) == 4):
            nodes.append(helper.make_node("Flatten", [x], ["flat"], axis=1))
            x = "flat"
        operands, out = [x, f"{name}.weight", f"{name}.bias"], "logits" if is_last else name
        if len(shape) == 4:
            nodes.append(helper.make_node("Conv", operands, [out], name))
            nodes.append(helper.make_node("MaxPool", [out], [f"{name}/pool"], kernel_shape=[2, 2], strides=[2, 2]))
            x = f"{name}/pool"
        else:
            nodes.append(helper.make_node("Gemm", operands, [out], name, transB=1))
            if not is_last:
                nodes.append(helper.make_node("Relu", [out], [f"{name}/relu"]))
                x = f"{name}/relu"
    graph = helper.make_graph(
        nodes,
        network,
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 28, 28])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(model, path)
