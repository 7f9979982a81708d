"""Small networks with every kind of tie between channels, for cutting neurons and for torch, by name in ``ZOO``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax
from tvm.relax import Expr

from xnncc.frontends.network import NetworkBuilder, constant
from xnncc.ir.recurrent import NAME, Activation, Recurrent

op, nn = relax.op, relax.op.nn


class Net:
    """A network under construction with its random weights."""

    def __init__(self, seed: int = 0) -> None:
        self.rng, self.builder = np.random.default_rng(seed), NetworkBuilder()

    def w(self, *shape: int) -> Expr:
        """Return a constant of normal values that keep activations near 1."""
        return constant((self.rng.normal(size=shape) / np.sqrt(max(np.prod(shape[1:]), 1))).astype("float32"))

    def image(self, channels: int = 3, size: int = 8) -> Expr:
        """Return the input."""
        return self.builder.input("x", (1, channels, size, size), "float32")

    def conv(self, x: Expr, outs: int, name: str, size: int = 1, groups: int = 1, **attrs: object) -> Expr:
        """Convolution and bias, named."""
        ins = int(x.ty.shape.values[1])
        attrs.setdefault("padding", size // 2)
        y = self.builder.emit(
            nn.conv2d(x, self.w(outs, ins // groups, size, size), groups=groups, **attrs), f"{name}#1"
        )
        return self.builder.emit(op.add(y, self.w(1, outs, 1, 1)), name)

    def relu(self, x: Expr) -> Expr:
        return self.builder.emit(nn.relu(x))

    def emit(self, x: Expr, name: str = "") -> Expr:
        return self.builder.emit(x, name)

    def dense(self, x: Expr, outs: int, name: str) -> Expr:
        """Matrix product and bias, named."""
        y = self.emit(op.matmul(x, self.w(int(x.ty.shape.values[-1]), outs)), f"{name}#1")
        return self.emit(op.add(y, self.w(outs)), name)

    def pooled(self, x: Expr, outs: int = 10) -> tvm.IRModule:
        """Mean over the image, a classifier, and done."""
        y = self.emit(op.mean(x, [2, 3], keepdims=False))
        return self.builder.finish([self.dense(y, outs, "logits")])


def chain() -> tvm.IRModule:
    """conv -> pool -> conv -> flatten -> dense -> dense, as LeNet."""
    n = Net(1)
    y = n.emit(nn.max_pool2d(n.conv(n.image(), 6, "a", 3), (2, 2), strides=2))
    y = n.emit(op.reshape(n.relu(n.conv(y, 8, "b", 3)), (1, 128)))
    return n.builder.finish([n.dense(n.relu(n.dense(y, 12, "c")), 10, "logits")])


def residual() -> tvm.IRModule:
    """Two blocks whose trunk is tied by additions."""
    n = Net(2)
    x = n.relu(n.conv(n.image(), 8, "stem", 3))
    for block in "ab":
        y = n.conv(n.relu(n.conv(x, 12, f"{block}1", 3)), 8, f"{block}2", 3)
        x = n.relu(n.emit(op.add(x, y)))
    return n.pooled(x)


def inverted() -> tvm.IRModule:
    """Expansion, depthwise, projection, as MobileNet; then a depthwise layer with two outputs a channel."""
    n = Net(3)
    x = n.conv(n.image(), 6, "stem", 3)
    y = n.emit(op.clip(n.conv(x, 18, "expand"), 0.0, 6.0))
    y = n.relu(n.conv(y, 18, "depthwise", 3, groups=18))
    x = n.emit(op.add(x, n.conv(y, 6, "project")))
    return n.pooled(n.relu(n.conv(x, 12, "double", 3, groups=6)))


def grouped() -> tvm.IRModule:
    """A convolution of four groups between plain ones."""
    n = Net(4)
    x = n.relu(n.conv(n.image(), 16, "a", 3))
    return n.pooled(n.relu(n.conv(n.relu(n.conv(x, 24, "b", 3, groups=4)), 10, "c")))


def joined() -> tvm.IRModule:
    """Branches that are concatenated, one of them twice, and split again."""
    n = Net(5)
    x = n.relu(n.conv(n.image(), 8, "stem", 3))
    a, b = n.conv(x, 6, "a"), n.conv(x, 10, "b", 3)
    y = n.emit(op.concat([a, b, x, a], axis=1))
    parts = n.emit(op.split(y, [9, 20], axis=1))
    first, last = n.emit(relax.TupleGetItem(parts, 0)), n.emit(relax.TupleGetItem(parts, 2))
    sliced = n.emit(op.strided_slice(y, [1], [4], [14]))
    return n.pooled(n.emit(op.concat([n.conv(first, 7, "c"), n.conv(last, 5, "d"), n.relu(sliced)], axis=1)))


def shuffled() -> tvm.IRModule:
    """A channel shuffle between a grouped and a depthwise convolution, as ShuffleNet."""
    n = Net(6)
    x = n.relu(n.conv(n.image(), 12, "a", 3))
    y = n.emit(op.reshape(n.conv(x, 12, "b", 1, groups=3), (1, 3, 4, 8, 8)))
    y = n.emit(op.reshape(n.emit(op.permute_dims(y, [0, 2, 1, 3, 4])), (1, 12, 8, 8)))
    return n.pooled(n.relu(n.conv(n.conv(y, 12, "depthwise", 3, groups=12), 9, "c")))


def squeezed() -> tvm.IRModule:
    """A squeeze-and-excite branch that gates its trunk."""
    n = Net(7)
    x = n.relu(n.conv(n.image(), 12, "stem", 3))
    gate = n.emit(op.mean(x, [2, 3], keepdims=True))
    gate = n.emit(op.sigmoid(n.conv(n.relu(n.conv(gate, 4, "down")), 12, "up")))
    return n.pooled(n.relu(n.conv(n.emit(op.multiply(x, gate)), 8, "after")))


def detector() -> tvm.IRModule:
    """Heads as SSD has them: permuted, flattened, concatenated, reshaped. Their channels are fixed, the trunk's not."""
    n = Net(8)
    x = n.relu(n.conv(n.image(), 10, "a", 3))
    y = n.relu(n.conv(x, 12, "b", 3, strides=2))
    flat = []
    for index, level in enumerate((x, y)):
        z = n.emit(op.permute_dims(n.conv(level, 8, f"head{index}", 3), [0, 2, 3, 1]))
        flat.append(n.emit(op.reshape(z, (1, int(np.prod([int(d) for d in z.ty.shape.values]))))))
    boxes = n.emit(op.concat(flat, axis=1))
    return n.builder.finish([n.emit(op.reshape(boxes, (1, 160, 4)), "boxes")])


def transformer() -> tvm.IRModule:
    """Layer norm, attention of two heads and a wide layer, with residual sums. The trunk is fixed by the norms."""
    n = Net(9)
    x = n.builder.input("x", (1, 5, 12), "float32")

    def norm(y: Expr, name: str) -> Expr:
        return n.emit(nn.layer_norm(y, n.w(12), n.w(12), axes=[-1]), name)

    qkv = n.emit(op.reshape(n.dense(norm(x, "norm1"), 36, "qkv"), (1, 5, 3, 2, 6)))
    qkv = n.emit(op.permute_dims(qkv, [2, 0, 3, 1, 4]))
    q, k, v = (n.emit(op.reshape(n.emit(op.strided_slice(qkv, [0], [i], [i + 1])), (1, 2, 5, 6))) for i in range(3))
    scores = n.emit(nn.softmax(n.emit(op.matmul(q, n.emit(op.permute_dims(k, [0, 1, 3, 2])))), -1))
    y = n.emit(op.permute_dims(n.emit(op.matmul(scores, v)), [0, 2, 1, 3]))
    x = n.emit(op.add(x, n.dense(n.emit(op.reshape(y, (1, 5, 12))), 12, "out")))
    y = n.dense(n.relu(n.dense(norm(x, "norm2"), 20, "wide")), 12, "narrow")
    return n.builder.finish([n.dense(n.emit(op.add(x, y)), 7, "logits")])


def recurrent(cell: str) -> tvm.IRModule:
    """A layer in both directions on a layer in one, then a classifier."""
    n, gates = Net(10), {"lstm": 4, "gru": 3}[cell]
    acts = {"lstm": ("sigmoid", "tanh", "tanh"), "gru": ("sigmoid", "tanh")}[cell]
    x = n.builder.input("x", (4, 1, 6), "float32")

    def layer(x: Expr, units: int, reverse: tuple[bool, ...], name: str) -> Expr:
        ways, ins = len(reverse), int(x.ty.shape.values[2])
        spec = Recurrent(cell, units, reverse, tuple(map(Activation, acts)), ("x", "w", "r", "b"), ("y",))
        operands = [x, n.w(ways, gates * units, ins), n.w(ways, gates * units, units), n.w(ways, 2 * gates * units)]
        shape = relax.TensorType(spec.shape("y", 4, 1), "float32")
        call = op.call_pure_packed(NAME, *operands, tvm.ir.StringImm(spec.to_json()), ty_args=shape)
        y = n.emit(op.permute_dims(n.emit(call, name), [0, 2, 1, 3]))
        return n.emit(op.reshape(y, (4, 1, ways * units)))

    y = layer(layer(x, 8, (False,), "first"), 5, (False, True), "second")
    return n.builder.finish([n.dense(y, 3, "logits")])


def upsampled() -> tvm.IRModule:
    """A transposed convolution, a nearest-neighbour resize, two pads, an uneven average pool, a leaky ReLU."""
    n = Net(11)
    x = n.emit(nn.leakyrelu(n.conv(n.image(), 8, "a", 3, strides=2), 0.1))
    y = n.emit(nn.conv2d_transpose(x, n.w(8, 6, 2, 2), strides=2), "up#1")
    y = n.emit(op.add(y, n.w(1, 6, 1, 1)), "up")
    z = n.emit(op.image.resize2d(n.conv(x, 6, "b"), (8, 8), layout="NCHW", method="nearest_neighbor",
                                 coordinate_transformation_mode="asymmetric", rounding_method="floor"))  # fmt: skip
    y = n.emit(nn.pad(n.emit(op.add(y, z)), (0, 0, 0, 0, 1, 0, 0, 1)))
    y = n.emit(nn.pad(y, (0, 0, 0, 0, 2, 1, 0, 2), pad_mode="reflect"))
    y = n.emit(nn.avg_pool2d(y, (3, 3), strides=2, padding=(0, 0, 1, 1), count_include_pad=False))
    return n.pooled(n.conv(y, 9, "c", 3))


ZOO: dict[str, Callable[[], tvm.IRModule]] = {
    "chain": chain, "residual": residual, "inverted": inverted, "grouped": grouped, "joined": joined,
    "shuffled": shuffled, "squeezed": squeezed, "detector": detector, "transformer": transformer,
    "lstm": lambda: recurrent("lstm"), "gru": lambda: recurrent("gru"), "upsampled": upsampled,
}  # fmt: skip
