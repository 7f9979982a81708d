"""One small network for each layer type and attribute: text, weights and input, all from fixed seeds."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np
from caffe_files import input_text, layer_text


@dataclass(frozen=True)
class Case:
    """``inputs`` by name; ``blobs`` by layer; ``opencv`` says why OpenCV 4.14 is no judge of it."""

    text: str
    inputs: dict[str, np.ndarray]
    blobs: dict[str, list[np.ndarray]] = field(default_factory=dict)
    opencv: str = ""


CASES: dict[str, Case] = {}
_PICTURE = (2, 6, 7, 9)


def _random(name: str, shape: tuple[int, ...], low: float = -2.0, high: float = 2.0) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(name.encode())).uniform(low, high, shape).astype("f4")


def case(
    name: str, kind: str, params: str = "", *blobs: tuple[int, ...], shape: tuple[int, ...] = _PICTURE,
    more: dict[str, tuple[int, ...]] | None = None, low: float = -2.0, high: float = 2.0, opencv: str = "",
    tops: tuple[str, ...] = ("out",), positive: bool = False,
) -> None:  # fmt: skip
    """Add a network of one layer; ``blobs`` are the shapes of its weights, ``more`` inputs behind ``data``."""
    shapes = {"data": shape, **(more or {})}
    text = "".join(input_text(n, s) for n, s in shapes.items()) + layer_text(kind, params, tuple(shapes), tops)
    weights = [_random(f"{name}{i}", s, 0.3 if positive else -1.0, 1.0) for i, s in enumerate(blobs)]
    inputs = {n: _random(name + n, s, low, high) for n, s in shapes.items()}
    assert name not in CASES
    CASES[name] = Case(text, inputs, {kind.lower(): weights} if weights else {}, opencv)


def _convolution(name: str, params: str, *blobs: tuple[int, ...], kind: str = "Convolution", **options: object) -> None:
    case(name, kind, f"convolution_param {{ {params} }}", *blobs, **options)  # type: ignore[arg-type]


_NO_LAYER = "it has no such layer"
_convolution("conv_1x1", "num_output: 4 kernel_size: 1", (4, 6, 1, 1), (4,))
_convolution("conv_3x3_pad_stride", "num_output: 4 kernel_size: 3 pad: 1 stride: 2", (4, 6, 3, 3), (4,))
_convolution("conv_no_bias", "num_output: 4 kernel_size: 3 bias_term: false", (4, 6, 3, 3))
_convolution(
    "conv_h_w", "num_output: 4 kernel_h: 3 kernel_w: 2 pad_h: 2 pad_w: 0 stride_h: 1 stride_w: 3", (4, 6, 3, 2), (4,)
)
_convolution(
    "conv_lists", "num_output: 4 kernel_size: 3 kernel_size: 2 pad: 1 pad: 0 stride: 2 stride: 1", (4, 6, 3, 2), (4,)
)
_convolution("conv_dilated", "num_output: 4 kernel_size: 3 pad: 2 dilation: 2", (4, 6, 3, 3), (4,))
_convolution("conv_grouped", "num_output: 4 kernel_size: 3 group: 2", (4, 3, 3, 3), (4,))
_convolution("conv_depthwise", "num_output: 6 kernel_size: 3 group: 6 pad: 1", (6, 1, 3, 3), (6,))
_convolution("conv_legacy_bias", "num_output: 4 kernel_size: 1", (4, 6, 1, 1), (1, 1, 1, 4))
_convolution(
    "conv_3d",
    "num_output: 3 kernel_size: 2 pad: 1 stride: 2",
    (3, 2, 2, 2, 2),
    (3,),
    shape=(1, 2, 4, 5, 6),
    opencv="it cannot infer the shapes",
)
_convolution("conv_1d", "num_output: 3 kernel_size: 3 pad: 1", (3, 4, 3), (3,), shape=(2, 4, 9))
_convolution(
    "depthwise_fork", "num_output: 6 kernel_size: 3 pad: 1 stride: 2", (6, 1, 3, 3), (6,), kind="ConvolutionDepthwise"
)
_convolution(
    "depthwise_fork_2",
    "num_output: 6 kernel_size: 3 bias_term: false",
    (6, 1, 3, 3),
    kind="DepthwiseConvolution",
    opencv=_NO_LAYER,
)
_convolution("deconv", "num_output: 4 kernel_size: 3 stride: 2", (6, 4, 3, 3), (4,), kind="Deconvolution")
_convolution("deconv_pad", "num_output: 4 kernel_size: 4 stride: 2 pad: 1", (6, 4, 4, 4), (4,), kind="Deconvolution")
_convolution(
    "deconv_grouped", "num_output: 4 kernel_size: 3 stride: 2 group: 2 pad: 1", (6, 2, 3, 3), (4,), kind="Deconvolution"
)
_convolution(
    "deconv_depthwise",
    "num_output: 6 kernel_size: 2 stride: 2 group: 6 bias_term: false",
    (6, 1, 2, 2),
    kind="Deconvolution",
)
_convolution(
    "deconv_dilated",
    "num_output: 2 kernel_size: 3 dilation: 2",
    (6, 2, 3, 3),
    (2,),
    kind="Deconvolution",
    opencv="it leaves the dilation out",
)
_convolution(
    "deconv_stride_above_kernel", "num_output: 2 kernel_size: 2 stride: 3", (6, 2, 2, 2), (2,), kind="Deconvolution"
)

_POOLS = {
    "2_2": "kernel_size: 2 stride: 2",
    "3_2": "kernel_size: 3 stride: 2",
    "3_2_pad": "kernel_size: 3 stride: 2 pad: 1",
    "2_2_pad": "kernel_size: 2 stride: 2 pad: 1",
    "3_1_pad": "kernel_size: 3 pad: 1",
    "global": "global_pooling: true",
    "h_w": "kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 1 pad_h: 1 pad_w: 2",
    "5_4": "kernel_size: 5 stride: 4 pad: 2",
    "floor": "kernel_size: 3 stride: 2 pad: 1 ceil_mode: false",
    "larger": "kernel_h: 8 kernel_w: 2 stride: 2",
}
for _method in ("MAX", "AVE"):
    for _label, _params in _POOLS.items():
        _why = "it refuses windows larger than the input" if _label == "larger" else ""
        case(f"pool_{_method}_{_label}", "Pooling", f"pooling_param {{ pool: {_method} {_params} }}", opencv=_why)
case(
    "pool_round_floor",
    "Pooling",
    "pooling_param { kernel_size: 2 stride: 2 round_mode: FLOOR }",
    opencv="it fails on round_mode",
)
case(
    "pool_round_ceil", "Pooling", "pooling_param { kernel_size: 2 stride: 2 round_mode: CEIL }", opencv="it fails on it"
)
for _height in (1, 2, 3):
    for _method in ("MAX", "AVE"):
        case(
            f"spp_{_method}_{_height}",
            "SPP",
            f"spp_param {{ pool: {_method} pyramid_height: {_height} }}",
            shape=(2, 3, 8, 9),
            opencv=_NO_LAYER,
        )

case("relu", "ReLU")
case("relu_slope", "ReLU", "relu_param { negative_slope: 0.1 }")
case("relu6", "ReLU6", high=9.0)
case("prelu", "PReLU", "", (6,))
case("prelu_shared", "PReLU", "prelu_param { channel_shared: true }", (1,))
case("prelu_2d", "PReLU", "", (5,), shape=(2, 5))
case("elu", "ELU")
case("elu_alpha", "ELU", "elu_param { alpha: 0.3 }")
case("sigmoid", "Sigmoid", low=-9.0, high=9.0)
case("tanh", "TanH")
case("absval", "AbsVal")
case("bnll", "BNLL", low=-40.0, high=40.0)
case("mish", "Mish", low=-9.0, high=9.0)
case("swish", "Swish")
case("swish_beta", "Swish", "swish_param { beta: 1.7 }", opencv="it leaves beta out")
case("hsigmoid", "HSigmoid", low=-5.0, high=5.0, opencv=_NO_LAYER)
case("hardswish", "HardSwish", low=-5.0, high=5.0)
case("clip", "Clip", "clip_param { min: -0.5 max: 1.25 }", opencv=_NO_LAYER)
case("threshold", "Threshold", "threshold_param { threshold: 0.4 }", opencv=_NO_LAYER)
case("dropout", "Dropout", "dropout_param { dropout_ratio: 0.3 }")
case("dropout_unscaled", "Dropout", "dropout_param { dropout_ratio: 0.3 scale_train: false }")
case("power_affine", "Power", "power_param { scale: 0.5 shift: -1 }")
case("power_2", "Power", "power_param { power: 2 scale: 0.5 shift: -1 }")
case("power_3", "Power", "power_param { power: 3 }")
case("power_half", "Power", "power_param { power: 0.5 shift: 3 }")
case("power_minus_1", "Power", "power_param { power: -1 shift: 3 }")
case("power_real", "Power", "power_param { power: -0.75 shift: 3 }")
case("power_0", "Power", "power_param { power: 0 }")
case("power_scale_0", "Power", "power_param { power: 2 scale: 0 shift: 1.5 }")
case("exp", "Exp")
case("exp_base", "Exp", "exp_param { base: 2 scale: 0.5 shift: 0.25 }")
case("log", "Log", low=0.1)
case("log_base", "Log", "log_param { base: 10 scale: 2 shift: 5 }", opencv="it differs where a base is given")

case("batchnorm", "BatchNorm", "", (6,), (6,), (1,), positive=True)
case(
    "batchnorm_eps",
    "BatchNorm",
    "batch_norm_param { use_global_stats: true eps: 0.01 }",
    (6,),
    (6,),
    (1,),
    positive=True,
)
case("batchnorm_2d", "BatchNorm", "", (5,), (5,), (1,), shape=(3, 5), positive=True)
case("scale", "Scale", "", (6,))
case("scale_bias", "Scale", "scale_param { bias_term: true }", (6,), (6,))
case("scale_axis_0", "Scale", "scale_param { axis: 0 num_axes: 1 bias_term: true }", (2,), (2,))
case("scale_two_axes", "Scale", "scale_param { axis: 1 num_axes: 2 }", (6, 7))
case("scale_all_axes", "Scale", "scale_param { axis: 1 num_axes: -1 bias_term: true }", (6, 7, 9), (6, 7, 9))
case("scale_scalar", "Scale", "scale_param { num_axes: 0 }", (), opencv="it fails on a scalar")
case("scale_input", "Scale", "scale_param { axis: 0 }", more={"by": (2, 6)})
case(
    "scale_input_bias",
    "Scale",
    "scale_param { axis: 1 bias_term: true }",
    (6,),
    more={"by": (6,)},
    opencv="it leaves the bias out",
)
case("bias", "Bias", "", (6,), opencv=_NO_LAYER)
case("bias_input", "Bias", "bias_param { axis: 2 }", more={"by": (7, 9)}, opencv=_NO_LAYER)
case("lrn", "LRN", "lrn_param { local_size: 5 alpha: 1 beta: 0.75 }")
case("lrn_defaults", "LRN", opencv="its default alpha is another")
case(
    "lrn_attributes",
    "LRN",
    "lrn_param { local_size: 3 alpha: 0.5 beta: 0.6 k: 2 }",
    opencv="it leaves k out",
)
case("lrn_across", "LRN", "lrn_param { local_size: 3 alpha: 0.5 norm_region: ACROSS_CHANNELS }")
case("lrn_wide", "LRN", "lrn_param { local_size: 15 alpha: 0.01 }")
case("lrn_within", "LRN", "lrn_param { local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL }")
case("mvn", "MVN")
case("mvn_across", "MVN", "mvn_param { across_channels: true eps: 1e-5 }")
case("mvn_mean_only", "MVN", "mvn_param { normalize_variance: false }")
case("normalize_across", "Normalize", "norm_param { across_spatial: true channel_shared: true }", (1,))
case("normalize_channels", "Normalize", "norm_param { across_spatial: false channel_shared: false }", (6,))

_THREE = {"b": _PICTURE, "c": _PICTURE}
case("eltwise_sum", "Eltwise", more=_THREE)
case("eltwise_coeff", "Eltwise", "eltwise_param { operation: SUM coeff: 0.5 coeff: -1 coeff: 2 }", more=_THREE)
case("eltwise_prod", "Eltwise", "eltwise_param { operation: PROD }", more=_THREE)
case("eltwise_max", "Eltwise", "eltwise_param { operation: MAX }", more=_THREE)
case("axpy", "Axpy", shape=(2, 6, 1, 1), more={"x": _PICTURE, "y": _PICTURE}, opencv=_NO_LAYER)
case("concat", "Concat", more={"b": (2, 3, 7, 9)})
case("concat_axis", "Concat", "concat_param { axis: -1 }", more={"b": (2, 6, 7, 2)})
case(
    "concat_dim",
    "Concat",
    "concat_param { concat_dim: 2 }",
    more={"b": (2, 6, 1, 9)},
    opencv="it fails on concat_dim",
)
case("slice", "Slice", "slice_param { axis: 1 }", tops=("a", "b", "c"), opencv="it gives only the first top")
case(
    "slice_points",
    "Slice",
    "slice_param { axis: 3 slice_point: 2 slice_point: 3 }",
    tops=("a", "b", "c"),
    opencv="it gives only the first top",
)
case(
    "slice_dim",
    "Slice",
    "slice_param { slice_dim: 1 slice_point: 4 }",
    tops=("a", "b"),
    opencv="it does not know slice_dim",
)
case("split", "Split", tops=("a", "b"), opencv="it gives only the first top")
case("crop", "Crop", "crop_param { offset: 1 }", more={"like": (2, 6, 4, 5)})
case("crop_default", "Crop", more={"like": (2, 6, 4, 5)})
case("crop_axis_offsets", "Crop", "crop_param { axis: 1 offset: 2 offset: 0 offset: 3 }", more={"like": (2, 3, 7, 6)})
case("tile", "Tile", "tile_param { axis: 2 tiles: 3 }", opencv=_NO_LAYER)

case("flatten", "Flatten")
case("flatten_axes", "Flatten", "flatten_param { axis: 2 end_axis: -1 }")
case("flatten_inner", "Flatten", "flatten_param { axis: 1 end_axis: 2 }")
case("reshape", "Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 9 } }")
case("reshape_zeros", "Reshape", "reshape_param { shape { dim: 0 dim: 3 dim: -1 dim: 0 } }")
case("reshape_axis", "Reshape", "reshape_param { shape { dim: 3 dim: 2 } axis: 1 num_axes: 1 }")
case(
    "reshape_behind",
    "Reshape",
    "reshape_param { shape { dim: 1 dim: 1 } axis: -1 num_axes: 0 }",
    shape=(2, 6),
    opencv="it fails on an axis behind the last",
)
case("permute", "Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }")
case("permute_partly", "Permute", "permute_param { order: 2 }", opencv="it needs the whole order")
case("shufflechannel", "ShuffleChannel", "shuffle_channel_param { group: 3 }")

case("innerproduct", "InnerProduct", "inner_product_param { num_output: 5 }", (5, 378), (5,))
case("innerproduct_no_bias", "InnerProduct", "inner_product_param { num_output: 5 bias_term: false }", (5, 378))
case("innerproduct_axis", "InnerProduct", "inner_product_param { num_output: 5 axis: 2 }", (5, 63), (5,))
case("innerproduct_last", "InnerProduct", "inner_product_param { num_output: 4 axis: -1 }", (4, 9), (4,))
case(
    "innerproduct_transpose",
    "InnerProduct",
    "inner_product_param { num_output: 5 transpose: true }",
    (378, 5),
    (5,),
    opencv="it leaves transpose out",
)
case("innerproduct_legacy", "InnerProduct", "inner_product_param { num_output: 5 }", (1, 1, 5, 378), (1, 1, 1, 5))
case(
    "embed",
    "Embed",
    "embed_param { input_dim: 7 num_output: 4 }",
    (7, 4),
    (4,),
    shape=(3, 5),
    low=0.0,
    high=6.9,
    opencv=_NO_LAYER,
)
case(
    "embed_no_bias",
    "Embed",
    "embed_param { input_dim: 7 num_output: 4 bias_term: false }",
    (7, 4),
    shape=(3, 5),
    low=0.0,
    high=6.9,
    opencv=_NO_LAYER,
)

case("softmax", "Softmax")
case("softmax_axis", "Softmax", "softmax_param { axis: 2 }")
case("softmax_last", "Softmax", "softmax_param { axis: -1 }", shape=(3, 11))
for _operation in ("SUM", "ASUM", "SUMSQ", "MEAN"):
    case(
        f"reduction_{_operation}",
        "Reduction",
        f"reduction_param {{ operation: {_operation} axis: 2 coeff: 0.5 }}",
        opencv=_NO_LAYER,
    )
case("reduction_default", "Reduction", opencv=_NO_LAYER)
case("argmax", "ArgMax", shape=(3, 7, 4, 1), opencv=_NO_LAYER)
case("argmax_axis", "ArgMax", "argmax_param { axis: 1 }", opencv=_NO_LAYER)
case("argmax_values", "ArgMax", "argmax_param { axis: -1 out_max_val: true }", opencv=_NO_LAYER)
case("argmax_top_k", "ArgMax", "argmax_param { top_k: 4 out_max_val: true }", shape=(3, 11), opencv=_NO_LAYER)
case("argmax_top_k_axis", "ArgMax", "argmax_param { top_k: 3 axis: 1 }", opencv=_NO_LAYER)

case("interp_size", "Interp", "interp_param { height: 13 width: 5 }")
case("interp_zoom", "Interp", "interp_param { zoom_factor: 3 }")
case("interp_shrink", "Interp", "interp_param { shrink_factor: 2 }", opencv="it cannot infer the shapes")
case(
    "interp_both",
    "Interp",
    "interp_param { shrink_factor: 2 zoom_factor: 3 pad_beg: -1 pad_end: -1 }",
    opencv="it leaves the pads out",
)
case("interp_like", "Interp", more={"like": (2, 1, 10, 20)}, opencv="it takes one input only")
case("interp_to_one", "Interp", "interp_param { height: 1 width: 4 }")
case("upsample", "Upsample", "upsample_param { scale: 2 }", opencv=_NO_LAYER)
case("upsample_h_w", "Upsample", "upsample_param { scale_h: 2 scale_w: 3 }", opencv=_NO_LAYER)

_PRIORS = {"image": (1, 3, 60, 80)}
_VARIANCES = "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2"
_BOXES = {
    "simple": "min_size: 20 variance: 0.2",
    "max": "min_size: 20 max_size: 35 aspect_ratio: 2 variance: 0.2",
    "no_flip": f"min_size: 20 aspect_ratio: 2 aspect_ratio: 3 flip: false {_VARIANCES}",
    "clip": f"min_size: 40 max_size: 60 aspect_ratio: 2 clip: true {_VARIANCES}",
    "step": "min_size: 20 step: 16 offset: 0.25 variance: 0.2",
    "step_h_w": "min_size: 20 step_h: 16 step_w: 8 variance: 0.3",
    "repeated_ratio": "min_size: 20 aspect_ratio: 1 aspect_ratio: 2 aspect_ratio: 2 variance: 0.2",
    "img_size": "min_size: 20 img_size: 100 step: 10 variance: 0.2",
    "img_h_w": "min_size: 20 img_h: 100 img_w: 50 variance: 0.2",
    "default_variance": "min_size: 20 flip: true",
    "two_sizes": f"min_size: 10 min_size: 20 max_size: 15 max_size: 30 aspect_ratio: 2 {_VARIANCES}",
}
_UNKNOWN = {
    "img_size": "it does not know img_size",
    "img_h_w": "it does not know img_h",
    "default_variance": "it needs the variance",
}
for _label, _params in _BOXES.items():
    _params += "" if "clip" in _params else " clip: false"
    case(
        f"priorbox_{_label}",
        "PriorBox",
        f"prior_box_param {{ {_params} }}",
        shape=(1, 4, 4, 5),
        more=_PRIORS,
        opencv=_UNKNOWN.get(_label, ""),
    )
case(
    "priorbox_default_clip",
    "PriorBox",
    "prior_box_param { min_size: 20 variance: 0.2 }",
    shape=(1, 4, 4, 5),
    more=_PRIORS,
    opencv="it clips unless told not to, as an early SSD did",
)
case(
    "priorbox_fraction",
    "PriorBox",
    "prior_box_param { min_size: 20.7 max_size: 35.9 }",
    shape=(1, 4, 4, 5),
    more=_PRIORS,
    opencv="it does not cut sizes to whole numbers, as Caffe does",
)


def _given(params: str, shared: bool) -> str:
    """Return ``params`` with the fields that OpenCV wants to be said."""
    said = params if "background_label_id" in params else f"background_label_id: 0 {params}"
    return said if "share_location" in params else f"share_location: {str(shared).lower()} {said}"


def _detector(
    name: str, params: str, *, classes: int = 3, batch: int = 1, shared: bool = True, opencv: str = ""
) -> None:
    """Add priors, locations and scores of 4 x 5 places with 4 boxes each, then DetectionOutput."""
    count = 4 * 5 * 4
    groups = 1 if shared else classes
    inputs = {
        "feature": _random(name, (batch, 2, 4, 5)), "image": _random(name, (batch, 3, 60, 80)),
        "loc": _random(name + "l", (batch, count * 4 * groups)),
        "conf": _random(name + "c", (batch, count * classes), 0.0, 1.0),
    }  # fmt: skip
    prior = f"prior_box_param {{ min_size: 20 max_size: 40 aspect_ratio: 2 clip: false {_VARIANCES} }}"
    text = "".join(input_text(n, x.shape) for n, x in inputs.items())
    text += layer_text("PriorBox", prior, ("feature", "image"), ("priors",))
    text += layer_text(
        "DetectionOutput",
        f"detection_output_param {{ num_classes: {classes} {_given(params, shared)} }}",
        ("loc", "conf", "priors"),
    )
    CASES[name] = Case(text, inputs, opencv=opencv)


_CENTRE = "code_type: CENTER_SIZE nms_param { nms_threshold: 0.45 top_k: 40 }"
_USUAL = f"{_CENTRE} keep_top_k: 20 confidence_threshold: 0.3"
_detector("detection", _USUAL)
_detector("detection_corner", _USUAL.replace("CENTER_SIZE", "CORNER"))
_detector(
    "detection_in_target", f"{_USUAL} variance_encoded_in_target: true", opencv="it wants priors without variances"
)
_detector("detection_apart", f"share_location: false {_USUAL}", shared=False)
_detector("detection_batch", f"{_CENTRE} keep_top_k: 25 confidence_threshold: 0.6", batch=2)
_detector("detection_all", f"{_CENTRE} confidence_threshold: 0.2", opencv="it needs keep_top_k")
_detector("detection_eta", _USUAL.replace("0.45", "0.9 eta: 0.7"), opencv="it leaves eta out")
_detector("detection_corner_size", _USUAL.replace("CENTER_SIZE", "CORNER_SIZE"), opencv="it has no CORNER_SIZE")
_detector("detection_no_background", f"background_label_id: -1 {_USUAL}", opencv="it takes -1 for a class")
_detector("detection_none", f"{_CENTRE} keep_top_k: 20 confidence_threshold: 2")
_detector("detection_clip", f"clip: true {_USUAL}")
_detector("detection_clip_bbox", f"clip_bbox: true {_USUAL}", opencv="it calls it clip")
_detector("detection_normalised", f"normalized_bbox: true {_USUAL}")
