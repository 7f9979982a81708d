"""What of the TFLite schema is read: operators, element types, and the options of each operator.

Numbers are those of schema.fbs of LiteRT 2.3 (schema version 3). Options: name -> (slot, kind, default).
"""

from __future__ import annotations

from typing import Any

VERSION = 3
CUSTOM = 32

# The position is the operator's number.
OPERATORS: tuple[str, ...] = tuple(
    """ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
    FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION
    LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH
    CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER
    BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
    BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM
    ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE
    TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK
    LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD
    RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N
    GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL
    PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE
    HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE
    ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU
    DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
    UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT""".split()  # noqa: SIM905 (a table that fits a screen)
)

TYPES: tuple[str, ...] = tuple(
    """float32 float16 int32 uint8 int64 string bool int16 complex64 int8 float64 complex128 uint64 resource variant
    uint32 uint16 int4 bfloat16""".split()  # noqa: SIM905 (a table that fits a screen)
)
NUMERIC = frozenset(TYPES) - {"string", "complex64", "complex128", "resource", "variant", "int4", "bfloat16"}  # numpy's

ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
PADDINGS = ("SAME", "VALID")

Fields = dict[str, tuple[int, str, Any]]


def _fields(*names_kinds: str, **defaults: Any) -> Fields:
    """Return ``"padding:int8"`` and so on, in the order of their slots."""
    split = [text.split(":") for text in names_kinds]
    return {name: (slot, kind, defaults.get(name, 0)) for slot, (name, kind) in enumerate(split)}


_WINDOW = ("padding:int8", "stride_w:int32", "stride_h:int32")
_DILATION = ("dilation_w:int32", "dilation_h:int32")
_ACTIVATED = _fields("activation:int8")
_POOL = _fields(*_WINDOW, "filter_w:int32", "filter_h:int32", "activation:int8")
_REDUCE = _fields("keep_dims:bool")
_RESIZE = {"align_corners": (2, "bool", False), "half_pixel_centers": (3, "bool", False)}
_MASKS = ("begin_mask:int32", "end_mask:int32", "ellipsis_mask:int32", "new_axis_mask:int32", "shrink_axis_mask:int32")

# operator -> (number of its options in the union, fields)
OPTIONS: dict[str, tuple[int, Fields]] = {
    "CONV_2D": (1, _fields(*_WINDOW, "activation:int8", *_DILATION, dilation_w=1, dilation_h=1)),
    "DEPTHWISE_CONV_2D": (
        2, _fields(*_WINDOW, "multiplier:int32", "activation:int8", *_DILATION, dilation_w=1, dilation_h=1),
    ),
    "TRANSPOSE_CONV": (49, _fields(*_WINDOW, "activation:int8")),
    "AVERAGE_POOL_2D": (5, _POOL), "MAX_POOL_2D": (5, _POOL), "L2_POOL_2D": (5, _POOL),
    "FULLY_CONNECTED": (8, _fields("activation:int8", "weights_format:int8", "keep_num_dims:bool")),
    "SOFTMAX": (9, _fields("beta:float32")),
    "CONCATENATION": (10, _fields("axis:int32", "activation:int8")),
    "ADD": (11, _ACTIVATED), "SUB": (28, _ACTIVATED), "MUL": (21, _ACTIVATED), "DIV": (29, _ACTIVATED),
    "L2_NORMALIZATION": (12, _ACTIVATED),
    "LOCAL_RESPONSE_NORMALIZATION": (13, _fields("radius:int32", "bias:float32", "alpha:float32", "beta:float32")),
    "RESIZE_BILINEAR": (15, _RESIZE),
    "RESIZE_NEAREST_NEIGHBOR": (74, _fields("align_corners:bool", "half_pixel_centers:bool")),
    "RESHAPE": (17, _fields("new_shape:ints")),
    "SQUEEZE": (30, _fields("squeeze_dims:ints")),
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"), (27, _REDUCE)
    ),
    "STRIDED_SLICE": (32, _fields(*_MASKS, "offset:bool")),
    "SPLIT": (35, _fields("num_splits:int32")), "SPLIT_V": (79, _fields("num_splits:int32")),
    "PACK": (59, _fields("values_count:int32", "axis:int32")),
    "UNPACK": (64, _fields("num:int32", "axis:int32")),
    "GATHER": (23, _fields("axis:int32", "batch_dims:int32")),
    "ARG_MAX": (40, _fields("output_type:int8")), "ARG_MIN": (57, _fields("output_type:int8")),
    "LEAKY_RELU": (75, _fields("alpha:float32")),
    "MIRROR_PAD": (77, _fields("mode:int8")),
    "SPACE_TO_DEPTH": (19, _fields("block_size:int32")), "DEPTH_TO_SPACE": (94, _fields("block_size:int32")),
    "BATCH_MATMUL": (101, _fields("adj_x:bool", "adj_y:bool")),
    "GELU": (116, _fields("approximate:bool")),
    "ONE_HOT": (61, _fields("axis:int32")),
    "CUMSUM": (102, _fields("exclusive:bool", "reverse:bool")),
    "CALL_ONCE": (103, _fields("init_subgraph_index:int32")),
    "VAR_HANDLE": (111, _fields("container:text", "shared_name:text")),
}  # fmt: skip
