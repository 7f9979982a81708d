"""Small models, one question each, that importers are known to get wrong. ``CASES[name]()`` gives (model, feeds).

The right answer is the ONNX standard's, in practice onnxruntime's. ``REFUSED`` says which of them we do not build
as they are and what the refusal must say; all others must match, and so must those with the options in ``TOLD``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto
from onnx_models import Feeds, const, graph, info, model, node, one_node, random

Case = tuple[Any, Feeds]
CASES: dict[str, Callable[[], Case]] = {}
BYTES = np.random.default_rng(0).integers(0, 255, (1, 3, 6, 6)).astype("uint8")
WEIGHTS = np.random.default_rng(1).integers(-127, 127, (4, 3, 3, 3)).astype("int8")

REFUSED = {
    "reshape_runtime_shape": "(Reshape): shape is input 'x1', whose value a build needs",
    "split_runtime_sizes": "(Split): sizes is input 'x1', whose value a build needs",
    "slice_runtime": "(Slice): starts is input 'x1', whose value a build needs",
    "lrn_even_size": "(LRN): size 4 is not odd",
    "nms": "(NonMaxSuppression): its number of boxes is known only at run time. Give it a fixed number of rows",
}
# What makes those right that need a word from the user: options of load_model.
TOLD: dict[str, dict[str, Any]] = {
    "reshape_runtime_shape": {"fixed": {"x1": np.array([6, 4])}},
    "split_runtime_sizes": {"fixed": {"x1": np.array([2, 4])}},
    "slice_runtime": {"fixed": {"x1": np.array([1]), "x2": np.array([4])}},
    "nms": {"nms_rows": 3},
}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def _one(name: str, operator: str, *inputs: Any, **options: Any) -> None:
    CASES[name] = lambda: one_node(operator, *inputs, **options)


def _resize(name: str, scales: list[float], **attributes: Any) -> None:
    image = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
    _one(name, "Resize", image, None, const(np.array([1, 1, *scales], "float32")), **attributes)


X17, X16 = random(1, 3, 17, 17), random(1, 3, 16, 16)
POOL = {"kernel_shape": [2, 2], "strides": [2, 2], "opset": 19}
SAME = {"kernel_shape": [3, 3], "strides": [2, 2]}

_one("reshape_runtime_shape", "Reshape", random(2, 3, 4), np.array([6, 4]))
_one("split_runtime_sizes", "Split", random(6, 2), np.array([2, 4]), outputs=2)
_one("slice_runtime", "Slice", random(6, 2), np.array([1]), np.array([4]))
_one("pad_wrap_op19", "Pad", random(3, 4), const(np.array([1, 1, 1, 1])), mode="wrap", opset=19)
_one("pad_axes_op18", "Pad", random(3, 4), const(np.array([1, 2])), None, const(np.array([1])))
_one("avgpool_ceil_pad_excl", "AveragePool", X17, pads=[1, 1, 1, 1], ceil_mode=1, **POOL)
_one("avgpool_ceil_pad_incl", "AveragePool", X17, pads=[1, 1, 1, 1], ceil_mode=1, count_include_pad=1, **POOL)
_one("avgpool_ceil_nopad", "AveragePool", X17, ceil_mode=1, **POOL)
_one("maxpool_same_upper", "MaxPool", X16, auto_pad="SAME_UPPER", **SAME)
_one("avgpool_same_lower", "AveragePool", X16, auto_pad="SAME_LOWER", **SAME)
_one("maxpool_ceil_caffe", "MaxPool", X16, ceil_mode=1, **SAME)
_resize("resize_nearest_halfpixel_rpf", [1.5, 1.5], mode="nearest")
_resize("resize_nearest_asym_floor_2x", [2, 2], mode="nearest", coordinate_transformation_mode="asymmetric",
        nearest_mode="floor")  # fmt: skip
_resize("resize_linear_halfpixel_down", [0.6, 0.6], mode="linear")
_resize("resize_linear_pthalf", [2, 2], mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
_resize("resize_linear_align", [2, 2], mode="linear", coordinate_transformation_mode="align_corners")
_resize("resize_cubic", [2, 2], mode="cubic", cubic_coeff_a=-0.5)
_one("upsample_op9_linear", "Upsample", random(1, 1, 3, 3), const([1.0, 1, 2, 2], "float32"), mode="linear", opset=9)
_one(
    "convtranspose_same_upper",
    "ConvTranspose",
    random(1, 4, 5, 5),
    const(random(4, 3, 3, 3)),
    auto_pad="SAME_UPPER",
    **SAME,
)
_one("conv_same_upper_stride2_even", "Conv", X16, const(random(4, 3, 3, 3)), strides=[2, 2], auto_pad="SAME_UPPER")
_one("conv_same_lower", "Conv", X16, const(random(4, 3, 3, 3)), strides=[2, 2], auto_pad="SAME_LOWER")
_one("conv_depthwise_mult2", "Conv", random(1, 3, 8, 8), const(random(6, 1, 3, 3)), group=3, pads=[1, 1, 1, 1])
_one("conv3d", "Conv", random(1, 2, 4, 4, 4), const(random(3, 2, 3, 3, 3)), pads=[1] * 6)
_one(
    "fp16_conv", "Conv", random(1, 2, 4, 4).astype("float16"), const(random(3, 2, 3, 3).astype("float16")), pads=[1] * 4
)
_one("clip_min_only", "Clip", random(2, 3), const(0.1))
_one("clip_op6_attr", "Clip", random(2, 3) * 9, min=0.0, max=6.0, opset=6)
_one("lrn", "LRN", random(1, 8, 5, 5) * 50, size=5, alpha=1e-4, beta=0.75, bias=1.0)
_one("lrn_even_size", "LRN", random(1, 8, 5, 5), size=4, alpha=1.0)
_one("prelu_channel", "PRelu", random(1, 4, 5, 5), const(random(4, 1, 1)))
_one(
    "gemm_alpha_beta_trans_a",
    "Gemm",
    random(3, 2),
    const(random(3, 4)),
    const(random(4)),
    alpha=0.5,
    beta=2.0,
    transA=1,
)
_one("reducemean_op18_axes_input", "ReduceMean", random(2, 3, 4), const(np.array([-1])), keepdims=0)
_one("round_half_even", "Round", np.array([0.5, 1.5, 2.5, -0.5, -1.5], "float32"))
_one("instancenorm", "InstanceNormalization", random(2, 3, 4, 4), const(random(3)), const(random(3, seed=1)))
_one("softmax_large_values", "Softmax", np.array([[1000, 999, -1000, 0]], "float32"))
_one("celu", "Celu", random(4), alpha=2.0)
_one("lpnorm", "LpNormalization", random(2, 4), axis=1, p=2)
_one("passthrough", "Identity", random(2))
_one("reversesequence", "ReverseSequence", random(4, 2), const(np.array([3, 4])), time_axis=0, batch_axis=1)
_one("nms", "NonMaxSuppression", random(1, 6, 4), random(1, 1, 6), const(np.array([3])), const([0.5], "float32"))
_one("lstm", "LSTM", random(3, 2, 4), const(random(1, 20, 4)), const(random(1, 20, 5)), const(random(1, 40)),
     hidden_size=5, outputs=2)  # fmt: skip
_one("gru", "GRU", random(3, 2, 4), const(random(1, 15, 4)), const(random(1, 15, 5)), const(random(1, 30)),
     hidden_size=5, linear_before_reset=1, outputs=2)  # fmt: skip
_one("qlinearconv", "QLinearConv", BYTES, const(0.02), const(np.uint8(128)), const(WEIGHTS), const(0.01),
     const(np.int8(0)), const(0.3), const(np.uint8(120)))  # fmt: skip
_one("convinteger", "ConvInteger", BYTES, const(WEIGHTS), const(np.uint8(128)))
_one("matmulinteger", "MatMulInteger", BYTES[0, 0], const(WEIGHTS.reshape(6, -1)[:, :3]), const(np.uint8(128)))


@case
def conv_dynamic_hw() -> Case:
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        node("Relu", ["c"], ["d"]),
        node("GlobalAveragePool", ["d"], ["y"]),
    ]
    return model(nodes, [info("x", shape=["N", 3, "H", "W"])], [info("y")], {"w": random(4, 3, 3, 3)}), {
        "x": random(2, 3, 9, 7)
    }


@case
def conv_dynamic_batch_flatten_gemm() -> Case:
    nodes = [node("Conv", ["x", "w"], ["c"], pads=[1] * 4), node("Flatten", ["c"], ["f"]),
             node("Gemm", ["f", "g"], ["y"], transB=1)]  # fmt: skip
    weights = {"w": random(4, 3, 3, 3), "g": random(5, 64)}
    return model(nodes, [info("x", shape=["N", 3, 4, 4])], [info("y")], weights), {"x": random(2, 3, 4, 4)}


@case
def dynamic_shape_gather_reshape() -> Case:
    """The ``x.view(x.size(0), -1)`` of PyTorch."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "i"], ["n"]), node("Unsqueeze", ["n", "a"], ["n1"]),
             node("Concat", ["n1", "m"], ["shape"], axis=0), node("Reshape", ["x", "shape"], ["y"])]  # fmt: skip
    weights = {"i": np.array(0), "a": np.array([0]), "m": np.array([-1])}
    return model(nodes, [info("x", shape=["N", 3, 4])], [info("y")], weights), {"x": random(2, 3, 4)}


@case
def if_at_run_time() -> Case:
    then = graph([node("Add", ["x", "x"], ["t"])], [], [info("t")])
    other = graph([node("Neg", ["x"], ["e"])], [], [info("e")])
    nodes = [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Greater", ["s", "z"], ["c"]),
             node("If", ["c"], ["y"], then_branch=then, else_branch=other)]  # fmt: skip
    x = np.ones((2, 3), "float32")
    return model(nodes, [info("x", x)], [info("y")], {"z": np.float32(0)}), {"x": x}


@case
def loop() -> Case:
    scalar = [helper_info("it", TensorProto.INT64), helper_info("ci", TensorProto.BOOL), info("v", shape=[2])]
    body = graph([node("Identity", ["ci"], ["co"]), node("Add", ["v", "v"], ["vo"])], scalar,
                 [helper_info("co", TensorProto.BOOL), info("vo", shape=[2])])  # fmt: skip
    nodes = [node("Loop", ["n", "c", "x"], ["y"], body=body, name="loop")]
    return model(nodes, [info("x", shape=[2])], [info("y")], {"n": np.array(3), "c": np.array(True)}), {"x": random(2)}


def helper_info(name: str, kind: int) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, kind, [])


@case
def qdq_conv_perchannel() -> Case:
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]), node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
             node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0), node("Conv", ["xd", "wd"], ["c"]),
             node("QuantizeLinear", ["c", "ys", "yz"], ["cq"]),
             node("DequantizeLinear", ["cq", "ys", "yz"], ["y"])]  # fmt: skip
    weights = {"xs": np.float32(0.02), "xz": np.uint8(128), "w": WEIGHTS, "ys": np.float32(0.3), "yz": np.uint8(120),
               "ws": np.array([0.01, 0.02, 0.03, 0.04], "float32"), "wz": np.zeros(4, "int8")}  # fmt: skip
    x = random(1, 3, 6, 6)
    return model(nodes, [info("x", x)], [info("y")], weights, 13), {"x": x}
