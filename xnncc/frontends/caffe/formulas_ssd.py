"""PriorBox and DetectionOutput of SSD, box by box, as the Caffe branch's bbox_util.cpp says."""

from __future__ import annotations

import math

import numpy as np

from .formulas import Array, formula
from .net import Layer
from .params import Params


@formula("PriorBox")
def prior_box(layer: Layer, xs: list[Array]) -> Array:
    p = layer.params("prior_box_param")
    (rows, columns), (height, width) = xs[0].shape[2:], xs[1].shape[2:]
    if p.has("img_size") or p.has("img_h"):
        height, width = p.whole("img_h", p.whole("img_size", 0)), p.whole("img_w", p.whole("img_size", 0))
    step_h, step_w = p.number("step_h", p.number("step", 0.0)), p.number("step_w", p.number("step", 0.0))
    if step_h == 0 or step_w == 0:
        step_h, step_w = height / rows, width / columns
    ratios = [1.0]
    for ratio in p.numbers("aspect_ratio"):
        if not any(abs(ratio - r) < 1e-6 for r in ratios):
            ratios.append(ratio)
            if p.flag("flip", True):
                ratios.append(1.0 / ratio)
    boxes = []
    for row in range(rows):
        for column in range(columns):
            x, y = (column + p.number("offset", 0.5)) * step_w, (row + p.number("offset", 0.5)) * step_h
            for i, small in enumerate(map(int, p.numbers("min_size"))):
                sides = [(float(small), float(small))]
                if p.numbers("max_size"):
                    sides.append((math.sqrt(small * int(p.numbers("max_size")[i])),) * 2)
                for ratio in ratios:
                    if abs(ratio - 1) >= 1e-6:
                        sides.append((small * math.sqrt(ratio), small / math.sqrt(ratio)))
                for w, h in sides:
                    boxes += [(x - w / 2) / width, (y - h / 2) / height, (x + w / 2) / width, (y + h / 2) / height]
    corners = np.array(boxes)
    if p.flag("clip", False):
        corners = np.minimum(np.maximum(corners, 0), 1)
    variances = p.numbers("variance") or [0.1]
    variances = variances * 4 if len(variances) == 1 else variances
    return np.stack([corners, np.tile(variances, corners.size // 4)])[None]


@formula("DetectionOutput")
def detection_output(layer: Layer, xs: list[Array]) -> Array:
    """Rows of Caffe's result, then rows of -1 up to the number there is room for."""
    p = layer.params("detection_output_param")
    classes, shared = p.whole("num_classes", 0), p.flag("share_location", True)
    background, keep = p.whole("background_label_id", 0, -1), p.whole("keep_top_k", -1, -1)
    batch, count = len(xs[0]), xs[2].size // 8
    loc = xs[0].reshape(batch, count, -1, 4)
    conf = xs[1].reshape(batch, count, classes)
    nms = p.message_of("nms_param") or Params("nms_param", None)
    top_k = nms.whole("top_k", -1, -1)
    room = (classes - (0 <= background < classes)) * (count if top_k == -1 else min(top_k, count))
    room = room if keep == -1 else min(keep, room)
    rows = []
    for image in range(batch):
        found = []  # (score, label, box) by label, then by falling score
        for label in range(classes):
            if label != background:
                group = 0 if shared else label
                boxes = _decode(p, loc[image, :, group].astype("float64"), xs[2].astype("float64"))
                found += [(float(s), label, b) for s, b in _suppressed(p, nms, conf[image, :, label], boxes, top_k)]
        if keep != -1 and len(found) > keep:
            best = set(sorted(range(len(found)), key=lambda i: -found[i][0])[:keep])
            found = [entry for i, entry in enumerate(found) if i in best]
        rows += [[image, label, score, *box] for score, label, box in found]
    result = np.full((batch * room, 7), -1.0)
    result[: len(rows)] = np.array(rows).reshape(-1, 7)
    return result[None, None]


def _decode(p: Params, loc: Array, prior: Array) -> Array:
    """Return corners [P, 4]."""
    corners, variances = prior.reshape(2, -1, 4)
    if p.flag("variance_encoded_in_target", False):
        variances = np.ones_like(variances)
    code = p.choice("code_type", "1", {w: w for w in ("1", "2", "3", "CORNER", "CENTER_SIZE", "CORNER_SIZE")})
    width, height = corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]
    if code in ("1", "CORNER"):
        boxes = corners + variances * loc
    elif code in ("3", "CORNER_SIZE"):
        boxes = corners + variances * loc * np.stack([width, height, width, height], 1)
    else:
        x = variances[:, 0] * loc[:, 0] * width + (corners[:, 0] + corners[:, 2]) / 2
        y = variances[:, 1] * loc[:, 1] * height + (corners[:, 1] + corners[:, 3]) / 2
        w, h = np.exp(variances[:, 2] * loc[:, 2]) * width, np.exp(variances[:, 3] * loc[:, 3]) * height
        boxes = np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], 1)
    return boxes.clip(0, 1) if p.flag("clip_bbox", p.flag("clip", False)) else boxes


def _suppressed(p: Params, nms: Params, scores: Array, boxes: Array, top_k: int) -> list[tuple[float, Array]]:
    limit = p.number("confidence_threshold", -math.inf)
    order = [i for i in np.argsort(-scores, kind="stable") if scores[i] > np.float32(limit)]
    order = order if top_k == -1 else order[:top_k]
    threshold = nms.number("nms_threshold", 0.3)
    kept: list[int] = []
    for i in order:
        if all(_overlap(boxes[i], boxes[j]) <= threshold for j in kept):
            kept.append(i)
            if nms.number("eta", 1.0) < 1 and threshold > 0.5:
                threshold *= nms.number("eta", 1.0)
    return [(scores[i], boxes[i]) for i in kept]


def _overlap(a: Array, b: Array) -> float:
    """Return intersection over union; a box with a negative side has no area."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [0.0 if c[2] < c[0] or c[3] < c[1] else (c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return float(width * height / (sum(areas) - width * height))
