"""PriorBox and DetectionOutput of SSD.

PriorBox depends on shapes alone, so it is computed at import. DetectionOutput decodes boxes with plain operators and
runs ``detection_kernel.py``; its result has a static number of rows, see there.
"""

from __future__ import annotations

import math

import numpy as np
from tvm import relax
from tvm.relax import Expr

from ..refused import Refused
from .detection_kernel import Detection, collect_kernel, suppress_kernel
from .node import Node
from .params import Params
from .refused import Broken
from .registry import converter

R = relax.op
MAX_PRIORS = 2**20
MAX_ROWS = 2**20
SAME_RATIO = 1e-6


@converter("PriorBox")
def prior_box(n: Node) -> np.ndarray:
    """[1, 2, H * W * priors * 4]: corners as parts of the image, then the variances."""
    n.need(2)
    p = n.params("prior_box_param")
    if n.rank(0) != 4 or n.rank(1) != 4:
        raise Broken(f"its inputs {list(n.shape(0))} and {list(n.shape(1))} are not both [N, C, H, W]")
    for field in ("fixed_size", "fixed_ratio", "density", "width", "height"):
        if p.has(field):
            raise Refused(f"{p.name} {field} is not supported", "Use min_size, max_size and aspect_ratio.")
    sizes = _box_sizes(p)
    (height, width), (img_h, img_w) = n.shape(0)[2:], _image(p, n.shape(1)[2:])
    step_h, step_w = _steps(p, (height, width), (img_h, img_w))
    if height * width * len(sizes) > MAX_PRIORS:
        raise Refused(f"{height * width * len(sizes)} boxes are more than {MAX_PRIORS}")
    offset = np.float32(p.number("offset", 0.5))
    x = (np.arange(width, dtype="f4") + offset) * np.float32(step_w)
    y = (np.arange(height, dtype="f4") + offset) * np.float32(step_h)
    centre = np.stack(np.meshgrid(x, y), axis=-1).astype("f8")[:, :, None]  # [H, W, 1, 2]
    half = np.array(sizes, "f4").astype("f8") / 2
    corners = np.concatenate([centre - half, centre + half], axis=-1) / [img_w, img_h, img_w, img_h]
    if p.flag("clip", False):
        corners = corners.clip(0, 1)
    variances = _variances(p)
    second = np.broadcast_to(np.asarray(variances, "f4"), corners.shape)
    return np.stack([corners.astype("f4").reshape(-1), second.reshape(-1)])[None]


def _box_sizes(p: Params) -> list[tuple[float, float]]:
    """Return width and height of each box at a place, in pixels. Caffe cuts min_size and max_size to whole numbers."""
    small, large = p.numbers("min_size"), p.numbers("max_size")
    if not small or min(small) <= 0:
        raise Broken(f"{p.name} min_size must be given and positive")
    if large and (len(large) != len(small) or any(b <= a for a, b in zip(small, large, strict=True))):
        raise Broken(f"{p.name} needs a larger max_size for each min_size")
    ratios, flip = [1.0], p.flag("flip", True)
    for ratio in p.numbers("aspect_ratio"):
        if ratio <= 0:
            raise Broken(f"{p.name} aspect_ratio {ratio:g} is not positive")
        if all(abs(ratio - known) >= SAME_RATIO for known in ratios):
            ratios += [ratio, 1 / ratio] if flip else [ratio]
    boxes = []
    for index, size in enumerate(small):
        whole = float(int(size))
        boxes.append((whole, whole))
        if large:
            side = math.sqrt(whole * int(large[index]))
            boxes.append((side, side))
        wide = [ratio for ratio in ratios if abs(ratio - 1) >= SAME_RATIO]
        boxes += [(whole * math.sqrt(ratio), whole / math.sqrt(ratio)) for ratio in wide]
    return boxes


def _image(p: Params, shape: tuple[int, ...]) -> tuple[int, int]:
    both = p.whole("img_size", 0)
    height, width = p.whole("img_h", both), p.whole("img_w", both)
    return (height, width) if height and width else (shape[0], shape[1])


def _steps(p: Params, layer: tuple[int, ...], image: tuple[int, int]) -> tuple[float, float]:
    both = p.number("step", 0.0)
    height, width = p.number("step_h", both), p.number("step_w", both)
    if height and width:
        return height, width
    return image[0] / layer[0], image[1] / layer[1]


def _variances(p: Params) -> list[float]:
    values = p.numbers("variance") or [0.1]
    if len(values) not in (1, 4) or min(values) <= 0:
        raise Broken(f"{p.name} variance {values} must be 1 or 4 positive numbers")
    return values


@converter("DetectionOutput")
def detection_output(n: Node) -> Expr:
    n.need(3)
    p = n.params("detection_output_param")
    d = _detection(n, p)
    priors = n.values[2]
    if not isinstance(priors, np.ndarray):
        raise Refused("its third input (the priors) is computed at run time", "Take it from PriorBox layers.")
    groups = 1 if d.shared else d.classes
    loc = n.emit(n.reshaped(n.expr(0), (d.batch, d.priors, groups, 4)))
    conf = n.emit(n.reshaped(n.expr(1), (d.batch, d.priors, d.classes)))
    boxes = n.emit(_decoded(n, p, loc, priors.reshape(2, 1, d.priors, 1, 4).astype("float64")))
    kept_shape, rows = (d.batch, d.classes, d.top_k), d.batch * d.keep_top_k
    kept = n.emit(n.build.call_kernel(suppress_kernel(d), [boxes, conf], kept_shape, "int32", "ssd_suppress"))
    return n.build.call_kernel(collect_kernel(d), [boxes, conf, kept], (1, 1, rows, 7), "float32", "ssd_collect")


def _detection(n: Node, p: Params) -> Detection:
    p.ignore("save_output_param", "visualize", "visualize_threshold", "save_file", "objectness_score")
    classes, shared = p.whole("num_classes", 0, 0), p.flag("share_location", True)
    nms = p.message_of("nms_param") or Params("nms_param", None)
    batch, size = n.shape(0)[0], n.shape(2)[-1]
    priors = size // 4
    expected = (batch, priors * 4 * (1 if shared else classes)), (batch, priors * classes), (2, size)
    found = [(n.shape(i)[0] if i < 2 else 2, math.prod(n.shape(i)[1:]) // (1 if i < 2 else 2)) for i in range(3)]
    if classes < 1 or priors < 1 or size % 4 or list(expected) != found or n.shape(2)[:2] != (1, 2):
        shapes = ", ".join(str(list(n.shape(i))) for i in range(3))
        raise Broken(f"locations, scores and priors {shapes} do not fit {classes} classes")
    background = p.whole("background_label_id", 0, -1)
    top_k = nms.whole("top_k", -1, -1)
    of_class = priors if top_k == -1 else min(top_k, priors)
    of_all = max(classes - (0 <= background < classes), 1) * of_class
    keep = p.whole("keep_top_k", -1, -1)
    keep = of_all if keep == -1 else min(keep, of_all)
    if of_class < 1 or keep < 1:
        raise Broken(f"top_k {top_k} and keep_top_k {keep} keep nothing")
    if batch * max(of_all, keep) > MAX_ROWS:
        raise Refused(f"up to {batch * of_all} boxes are more than {MAX_ROWS}", "Set nms_param.top_k.")
    if not p.flag("normalized_bbox", True):
        raise Refused("normalized_bbox is false: boxes in pixels are not supported")
    return Detection(
        batch=batch,
        priors=priors,
        classes=classes,
        shared=shared,
        background=background,
        confidence=p.number("confidence_threshold", float(np.finfo("f4").min)),
        nms_threshold=nms.number("nms_threshold", 0.3),
        eta=nms.number("eta", 1.0),
        top_k=of_class,
        keep_top_k=keep,
    )


def _decoded(n: Node, p: Params, loc: Expr, priors: np.ndarray) -> Expr:
    """Return corners [N, P, L, 4] of the boxes that offsets ``loc`` and ``priors`` [2, 1, P, 1, 4] mean."""
    words = {"1": "CORNER", "2": "CENTER_SIZE", "3": "CORNER_SIZE"}
    code = p.choice("code_type", "CORNER", {**words, **{w: w for w in words.values()}})
    variance = np.ones_like(priors[1]) if p.flag("variance_encoded_in_target", False) else priors[1]
    low, high = priors[0][..., :2], priors[0][..., 2:]
    size = high - low
    if code == "CORNER":
        boxes = _affine(n, loc, variance, priors[0])
    elif code == "CORNER_SIZE":
        boxes = _affine(n, loc, variance * np.concatenate([size, size], -1), priors[0])
    else:
        centre = n.emit(_affine(n, _part(n, loc, 0), variance[..., :2] * size, (low + high) / 2))
        grown = R.exp(R.multiply(_part(n, loc, 2), _constant(n, variance[..., 2:])))
        half = n.emit(R.multiply(grown, _constant(n, size / 2)))
        boxes = R.concat([n.emit(R.subtract(centre, half)), n.emit(R.add(centre, half))], 3)
    return R.clip(boxes, 0.0, 1.0) if p.flag("clip_bbox", p.flag("clip", False)) else boxes


def _part(n: Node, loc: Expr, start: int) -> Expr:
    return n.emit(R.strided_slice(loc, axes=[3], begin=[start], end=[start + 2]))


def _affine(n: Node, x: Expr, factor: np.ndarray, shift: np.ndarray) -> Expr:
    return R.add(R.multiply(x, _constant(n, factor)), _constant(n, shift))


def _constant(n: Node, values: np.ndarray) -> Expr:
    return n.build.constant(np.ascontiguousarray(values.astype("float32")))
