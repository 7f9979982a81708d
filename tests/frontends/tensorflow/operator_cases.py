"""One graph for each operator and attribute, written with TensorFlow: run by make_models.py, where it is installed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

R = np.random.default_rng(20261130)


@dataclass(frozen=True)
class Case:
    """``run`` on ``inputs``; a tuple becomes several outputs."""

    run: Callable
    inputs: tuple[np.ndarray, ...]


def _f(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return R.uniform(low, high, shape).astype("float32")


IMAGE, WEIGHTS = _f(1, 7, 6, 4), _f(3, 3, 4, 5)
RAW = tf.raw_ops
CASES: dict[str, Case] = {}


def _add(name: str, run: Callable, *inputs: np.ndarray) -> None:
    assert name not in CASES, name
    CASES[name] = Case(run, inputs)


def _nchw(run: Callable) -> Callable:
    return lambda x: run(tf.transpose(x, [0, 3, 1, 2]))


def _windows() -> None:
    for padding, stride, dilation in itertools.product(("SAME", "VALID"), (1, 2), (1, 2)):
        if stride > 1 and dilation > 1:
            continue
        _add(
            f"conv2d_{padding}_{stride}_{dilation}",
            lambda x, p=padding, s=stride, d=dilation: tf.nn.conv2d(x, WEIGHTS, s, p, dilations=d),
            IMAGE,
        )
    explicit = [[0, 0], [1, 2], [0, 1], [0, 0]]
    _add("conv2d_explicit", lambda x: tf.nn.conv2d(x, WEIGHTS, [1, 2, 1, 1], explicit), IMAGE)
    _add("conv2d_grouped", lambda x: tf.nn.conv2d(x, WEIGHTS[:, :, :2, :4], 1, "SAME"), IMAGE)
    for padding, stride, times in (("SAME", 1, 1), ("SAME", 2, 2), ("VALID", 1, 3)):
        w = _f(3, 3, 4, times)
        _add(
            f"depthwise_{padding}_{stride}_{times}",
            lambda x, w=w, p=padding, s=stride: tf.nn.depthwise_conv2d(x, w, [1, s, s, 1], p),
            IMAGE,
        )
    _add(
        "depthwise_dilated",
        lambda x: tf.nn.depthwise_conv2d(x, WEIGHTS[..., :1], [1] * 4, "SAME", dilations=[2, 2]),
        IMAGE,
    )
    for padding, stride, out in (
        ("SAME", 2, (14, 12)),
        ("SAME", 2, (13, 11)),
        ("VALID", 2, (15, 13)),
        ("VALID", 2, (16, 14)),
        ("SAME", 1, (7, 6)),
        ("SAME", 3, (19, 18)),
    ):
        w = _f(3, 3, 5, 4)
        _add(
            f"conv2d_transpose_{padding}_{stride}_{out[0]}",
            lambda x, w=w, p=padding, s=stride, o=out: tf.nn.conv2d_transpose(x, w, [1, *o, 5], s, p),
            IMAGE,
        )
    _add("conv1d", lambda x: tf.nn.conv1d(x[:, 0], WEIGHTS[0], 2, "SAME"), IMAGE)
    _add("conv2d_run_time_weights", lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), IMAGE, WEIGHTS)
    for kind, padding, (k, s) in itertools.product(("MAX", "AVG"), ("SAME", "VALID"), ((2, 2), (3, 2), (3, 1))):
        _add(
            f"pool_{kind}_{padding}_{k}_{s}",
            lambda x, t=kind, p=padding, k=k, s=s: tf.nn.pool(x, [k, k], t, [s, s], p),
            IMAGE,
        )
    _add("max_pool_explicit", lambda x: tf.nn.max_pool2d(x, 3, 2, [[0, 0], [1, 0], [1, 2], [0, 0]]), IMAGE)
    _add("batch_norm", lambda x: tf.nn.batch_normalization(x, _W4[0], _W4[1], _W4[2], _W4[3], 1e-3), IMAGE)
    _add(
        "fused_batch_norm",
        lambda x: (
            RAW.FusedBatchNormV3(
                x=x, scale=_W4[0], offset=_W4[1], mean=_W4[2], variance=_W4[3], epsilon=1e-3, is_training=False
            ).y
        ),
        IMAGE,
    )
    _add(
        "conv_fused_batch_norm_relu6",
        lambda x: tf.nn.relu6(
            RAW.FusedBatchNormV3(
                x=tf.nn.conv2d(x, WEIGHTS[..., :4], 1, "SAME"),
                scale=_W4[0],
                offset=_W4[1],
                mean=_W4[2],
                variance=_W4[3],
                epsilon=1e-3,
                is_training=False,
            ).y
        ),
        IMAGE,
    )
    _add("bias_add_nchw", _nchw(lambda x: tf.nn.bias_add(x, _W4[1], "NCHW")), IMAGE)
    for block, size in ((2, 8), (3, 9)):
        x, w = _f(1, size, size, 4), WEIGHTS
        pads = [[block, block + (-(size + 2 * block)) % block]] * 2
        _add(
            f"space_to_batch_conv_{block}",
            lambda x, b=block, p=pads, w=w: tf.batch_to_space(
                tf.nn.conv2d(tf.space_to_batch(x, [b, b], p), w, 1, "VALID"), [b, b], [[0, p[0][1] - b]] * 2
            ),
            x,
        )
    _add("space_to_batch", lambda x: tf.space_to_batch(x, [2, 3], [[0, 1], [1, 2]]), IMAGE)
    _add("batch_to_space", lambda x: tf.batch_to_space(x, [2, 2], [[0, 1], [1, 0]]), _f(4, 3, 2, 3))
    for block in (2, 3):
        _add(f"depth_to_space_{block}", lambda x, b=block: tf.nn.depth_to_space(x, b), _f(1, 3, 2, 2 * block * block))
        _add(f"space_to_depth_{block}", lambda x, b=block: tf.nn.space_to_depth(x, b), _f(1, 3 * block, 2 * block, 3))


_W4 = (_f(4, low=0.5, high=1.5), _f(4), _f(4), _f(4, low=0.2, high=2.0))


def _resizes() -> None:
    for corners, half in ((False, False), (True, False), (False, True)):
        for h, w in ((14, 12), (5, 9), (3, 3), (1, 1), (8, 6)):
            options = {"align_corners": corners, "half_pixel_centers": half}
            for kind in ("ResizeBilinear", "ResizeNearestNeighbor"):
                _add(
                    f"{kind}_{corners}_{half}_{h}_{w}",
                    lambda x, k=kind, s=(h, w), o=options: getattr(RAW, k)(images=x, size=s, **o),
                    IMAGE,
                )


def _elementwise() -> None:
    x, y, positive = _f(2, 3, 4), _f(3, 1), _f(2, 3, 4, low=0.1, high=3)
    for name in (
        "Abs",
        "Neg",
        "Square",
        "Exp",
        "Expm1",
        "Floor",
        "Ceil",
        "Rint",
        "Sign",
        "Sin",
        "Cos",
        "Tanh",
        "Erf",
        "Sigmoid",
    ):
        _add(name, lambda x, k=name: getattr(RAW, k)(x=x), x)
    for name in ("Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign"):
        _add(name, lambda x, k=name: getattr(RAW, k)(features=x * 4), x)
    for name in ("Sqrt", "Rsqrt", "Log", "Log1p", "Reciprocal"):
        _add(name, lambda x, k=name: getattr(RAW, k)(x=x), positive)
    _add("LeakyRelu", lambda x: tf.nn.leaky_relu(x, 0.3), x)
    for name in (
        "Add",
        "AddV2",
        "Sub",
        "Mul",
        "RealDiv",
        "Div",
        "Maximum",
        "Minimum",
        "SquaredDifference",
        "DivNoNan",
        "Equal",
        "NotEqual",
        "Less",
        "LessEqual",
        "Greater",
        "GreaterEqual",
        "FloorDiv",
        "FloorMod",
    ):
        _add(name, lambda x, y, k=name: getattr(RAW, k)(x=x, y=y), x, y)
    _add("Equal_constant", lambda x: tf.equal(tf.floor(x), 1.0), x)
    _add("Pow", lambda x: tf.pow(x, 1.7), positive)
    _add("Pow_2", lambda x: tf.pow(x, 2.0), x)
    _add("AddN", lambda a, b: tf.add_n([a, b, a]), x, _f(2, 3, 4))
    _add(
        "integers",
        lambda a, b: (a + b, a * b, RAW.FloorDiv(x=a, y=b), RAW.FloorMod(x=a, y=b), RAW.Div(x=a, y=b)),
        np.array([-7, 7, 5, -5], "int32"),
        np.array([2, -2, 3, -3], "int32"),
    )
    _add(
        "logical", lambda a, b: (tf.logical_and(a > 0, b > 0), tf.logical_or(a > 0, b > 0), tf.logical_not(a > 0)), x, y
    )
    _add("Select", lambda x: RAW.Select(condition=x > 0, x=x, y=-x), x)
    _add("Select_rows", lambda x: RAW.Select(condition=x[:, 0, 0] > 0, x=x, y=-x), x)
    _add("SelectV2", lambda x: tf.where(x > 0.5, x, 0.25), x)
    _add(
        "Cast", lambda x: (tf.cast(x, tf.int32), tf.cast(x > 0, tf.float32), tf.cast(tf.cast(x, tf.int32), tf.bool)), x
    )
    _add("ClipByValue", lambda x: tf.clip_by_value(x, -0.5, 0.75), x)
    _add("Softmax", lambda x: tf.nn.softmax(x), x)
    _add("LogSoftmax", lambda x: tf.nn.log_softmax(x), x)
    for bits, narrow in ((8, False), (8, True), (4, False)):
        _add(
            f"fake_quant_{bits}_{narrow}",
            lambda x, b=bits, n=narrow: tf.quantization.fake_quant_with_min_max_vars(x, -1.3, 1.1, b, n),
            x,
        )
    _add("fake_quant_args", lambda x: tf.quantization.fake_quant_with_min_max_args(x, -1.0, 2.0), x)
    _add(
        "fake_quant_channels",
        lambda x: tf.quantization.fake_quant_with_min_max_vars_per_channel(
            x, [-1.0, -0.5, -2.0, 0.0], [1.0, 1.5, 0.5, 2.0]
        ),
        x,
    )


def _layouts() -> None:
    x, image = _f(2, 3, 4), IMAGE
    _add("Reshape", lambda x: tf.reshape(x, [4, -1]), x)
    _add("shape_chain", lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0], tf.reduce_prod(tf.shape(x)[1:])])), x)
    _add("Squeeze", lambda x: tf.squeeze(x[:, :1]), x)
    _add("Squeeze_axis", lambda x: tf.squeeze(x[None, :, :1], [0, 2]), x)
    _add("ExpandDims", lambda x: tf.expand_dims(x, -2), x)
    _add("Transpose", lambda x: tf.transpose(x, [2, 0, 1]), x)
    _add("ConcatV2", lambda a, b: tf.concat([a, b, a], 1), x, _f(2, 2, 4))
    _add("Split", lambda x: tuple(tf.split(x, 2, 2)), x)
    _add("SplitV", lambda x: tuple(tf.split(x, [1, -1], 1)), x)
    _add("Slice", lambda x: tf.slice(x, [0, 1, 1], [-1, 2, 2]), x)
    slices = {
        "plain": np.s_[:, 1:3],
        "shrink": np.s_[1, :, 2],
        "back": np.s_[:, ::-1, -1:0:-2],
        "new": np.s_[:, None],
        "ellipsis": np.s_[..., 1],
        "mixed": np.s_[-1:, None, ..., ::2],
        "wide": np.s_[-9:9, 2:99],
    }
    for name, index in slices.items():
        _add(f"StridedSlice_{name}", lambda x, i=index: x[i], x)
    _add("Pack", lambda a, b: tf.stack([a, b], 1), x, _f(2, 3, 4))
    _add("Unpack", lambda x: tuple(tf.unstack(x, axis=1)), x)
    _add("Pad", lambda x: tf.pad(x, [[0, 1], [2, 0], [1, 1]]), x)
    _add("PadV2", lambda x: tf.pad(x, [[0, 1], [2, 0], [1, 1]], constant_values=1.5), x)
    _add("MirrorPad_reflect", lambda x: tf.pad(x, [[0, 0], [1, 2], [2, 1]], "REFLECT"), x)
    _add("MirrorPad_symmetric", lambda x: tf.pad(x, [[0, 0], [1, 2], [2, 1]], "SYMMETRIC"), x)
    _add("pad_conv", lambda x: tf.nn.conv2d(tf.pad(x, [[0, 0], [0, 1], [1, 0], [0, 0]]), WEIGHTS, 2, "VALID"), image)
    _add("Tile", lambda x: tf.tile(x, [1, 2, 3]), x)
    _add("BroadcastTo", lambda x: tf.broadcast_to(x[:, :1], [2, 3, 4]), x)
    _add("Gather", lambda x: (tf.gather(x, [2, 0], axis=1), tf.gather(x, [0, 2], axis=2), tf.gather(x, 1, axis=1)), x)
    _add("Gather_run_time", lambda x, i: tf.gather(x, i, axis=1), x, np.array([2, 0, 1, 1], "int32"))
    _add("embedding", lambda i: tf.gather(_TABLE, i), np.array([[3, 0, 5]], "int32"))
    _add("OneHot", lambda i: tf.one_hot(i, 4, 2.0, -1.0), np.array([[3, 0, 5]], "int32"))
    _add("fill_range", lambda x: x + tf.fill([3, 4], 0.5) * tf.cast(tf.range(0, 4, 1), tf.float32), x)
    _add("ReverseV2", lambda x: tf.reverse(x, [0, 2]), x)
    for exclusive, reverse in itertools.product((False, True), (False, True)):
        _add(f"Cumsum_{exclusive}_{reverse}", lambda x, e=exclusive, r=reverse: tf.cumsum(x, 1, e, r), x)
    for name in ("sum", "mean", "prod", "max", "min"):
        _add(
            f"reduce_{name}",
            lambda x, k=name: (getattr(tf, f"reduce_{k}")(x, [0, 2]), getattr(tf, f"reduce_{k}")(x, 1, keepdims=True)),
            x,
        )
    _add("global_mean", lambda x: tf.reduce_mean(tf.nn.conv2d(x, WEIGHTS, 1, "SAME"), [1, 2]), image)
    _add("reduce_all_any", lambda x: (tf.reduce_all(x > -1.5, 1), tf.reduce_any(x > 1.5, 1)), x)
    _add("ArgMax", lambda x: (tf.argmax(x, -1), tf.argmax(x, 1, tf.int32), tf.argmin(x, 0)), x)
    _add("MatMul", lambda a, b: tf.matmul(a, b), _f(3, 4), _f(4, 5))
    _add("MatMul_transposed", lambda a: tf.matmul(a, _TABLE[:, :3], transpose_a=True, transpose_b=True), _f(3, 4))
    _add("BatchMatMul", lambda a, b: tf.matmul(a, b, transpose_b=True), _f(2, 3, 4), _f(2, 5, 4))
    _add("Einsum", lambda a, b: tf.einsum("bij,bkj->bik", a, b), _f(2, 3, 4), _f(2, 5, 4))
    _add(
        "flatten_dense",
        lambda x: tf.matmul(tf.reshape(tf.nn.relu(tf.nn.conv2d(x, WEIGHTS, 2, "SAME")), [1, -1]), _DENSE),
        image,
    )
    _add("residual", _residual, image)
    _add("while", _loop, x)


_TABLE, _DENSE = _f(6, 3), _f(60, 7)


def _residual(x):
    y = tf.nn.relu(tf.nn.conv2d(x, WEIGHTS[..., :4], 1, "SAME"))
    z = tf.concat([tf.nn.conv2d(y, WEIGHTS[..., :4], 1, "SAME") + y, y], 3)
    a, b = tf.split(z * tf.reduce_mean(z, [1, 2], keepdims=True), 2, 3)
    return tf.nn.max_pool2d(a - b, 2, 2, "SAME")


def _loop(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 0.5 + tf.cast(i, tf.float32)), [0, x])[1]


_windows()
_resizes()
_elementwise()
_layouts()


def frozen_case(case: Case) -> tuple[bytes, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the frozen graph of a case, its inputs and its outputs as TensorFlow computes them."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    specs = [tf.TensorSpec(x.shape, x.dtype, name=f"in{i}") for i, x in enumerate(case.inputs)]

    def run(*inputs):
        result = case.run(*inputs)
        results = result if isinstance(result, tuple) else (result,)
        return [tf.identity(r, name=f"out{i}") for i, r in enumerate(results)]

    function = tf.function(run, input_signature=specs, autograph=False).get_concrete_function()
    constant = convert_variables_to_constants_v2(function, lower_control_flow=False)
    results = [value.numpy() for value in function(*map(tf.constant, case.inputs))]
    graph = constant.graph.as_graph_def()
    names = [tensor.name.removesuffix(":0") for tensor in constant.outputs]
    feeds = {tensor.name.removesuffix(":0"): x for tensor, x in zip(constant.inputs, case.inputs, strict=True)}
    return graph.SerializeToString(deterministic=True), feeds, dict(zip(names, results, strict=True))
