"""One small file per operator and attribute; what LiteRT computes for each stands in tests/data/tflite/expected.npz.

``tests/frontends/tflite/record_expected.py`` writes that file again where LiteRT is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tflite_models import Feeds, Out, T, const, one_operator

Case = Callable[[], tuple[bytes, Feeds]]
CASES: dict[str, Case] = {}


def r(*shape: int, seed: int = 0, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Return float32 numbers spread evenly over [low, high)."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype("float32")


def q(*shape: int, seed: int = 0, dtype: str = "int8", low: int | None = None) -> np.ndarray:
    """Return stored numbers of the whole range, or from ``low`` up."""
    info = np.iinfo(dtype)
    first = info.min if low is None else low
    return np.random.default_rng(seed).integers(first, min(info.max, 10**6) + 1, shape).astype(dtype)


def ints(*values: int) -> T:
    """Return a constant list of int32."""
    return const(np.asarray(values, "int32"))


def case(name: str, kind: str, *inputs: T | None, out: Any, **options: Any) -> None:
    """Register a case."""
    assert name not in CASES, name
    CASES[name] = lambda: one_operator(kind, *inputs, out=out, **options)


IMAGE = r(1, 7, 6, 4)
ONE = {"stride_h": 1, "stride_w": 1}
TWO = {"stride_h": 2, "stride_w": 2}
W, B = const(r(5, 3, 3, 4, seed=1)), const(r(5, seed=2))
for activation in range(4):
    case(
        f"conv same activation {activation}",
        "CONV_2D",
        T(IMAGE),
        W,
        B,
        out=Out((1, 4, 3, 5)),
        activation=activation,
        **TWO,
    )
case("conv valid", "CONV_2D", T(IMAGE), W, B, out=Out((1, 3, 2, 5)), padding=1, **TWO)
case(
    "conv dilated",
    "CONV_2D",
    T(IMAGE),
    const(r(3, 3, 2, 4, seed=1)),
    const(r(3)),
    out=Out((1, 7, 6, 3)),
    dilation_h=2,
    dilation_w=3,
    **ONE,
)
case("conv grouped", "CONV_2D", T(IMAGE), const(r(6, 3, 3, 2, seed=1)), const(r(6)), out=Out((1, 7, 6, 6)), **ONE)
for m in (1, 3):
    case(
        f"depthwise times {m}",
        "DEPTHWISE_CONV_2D",
        T(IMAGE),
        const(r(1, 3, 3, 4 * m, seed=1)),
        const(r(4 * m)),
        out=Out((1, 4, 3, 4 * m)),
        multiplier=m,
        activation=3,
        **TWO,
    )
case(
    "transpose conv same",
    "TRANSPOSE_CONV",
    ints(1, 14, 12, 3),
    const(r(3, 3, 3, 4, seed=1)),
    T(IMAGE),
    const(r(3)),
    out=Out((1, 14, 12, 3)),
    **TWO,
)
case(
    "transpose conv valid",
    "TRANSPOSE_CONV",
    ints(1, 15, 13, 3),
    const(r(3, 3, 3, 4, seed=1)),
    T(IMAGE),
    out=Out((1, 15, 13, 3)),
    padding=1,
    **TWO,
)
case(
    "fully connected",
    "FULLY_CONNECTED",
    T(r(3, 2, 4)),
    const(r(5, 8, seed=1)),
    const(r(5)),
    out=Out((3, 5)),
    activation=1,
)
case(
    "fully connected keeps dims",
    "FULLY_CONNECTED",
    T(r(3, 2, 4)),
    const(r(5, 4, seed=1)),
    None,
    out=Out((3, 2, 5)),
    keep_num_dims=True,
)
for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
    case(f"{kind} same", kind, T(IMAGE), out=Out((1, 4, 3, 4)), filter_h=3, filter_w=2, **TWO)
    case(f"{kind} valid", kind, T(IMAGE), out=Out((1, 5, 5, 4)), padding=1, filter_h=3, filter_w=2, activation=1, **ONE)
for kind in ("ADD", "SUB", "MUL", "DIV"):
    case(f"{kind} constant", kind, T(r(1, 4, 3, 5)), const(r(5, seed=1, low=0.5)), out=Out((1, 4, 3, 5)), activation=3)
    case(f"{kind} two", kind, T(r(2, 3, 1)), T(r(3, 4, seed=1, low=0.5)), out=Out((2, 3, 4)))
for kind in ("MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "POW"):
    case(kind, kind, T(r(2, 3, 4, low=0.1)), T(r(3, 4, seed=1)), out=Out((2, 3, 4)))
for kind in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
    case(kind, kind, T(np.arange(6.0)), T(np.arange(6.0)[::-1] // 2 * 2), out=Out((6,), "bool"))
for kind in (
    "RELU",
    "RELU6",
    "RELU_N1_TO_1",
    "LOGISTIC",
    "TANH",
    "ELU",
    "HARD_SWISH",
    "EXP",
    "ABS",
    "NEG",
    "SQUARE",
    "SIN",
    "COS",
    "FLOOR",
    "CEIL",
    "ROUND",
):
    case(kind, kind, T(r(2, 30, low=-8, high=8)), out=Out((2, 30)))
for kind in ("LOG", "SQRT", "RSQRT"):
    case(kind, kind, T(r(2, 30, low=0.1, high=8)), out=Out((2, 30)))
case("leaky", "LEAKY_RELU", T(r(2, 30)), out=Out((2, 30)), alpha=0.3)
case("gelu", "GELU", T(r(2, 30)), out=Out((2, 30)))
case("gelu tanh", "GELU", T(r(2, 30)), out=Out((2, 30)), approximate=True)
case("prelu", "PRELU", T(r(1, 4, 3, 5)), const(r(1, 1, 5, seed=1)), out=Out((1, 4, 3, 5)))
case("softmax", "SOFTMAX", T(r(2, 3, 7)), out=Out((2, 3, 7)), beta=1.5)
case("log softmax", "LOG_SOFTMAX", T(r(2, 7)), out=Out((2, 7)))
case("l2", "L2_NORMALIZATION", T(r(2, 7)), out=Out((2, 7)))
case(
    "lrn",
    "LOCAL_RESPONSE_NORMALIZATION",
    T(r(1, 2, 2, 7)),
    out=Out((1, 2, 2, 7)),
    radius=2,
    bias=1.5,
    alpha=0.3,
    beta=0.7,
)
for kind in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
    case(f"{kind} keep", kind, T(r(1, 3, 4, 5)), ints(1, 2), out=Out((1, 1, 1, 5)), keep_dims=True)
    case(f"{kind} drop", kind, T(r(2, 3, 4)), ints(-1), out=Out((2, 3)))
case("argmax", "ARG_MAX", T(r(2, 7)), ints(1), out=Out((2,), "int64"), output_type=4)
case("batch matmul", "BATCH_MATMUL", T(r(2, 3, 4)), T(r(2, 5, 4, seed=1)), out=Out((2, 3, 5)), adj_y=True)
case("cumsum", "CUMSUM", T(r(2, 7)), ints(1), out=Out((2, 7)), exclusive=True, reverse=True)
case("concat", "CONCATENATION", T(r(2, 3)), const(r(2, 4, seed=1)), out=Out((2, 7)), axis=-1)
case("pad", "PAD", T(IMAGE), const(np.array([[0, 0], [1, 2], [0, 3], [1, 0]], "int32")), out=Out((1, 10, 9, 5)))
case("padv2", "PADV2", T(r(2, 3)), const(np.array([[1, 0], [0, 2]], "int32")), const(np.float32(7)), out=Out((3, 5)))
case("mirror reflect", "MIRROR_PAD", T(r(3, 4)), const(np.array([[1, 2], [0, 3]], "int32")), out=Out((6, 7)))
case("mirror symmetric", "MIRROR_PAD", T(r(3, 4)), const(np.array([[1, 2], [0, 4]], "int32")), out=Out((6, 8)), mode=1)
case("reshape", "RESHAPE", T(r(2, 6)), ints(3, -1), out=Out((3, 4)), new_shape=[3, -1])
case("squeeze", "SQUEEZE", T(r(1, 3, 1)), out=Out((3,)), squeeze_dims=[0, 2])
case("expand dims", "EXPAND_DIMS", T(r(2, 3)), ints(1), out=Out((2, 1, 3)))
case("transpose", "TRANSPOSE", T(r(2, 3, 4)), ints(2, 0, 1), out=Out((4, 2, 3)))
case("slice", "SLICE", T(r(3, 4, 5)), ints(1, 0, 2), ints(1, -1, 2), out=Out((1, 4, 2)))
case(
    "strided slice",
    "STRIDED_SLICE",
    T(r(4, 5, 6)),
    ints(0, 4, 1),
    ints(0, 0, 9),
    ints(1, -2, 2),
    out=Out((4, 2, 3)),
    begin_mask=1,
    end_mask=1,
)
case("strided slice backwards", "STRIDED_SLICE", T(r(6)), ints(-1), ints(0), ints(-1), out=Out((6,)), end_mask=1)
case(
    "strided slice shrink",
    "STRIDED_SLICE",
    T(r(4, 5, 6)),
    ints(-1, 1),
    ints(0, 3),
    ints(1, 1),
    out=Out((2, 6)),
    shrink_axis_mask=1,
)
case(
    "strided slice ellipsis",
    "STRIDED_SLICE",
    T(r(4, 5, 6)),
    ints(0, 0, 2),
    ints(0, 0, 5),
    ints(1, 1, 1),
    out=Out((4, 5, 1, 3)),
    ellipsis_mask=1,
    new_axis_mask=2,
)
case("split", "SPLIT", ints(1), T(r(2, 6)), out=[Out((2, 3)), Out((2, 3))], num_splits=2)
case("split v", "SPLIT_V", T(r(2, 6)), ints(1, 5), ints(1), out=[Out((2, 1)), Out((2, 5))], num_splits=2)
case("pack", "PACK", T(r(2, 3)), T(r(2, 3, seed=1)), out=Out((2, 2, 3)), axis=1, values_count=2)
case("unpack", "UNPACK", T(r(2, 3)), out=[Out((2,))] * 3, axis=1, num=3)
case("gather", "GATHER", T(r(5, 3)), ints(4, 0, 2), out=Out((3, 3)))
case("tile", "TILE", T(r(2, 3)), ints(2, 1), out=Out((4, 3)))
case("reverse", "REVERSE_V2", T(r(2, 3)), ints(1), out=Out((2, 3)))
case("cast", "CAST", T(r(2, 3)), out=Out((2, 3), "int32"))
case("select", "SELECT_V2", T(np.array([True, False, True])), T(r(2, 3)), T(r(2, 3, seed=1)), out=Out((2, 3)))
case("space to depth", "SPACE_TO_DEPTH", T(r(1, 4, 6, 3)), out=Out((1, 2, 3, 12)), block_size=2)
case("depth to space", "DEPTH_TO_SPACE", T(r(1, 2, 3, 12)), out=Out((1, 4, 6, 3)), block_size=2)
case(
    "space to batch",
    "SPACE_TO_BATCH_ND",
    T(r(1, 3, 4, 2)),
    ints(2, 2),
    const(np.array([[1, 0], [0, 0]], "int32")),
    out=Out((4, 2, 2, 2)),
)
case(
    "batch to space",
    "BATCH_TO_SPACE_ND",
    T(r(4, 2, 2, 2)),
    ints(2, 2),
    const(np.array([[1, 0], [0, 0]], "int32")),
    out=Out((1, 3, 4, 2)),
)
case("half weights", "DEQUANTIZE", T(r(2, 3).astype("float16")), out=Out((2, 3)))
FLAGS = {"plain": {}, "corners": {"align_corners": True}, "half": {"half_pixel_centers": True}}
for flag, more in FLAGS.items():
    for h, w in ((14, 12), (5, 9), (3, 2)):
        case(f"bilinear {flag} {h}x{w}", "RESIZE_BILINEAR", T(IMAGE), ints(h, w), out=Out((1, h, w, 4)), **more)
        case(f"nearest {flag} {h}x{w}", "RESIZE_NEAREST_NEIGHBOR", T(IMAGE), ints(h, w), out=Out((1, h, w, 4)), **more)

# Quantised: names begin with int8 or uint8
S8, U8 = q(1, 7, 6, 4), q(1, 7, 6, 4, dtype="uint8")
W8, B32 = q(5, 3, 3, 4, seed=1, low=-127), q(5, seed=2, dtype="int32", low=-20000) // 50
PER_CHANNEL = r(5, seed=3, low=0.002, high=0.02)
for activation in range(4):
    case(
        f"int8 conv activation {activation}",
        "CONV_2D",
        T(S8, 0.05, -3),
        const(W8, scale=PER_CHANNEL, axis=0),
        const(B32),
        out=Out((1, 4, 3, 5), "int8", 0.2, 5),
        activation=activation,
        **TWO,
    )
case(
    "uint8 conv",
    "CONV_2D",
    T(U8, 0.05, 120),
    const(q(5, 3, 3, 4, seed=1, dtype="uint8"), scale=0.01, zero=131),
    const(B32),
    out=Out((1, 4, 3, 5), "uint8", 0.3, 130),
    **TWO,
)
case(
    "int8 depthwise",
    "DEPTHWISE_CONV_2D",
    T(S8, 0.05, -3),
    const(q(1, 3, 3, 8, seed=1, low=-127), scale=r(8, low=0.01), axis=3),
    const(q(8, dtype="int32", low=-2000) // 1000),
    out=Out((1, 7, 6, 8), "int8", 0.7, 5),
    multiplier=2,
    **ONE,
)
case(
    "int8 transpose conv",
    "TRANSPOSE_CONV",
    ints(1, 14, 12, 5),
    const(q(5, 3, 3, 4, seed=1, low=-127), scale=PER_CHANNEL, axis=0),
    T(S8, 0.05, -3),
    out=Out((1, 14, 12, 5), "int8", 0.2, 5),
    **TWO,
)
case(
    "int8 fully connected",
    "FULLY_CONNECTED",
    T(q(3, 8), 0.05, 7),
    const(q(5, 8, seed=1, low=-127), scale=0.01),
    const(B32),
    out=Out((3, 5), "int8", 0.1, -9),
    activation=1,
)
case(
    "uint8 fully connected",
    "FULLY_CONNECTED",
    T(q(3, 8, dtype="uint8"), 0.05, 127),
    const(q(5, 8, seed=1, dtype="uint8"), scale=0.01, zero=110),
    const(B32),
    out=Out((3, 5), "uint8", 0.2, 90),
)
for kind in ("ADD", "SUB", "MUL"):
    for dtype, zeros in (("int8", (3, -7, 11)), ("uint8", (130, 120, 100))):
        case(
            f"{dtype} {kind}",
            kind,
            T(q(2, 5, 40, dtype=dtype), 0.05, zeros[0]),
            T(q(40, seed=1, dtype=dtype), 0.02, zeros[1]),
            out=Out((2, 5, 40), dtype, 0.04, zeros[2]),
            activation=1 if kind == "ADD" else 0,
        )
for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
    case(
        f"int8 {kind}",
        kind,
        T(S8, 0.05, -3),
        out=Out((1, 4, 3, 4), "int8", 0.05, -3),
        filter_h=3,
        filter_w=3,
        activation=3,
        **TWO,
    )
    case(
        f"uint8 {kind}",
        kind,
        T(U8, 0.05, 120),
        out=Out((1, 5, 4, 4), "uint8", 0.05, 120),
        filter_h=3,
        filter_w=3,
        padding=1,
        **ONE,
    )
case("int8 mean", "MEAN", T(S8, 0.05, -3), ints(1, 2), out=Out((1, 1, 1, 4), "int8", 0.03, 4), keep_dims=True)
case("int8 sum", "SUM", T(q(3, 9), 0.05, -3), ints(1), out=Out((3,), "int8", 0.3, 4))
case("int8 max", "REDUCE_MAX", T(q(3, 9), 0.05, -3), ints(1), out=Out((3,), "int8", 0.05, -3))
case("int8 softmax", "SOFTMAX", T(q(3, 9), 0.1, -3), out=Out((3, 9), "int8", 1 / 256, -128), beta=1.0)
case("uint8 softmax", "SOFTMAX", T(q(3, 9, dtype="uint8"), 0.05, 3), out=Out((3, 9), "uint8", 1 / 256, 0), beta=1.0)
ALL = np.arange(-128, 128).astype("int8").reshape(2, 128)
case("int8 LOGISTIC", "LOGISTIC", T(ALL, 0.06, 5), out=Out((2, 128), "int8", 1 / 256, -128))
case("int8 TANH", "TANH", T(ALL, 0.03, 5), out=Out((2, 128), "int8", 1 / 128, 0))
case("int8 HARD_SWISH", "HARD_SWISH", T(ALL, 0.06, 5), out=Out((2, 128), "int8", 0.05, -3))
case("int8 LEAKY_RELU", "LEAKY_RELU", T(ALL, 0.06, 5), out=Out((2, 128), "int8", 0.05, -3), alpha=0.2)
case("int8 ELU", "ELU", T(ALL, 0.06, 5), out=Out((2, 128), "int8", 0.05, -3))
for kind in ("RELU", "RELU6", "RELU_N1_TO_1"):
    case(f"int8 {kind}", kind, T(ALL, 0.06, 5), out=Out((2, 128), "int8", 0.05, -3))
case(
    "int8 prelu",
    "PRELU",
    T(q(1, 4, 3, 5), 0.05, 3),
    const(q(1, 1, 5, seed=1), scale=0.01, zero=2),
    out=Out((1, 4, 3, 5), "int8", 0.06, -4),
)
case("int8 quantise", "QUANTIZE", T(r(2, 60, low=-9, high=9)), out=Out((2, 60), "int8", 0.05, -3))
case("uint8 quantise", "QUANTIZE", T(r(2, 60, low=-9, high=9)), out=Out((2, 60), "uint8", 0.05, 128))
case("int8 requantise", "QUANTIZE", T(ALL, 0.06, 5), out=Out((2, 128), "uint8", 0.05, 128))
case("int8 dequantise", "DEQUANTIZE", T(ALL, 0.06, 5), out=Out((2, 128)))
case(
    "int8 concat",
    "CONCATENATION",
    T(q(2, 3), 0.05, 3),
    T(q(2, 4, seed=1), 0.05, 3),
    out=Out((2, 7), "int8", 0.05, 3),
    axis=1,
)
case(
    "uint8 concat rescaled",
    "CONCATENATION",
    T(q(2, 3, dtype="uint8"), 0.05, 3),
    T(q(2, 4, seed=1, dtype="uint8"), 0.03, 9),
    out=Out((2, 7), "uint8", 0.06, 30),
    axis=1,
)
case(
    "int8 pad",
    "PAD",
    T(S8, 0.05, -3),
    const(np.array([[0, 0], [1, 2], [0, 3], [0, 0]], "int32")),
    out=Out((1, 10, 9, 4), "int8", 0.05, -3),
)
case("int8 GREATER", "GREATER", T(q(2, 9), 0.05, 3), T(q(2, 9, seed=1), 0.03, -3), out=Out((2, 9), "bool"))
for flag, more in FLAGS.items():
    case(
        f"int8 bilinear {flag}",
        "RESIZE_BILINEAR",
        T(S8, 0.05, -3),
        ints(13, 9),
        out=Out((1, 13, 9, 4), "int8", 0.05, -3),
        **more,
    )
    case(
        f"int8 nearest {flag}",
        "RESIZE_NEAREST_NEIGHBOR",
        T(S8, 0.05, -3),
        ints(13, 9),
        out=Out((1, 13, 9, 4), "int8", 0.05, -3),
        **more,
    )
