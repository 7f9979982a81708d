#!/usr/bin/env python3
"""Write the benchmark networks as ONNX files, with seeded random weights.

    tools/bench_models.py [NAMES] --out DIR      (default: all, into build/bench)

Speed does not depend on the values of the weights, so these stand in for the published networks of the same shape:
SqueezeNet 1.1 (Iandola and others, 2016), MobileNet v1 (Howard and others, 2017), MobileNet v2 (Sandler and others,
2018), ResNet-18 (He and others, 2015), a two-layer LSTM keyword spotter and a ViT-Ti of four blocks (Touvron and
others, 2020). Pictures are [1, 3, 224, 224] float32, classes [1, 1000].
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import onnx

DEFAULT_OUT = Path(__file__).resolve().parent.parent / "build" / "bench"


class _Network:
    """A small ONNX graph builder: each method adds nodes and returns the name of their output."""

    def __init__(self, name: str, shape: list[int]) -> None:
        self.name, self._shape = name, shape
        self._rng = np.random.default_rng(0)
        self._nodes: list = []
        self._constants: dict[str, np.ndarray] = {}

    def constant(self, value: np.ndarray | np.generic, hint: str = "c") -> str:
        """Add a constant."""
        name = f"{hint}{len(self._constants)}"
        self._constants[name] = np.asarray(value)
        return name

    def weight(self, *shape: int, fan: int = 0) -> str:
        """Normal numbers scaled for ``fan`` inputs (He and others, 2015, equation 10): activations keep their size."""
        fan = fan or int(np.prod(shape[1:]))
        return self.constant((self._rng.standard_normal(shape) * np.sqrt(2.0 / fan)).astype(np.float32), "w")

    def vector(self, count: int, scale: float = 0.05, base: float = 0.0) -> str:
        """``count`` normal numbers around ``base``."""
        return self.constant((base + scale * self._rng.standard_normal(count)).astype(np.float32), "b")

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Add any operator."""
        from onnx import helper

        output = f"{kind.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def activate(self, x: str, activation: str) -> str:
        """Relu, Relu6 or nothing."""
        if activation == "Relu6":
            return self.add("Clip", x, self.constant(np.float32(0)), self.constant(np.float32(6)))
        return self.add(activation, x) if activation else x

    def conv(
        self,
        x: str,
        c_in: int,
        c_out: int,
        kernel: int,
        stride: int = 1,
        pad: int | None = None,
        groups: int = 1,
        activation: str = "Relu",
        norm: bool = False,
    ) -> str:
        """Convolution with a bias, or (``norm``) with a batch norm, and its activation."""
        inputs = [x, self.weight(c_out, c_in // groups, kernel, kernel)]
        if not norm:
            inputs.append(self.vector(c_out))
        y = self.add(
            "Conv",
            *inputs,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2 if pad is None else pad] * 4,
            group=groups,
        )
        if norm:
            variance = self.constant(np.abs(1 + 0.1 * self._rng.standard_normal(c_out)).astype(np.float32), "v")
            scale = self.vector(c_out, 0.1, 1.0)
            y = self.add("BatchNormalization", y, scale, self.vector(c_out), self.vector(c_out), variance)
        return self.activate(y, activation)

    def classify(self, x: str, c_in: int, fan: int = 0) -> str:
        """Mean over the picture, fully connected, softmax; a larger ``fan`` keeps the softmax from saturating."""
        x = self.add("Flatten", self.add("GlobalAveragePool", x))
        x = self.add("Gemm", x, self.weight(1000, c_in, fan=fan), self.vector(1000), transB=1)
        return self.add("Softmax", x, axis=1)

    def model(self, output: str, shape: list[int]) -> onnx.ModelProto:
        """The whole network, checked by onnx."""
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        graph = helper.make_graph(
            self._nodes,
            self.name,
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, self._shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(value, name) for name, value in self._constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def squeezenet1_1() -> onnx.ModelProto:
    """SqueezeNet 1.1: 1.2 M parameters, 0.35 G multiply-adds."""
    net = _Network("squeezenet1_1", [1, 3, 224, 224])
    x, channels = net.conv("input", 3, 64, 3, 2, 0), 64
    for block, (squeeze, expand) in enumerate(((16, 64), (32, 128), (48, 192), (64, 256))):
        if block < 3:
            x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        for _ in range(2):
            y = net.conv(x, channels, squeeze, 1)
            x = net.add("Concat", net.conv(y, squeeze, expand, 1), net.conv(y, squeeze, expand, 3), axis=1)
            channels = 2 * expand
    x = net.add("Flatten", net.add("GlobalAveragePool", net.conv(x, 512, 1000, 1)))
    return net.model(net.add("Softmax", x, axis=1), [1, 1000])


def mobilenet_v1() -> onnx.ModelProto:
    """MobileNet v1 1.0: 4.2 M parameters, 0.57 G multiply-adds."""
    net = _Network("mobilenet_v1", [1, 3, 224, 224])
    x, channels = net.conv("input", 3, 32, 3, 2, norm=True), 32
    head = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    for c_out, stride in [*head, *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
        x = net.conv(x, channels, channels, 3, stride, groups=channels, norm=True)
        x, channels = net.conv(x, channels, c_out, 1, norm=True), c_out
    return net.model(net.classify(x, 1024), [1, 1000])


def mobilenet_v2() -> onnx.ModelProto:
    """MobileNet v2 1.0: 3.5 M parameters, 0.30 G multiply-adds."""
    net = _Network("mobilenet_v2", [1, 3, 224, 224])
    x, channels = net.conv("input", 3, 32, 3, 2, activation="Relu6", norm=True), 32
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, c_out, repeats, first_stride in stages:
        for repeat in range(repeats):
            stride, hidden, y = (1 if repeat else first_stride), channels * expansion, x
            if expansion > 1:
                y = net.conv(y, channels, hidden, 1, activation="Relu6", norm=True)
            y = net.conv(y, hidden, hidden, 3, stride, groups=hidden, activation="Relu6", norm=True)
            y = net.conv(y, hidden, c_out, 1, activation="", norm=True)
            x = net.add("Add", x, y) if stride == 1 and channels == c_out else y
            channels = c_out
    x = net.conv(x, 320, 1280, 1, activation="Relu6", norm=True)
    return net.model(net.classify(x, 1280), [1, 1000])


def resnet18() -> onnx.ModelProto:
    """ResNet-18: 11.7 M parameters, 1.8 G multiply-adds."""
    net = _Network("resnet18", [1, 3, 224, 224])
    x, channels = net.conv("input", 3, 64, 7, 2, 3, norm=True), 64
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for c_out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        y = net.conv(x, channels, c_out, 3, stride, norm=True)
        y = net.conv(y, c_out, c_out, 3, activation="", norm=True)
        same = stride == 1 and channels == c_out
        shortcut = x if same else net.conv(x, channels, c_out, 1, stride, 0, activation="", norm=True)
        x, channels = net.add("Relu", net.add("Add", y, shortcut)), c_out
    return net.model(net.classify(x, 512, fan=512 * 512), [1, 1000])


def lstm_kws(steps: int = 98, features: int = 40, hidden: int = 128) -> onnx.ModelProto:
    """Keyword spotter: two LSTM layers over [98, 1, 40] features, 12 words."""
    net = _Network("lstm_kws", [steps, 1, features])
    x, width = "input", features
    for _ in range(2):
        w, r = net.weight(1, 4 * hidden, width, fan=width), net.weight(1, 4 * hidden, hidden, fan=hidden)
        bias = net.constant(np.zeros((1, 8 * hidden), np.float32))
        y = net.add("LSTM", x, w, r, bias, hidden_size=hidden)
        x, width = net.add("Squeeze", y, net.constant(np.array([1], np.int64))), hidden
    x = net.add("Gather", x, net.constant(np.int64(-1)), axis=0)
    x = net.add("Gemm", x, net.weight(12, hidden), net.vector(12), transB=1)
    return net.model(net.add("Softmax", x, axis=1), [1, 12])


def vit_tiny4(dim: int = 192, heads: int = 3, depth: int = 4, tokens: int = 196) -> onnx.ModelProto:
    """ViT-Ti with four blocks, the mean over tokens for a class token."""
    net = _Network("vit_tiny4", [1, 3, 224, 224])
    x = net.conv("input", 3, dim, 16, 16, 0, activation="")
    x = net.add("Reshape", x, net.constant(np.array([1, dim, tokens], np.int64)))
    x = net.add("Add", net.add("Transpose", x, perm=[0, 2, 1]), net.weight(1, tokens, dim, fan=5000))
    for _ in range(depth):
        x = net.add("Add", x, _attention(net, _layer_norm(net, x, dim), dim, heads, tokens))
        y = _gelu(net, _linear(net, _layer_norm(net, x, dim), dim, 4 * dim))
        x = net.add("Add", x, _linear(net, y, 4 * dim, dim))
    x = net.add("ReduceMean", _layer_norm(net, x, dim), axes=[1], keepdims=0)
    x = net.add("Gemm", x, net.weight(1000, dim), net.vector(1000), transB=1)
    return net.model(net.add("Softmax", x, axis=1), [1, 1000])


def _layer_norm(net: _Network, x: str, dim: int) -> str:
    return net.add("LayerNormalization", x, net.vector(dim, 0.1, 1.0), net.vector(dim), axis=-1, epsilon=1e-6)


def _linear(net: _Network, x: str, c_in: int, c_out: int) -> str:
    return net.add("Add", net.add("MatMul", x, net.weight(c_in, c_out, fan=c_in)), net.vector(c_out))


def _gelu(net: _Network, x: str) -> str:
    """``x / 2 * (1 + erf(x / sqrt(2)))``, as exporters before opset 20 write it."""
    erf = net.add("Erf", net.add("Mul", x, net.constant(np.float32(2**-0.5))))
    half = net.add("Mul", x, net.constant(np.float32(0.5)))
    return net.add("Mul", half, net.add("Add", erf, net.constant(np.float32(1))))


def _attention(net: _Network, x: str, dim: int, heads: int, tokens: int) -> str:
    """Scaled dot-product attention over [1, tokens, dim]."""
    split = net.constant(np.array([1, tokens, heads, dim // heads], np.int64))
    q, k, v = (
        net.add("Transpose", net.add("Reshape", _linear(net, x, dim, dim), split), perm=[0, 2, 1, 3]) for _ in range(3)
    )
    scale = net.constant(np.float32((dim // heads) ** -0.5))
    scores = net.add("Mul", net.add("MatMul", q, net.add("Transpose", k, perm=[0, 1, 3, 2])), scale)
    y = net.add("Transpose", net.add("MatMul", net.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return _linear(net, net.add("Reshape", y, net.constant(np.array([1, tokens, dim], np.int64))), dim, dim)


BENCH_MODELS = {f.__name__: f for f in (squeezenet1_1, mobilenet_v1, mobilenet_v2, resnet18, lstm_kws, vit_tiny4)}


def write(name: str, folder: Path = DEFAULT_OUT) -> Path:
    """Write one network; returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.onnx"
    path.write_bytes(BENCH_MODELS[name]().SerializeToString(deterministic=True))
    return path


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"any of: {', '.join(BENCH_MODELS)}", metavar="NAME")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder to write to")
    options = parser.parse_args(argv)
    unknown = sorted(set(options.names) - set(BENCH_MODELS))
    if unknown:
        print(f"bench_models: no network '{unknown[0]}'. Known: {', '.join(BENCH_MODELS)}.", file=sys.stderr)
        return 1
    for name in options.names or BENCH_MODELS:
        print(write(name, options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
