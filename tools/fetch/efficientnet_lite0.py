"""EfficientNet-Lite0 as ONNX, from the trained PyTorch state dict and the published architecture.

    x [1, 3, 224, 224] float32, (RGB - 127) / 128
      -> stem conv 3x3/2 -> 16 inverted bottlenecks -> head conv 1x1 -> mean -> fully connected
    logits [1, 1000] float32

The Lite variant (Tan and others, 2020) has no squeeze-and-excitation, ReLU6 for swish, and keeps stem and head at
their size. Padding is TensorFlow's SAME: at stride 2 the odd pixel goes to the bottom and the right. Batch norms stay
nodes of their own, as an exporter writes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fetch.legacy_pth import read_state_dict

if TYPE_CHECKING:
    import onnx

_EPSILON = 1e-3  # of every batch norm


@dataclass(frozen=True)
class _Stage:
    """``repeats`` inverted bottlenecks; the first one has the stride and the input channels."""

    repeats: int
    kernel: int
    stride: int
    expansion: int
    c_in: int
    c_out: int


_STAGES = (
    _Stage(1, 3, 1, 1, 32, 16),
    _Stage(2, 3, 2, 6, 16, 24),
    _Stage(2, 5, 2, 6, 24, 40),
    _Stage(3, 3, 2, 6, 40, 80),
    _Stage(3, 5, 1, 6, 80, 112),
    _Stage(4, 5, 2, 6, 112, 192),
    _Stage(1, 3, 1, 6, 192, 320),
)


@dataclass
class _Graph:
    """Nodes and constants so far; ``weights`` is the state dict that they are read from."""

    weights: dict[str, np.ndarray]
    nodes: list = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, kind: str, inputs: list[str], output: str, **attributes: object) -> str:
        """Append a node; returns its output."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def weight(self, name: str) -> str:
        """Use a tensor of the state dict under its own name."""
        self.constants[name] = np.ascontiguousarray(self.weights[name], dtype=np.float32)
        return name

    def conv_bn(self, x: str, size: int, conv: str, norm: str, stride: int, group: int = 1) -> tuple[str, int]:
        """Convolution with SAME padding and its batch norm; returns the output's name and its height (= width)."""
        kernel = self.weights[f"{conv}.weight"].shape[-1]
        out_size = -(-size // stride)
        pad = max((out_size - 1) * stride + kernel - size, 0)
        before, after = pad // 2, pad - pad // 2
        y = self.add(
            "Conv",
            [x, self.weight(f"{conv}.weight")],
            f"{conv}.out",
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[before, before, after, after],
            group=group,
        )
        parts = [self.weight(f"{norm}.{part}") for part in ("weight", "bias", "running_mean", "running_var")]
        return self.add("BatchNormalization", [y, *parts], f"{norm}.out", epsilon=_EPSILON), out_size

    def relu6(self, x: str) -> str:
        """``min(max(x, 0), 6)``"""
        return self.add("Clip", [x, "zero", "six"], f"{x}.relu6")


def _bottleneck(graph: _Graph, x: str, size: int, prefix: str, stage: _Stage, first: bool) -> tuple[str, int]:
    """Expand 1x1, depthwise, project 1x1, and the shortcut where shapes allow it."""
    c_in, stride = (stage.c_in, stage.stride) if first else (stage.c_out, 1)
    y = x
    if stage.expansion != 1:
        y, _ = graph.conv_bn(y, size, f"{prefix}._expand_conv", f"{prefix}._bn0", 1)
        y = graph.relu6(y)
    group = c_in * stage.expansion
    y, out_size = graph.conv_bn(y, size, f"{prefix}._depthwise_conv", f"{prefix}._bn1", stride, group)
    y, _ = graph.conv_bn(graph.relu6(y), out_size, f"{prefix}._project_conv", f"{prefix}._bn2", 1)
    if stride == 1 and c_in == stage.c_out:
        y = graph.add("Add", [y, x], f"{prefix}.out")
    return y, out_size


def build(pth: Path, size: int = 224) -> onnx.ModelProto:
    """The network with the weights of ``pth``, for square pictures of ``size`` pixels, checked by onnx.

    Raises:
        ValueError: ``pth`` is no legacy state dict, or not of this network.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    graph = _Graph(read_state_dict(pth), constants={"zero": np.array(0, np.float32), "six": np.array(6, np.float32)})
    try:
        x, side = graph.conv_bn("input", size, "_conv_stem", "_bn0", 2)
        x, block = graph.relu6(x), 0
        for stage in _STAGES:
            for repeat in range(stage.repeats):
                x, side = _bottleneck(graph, x, side, f"_blocks.{block}", stage, first=repeat == 0)
                block += 1
        x, _ = graph.conv_bn(x, side, "_conv_head", "_bn1", 1)
        x = graph.add("Flatten", [graph.add("GlobalAveragePool", [graph.relu6(x)], "mean")], "features", axis=1)
        graph.add("Gemm", [x, graph.weight("_fc.weight"), graph.weight("_fc.bias")], "logits", transB=1)
    except KeyError as error:
        raise ValueError(f"{pth}: no EfficientNet-Lite0: tensor {error} is missing") from error
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "efficientnet_lite0",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, size, size])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1000])],
            [numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    onnx.checker.check_model(model, full_check=True)
    return model
