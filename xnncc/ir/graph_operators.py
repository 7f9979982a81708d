"""The Relax operators that a graph record may hold, with their attributes and the values that need no bytes.

The place in ``OPERATORS`` is the operator's number in ``.xq`` files: entries are added at the end and never moved, and
a default never changes. ``call`` builds an operator through TVM's own public function of that name, which checks it.
"""

from __future__ import annotations

from typing import Any

Attributes = dict[str, Any]

_WINDOW = {"strides": [1, 1], "padding": [0, 0, 0, 0], "dilation": [1, 1]}
_WINDOW_3D = {"strides": [1, 1, 1], "padding": [0, 0, 0, 0, 0, 0], "dilation": [1, 1, 1]}
_CONV = {"groups": 1, "data_layout": "NCHW", "kernel_layout": "OIHW", "out_layout": "NCHW", "out_dtype": None}
_CONV_3D = {"groups": 1, "data_layout": "NCDHW", "kernel_layout": "OIDHW", "out_layout": "NCDHW", "out_dtype": None}
_POOL = {"ceil_mode": False, "count_include_pad": False, "layout": "NCHW", "out_layout": "NCHW"}
_POOL_3D = {"ceil_mode": False, "count_include_pad": True, "layout": "NCDHW", "out_layout": "NCDHW"}
_RESIZE = {
    "roi": [0.0, 0.0, 0.0, 0.0], "layout": "NCHW", "method": "linear",
    "coordinate_transformation_mode": "half_pixel", "rounding_method": "round", "cubic_alpha": -0.75,
    "cubic_exclude": 0, "extrapolation_value": 0.0, "out_dtype": None,
}  # fmt: skip
_REDUCE: Attributes = {"axis": None, "keepdims": False}
_SCAN: Attributes = {"axis": None, "dtype": None, "exclusive": False}
_NORM = {"epsilon": 1e-5, "center": True, "scale": True}

OPERATORS: tuple[tuple[str, Attributes], ...] = (
    ("nn.conv2d", {**_WINDOW, **_CONV}),
    ("add", {}),
    ("nn.relu", {}),
    ("nn.max_pool2d", {"pool_size": [2, 2], **_WINDOW, **_POOL}),
    ("matmul", {"out_dtype": None}),
    ("reshape", {}),
    ("multiply", {}),
    ("permute_dims", {"axes": None}),
    ("concat", {"axis": 1}),
    ("nn.softmax", {"axis": -1}),
    ("clip", {}),
    ("mean", {"axis": None, "keepdims": False}),
    ("sigmoid", {}),
    ("subtract", {}),
    ("divide", {}),
    ("strided_slice", {"assume_inbound": False}),
    ("astype", {"dtype": "float32"}),
    ("nn.avg_pool2d", {"pool_size": [2, 2], **_WINDOW, **_POOL}),
    ("nn.conv2d_transpose", {**_WINDOW, "output_padding": [0, 0], **_CONV, "kernel_layout": "IOHW"}),
    ("nn.pad", {"pad_width": [0, 0, 0, 0, 0, 0, 0, 0], "pad_value": 0.0, "pad_mode": "constant"}),
    ("tanh", {}),
    ("split", {"indices_or_sections": 2, "axis": 1}),
    ("image.resize2d", _RESIZE),
    ("take", {"axis": None, "mode": "fast"}),
    ("nn.leakyrelu", {"alpha": 0.01}),
    ("nn.layer_norm", {"axes": [-1], **_NORM}),
    ("squeeze", {"axis": None}),
    ("expand_dims", {"axis": [0]}),
    ("broadcast_to", {}),
    ("nn.log_softmax", {"axis": -1}),
    ("where", {}),
    *((name, {}) for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "floor", "isnan",
        "isinf", "isfinite", "log", "negative", "logical_not", "sign", "sin", "sinh", "sqrt", "rsqrt", "tan", "round",
        "trunc", "square", "bitwise_not", "power", "floor_divide", "floor_mod", "mod", "maximum", "minimum", "equal",
        "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor",
        "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "nn.gelu", "nn.silu",
    )),
    *((name, _REDUCE) for name in ("sum", "max", "min", "prod", "argmax", "argmin")),
    ("cumsum", _SCAN),
    ("cumprod", _SCAN),
    ("gather_elements", {"axis": 0}),
    ("scatter_elements", {"axis": 0, "reduction": "update"}),
    ("einsum", {"subscripts": ""}),
    ("tile", {"repeats": [1]}),
    ("repeat", {"repeats": 1, "axis": None}),
    ("flip", {"axis": 0}),
    ("full", {"dtype": None}),
    ("zeros", {"dtype": "float32"}),
    ("ones", {"dtype": "float32"}),
    ("nn.conv3d", {**_WINDOW_3D, **_CONV_3D}),
    ("nn.conv3d_transpose", {**_WINDOW_3D, "output_padding": [0, 0, 0], **_CONV_3D, "kernel_layout": "IODHW"}),
    ("nn.max_pool3d", {"pool_size": [2, 2, 2], **_WINDOW_3D, **_POOL_3D}),
    ("nn.avg_pool3d", {"pool_size": [2, 2, 2], **_WINDOW_3D, **_POOL_3D}),
    ("topk", {"k": 1, "axis": -1, "ret_type": "both", "largest": True, "dtype": "int32"}),
    ("sort", {"axis": -1, "descending": False}),
    ("argsort", {"axis": -1, "descending": False, "dtype": "int32"}),
    ("nn.batch_norm", {"axis": 1, **_NORM, "momentum": 0.1, "training": True}),
)  # fmt: skip

NUMBER_OF = {name: number for number, (name, _) in enumerate(OPERATORS)}


def attributes_of(call: Any, defaults: Attributes) -> Attributes:
    """Return the attributes of a Relax call as plain values."""
    return {name: _plain(getattr(call.attrs, name)) for name in defaults}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, float)):
        return value
    if hasattr(value, "value"):  # IntImm, FloatImm
        return _plain(value.value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str) or type(value).__name__ in ("dtype", "PrimType"):
        return str(value)
    return [_plain(item) for item in value]


def call(number: int, operands: list[Any], attributes: Attributes) -> Any:
    """Return the Relax call of operator ``number``.

    Raises: whatever TVM raises when operands or attributes do not fit.
    """
    from tvm import relax

    function: Any = relax.op
    for part in OPERATORS[number][0].split("."):
        function = getattr(function, part)
    return function(*operands, **attributes)
