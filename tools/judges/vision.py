"""Pictures: a classifier, a face detector, style transfer, line segments."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from judges.verdict import Feeds, Run, Verdict, sigmoid

# ImageNet classes that are right for the three photos (several breeds of cat and names for a cup are acceptable).
PHOTO_CLASSES = {"chelsea": (281, 282, 285), "coffee": (504, 967, 968)}


def photo(data: Path, name: str, size: int) -> Image.Image:
    """The middle square of a photo of the catalogue, ``size`` pixels wide."""
    return square(Image.open(data / "photos" / f"{name}.png"), size)


def square(picture: Image.Image, size: int) -> Image.Image:
    """RGB, the largest middle square, resized to ``size`` pixels."""
    picture = picture.convert("RGB")
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    return picture.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.LANCZOS)


def planes(picture: Image.Image) -> np.ndarray:
    """[1, 3, H, W] float32, values 0..255."""
    return np.ascontiguousarray(np.asarray(picture, np.float32).transpose(2, 0, 1)[None])


# EfficientNet-Lite0: input [1, 3, 224, 224], (RGB - 127) / 128; logits [1, 1000].


def classifier_feeds(picture: Image.Image) -> Feeds:
    """What EfficientNet-Lite0 wants to see of a picture."""
    return {"input": (planes(square(picture, 224)) - 127) / 128}


def class_names(data: Path) -> list[str]:
    """Names of the 1000 ImageNet classes; plain numbers when the list was not fetched."""
    path = data / "imagenet-names" / "imagenet1k_clean_names.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else [f"class {i}" for i in range(1000)]


def top_class(logits: np.ndarray) -> tuple[int, float]:
    """Best class and its softmax probability."""
    shifted = np.asarray(logits, np.float64).reshape(-1) - np.max(logits)
    probabilities = np.exp(shifted) / np.exp(shifted).sum()
    return int(probabilities.argmax()), float(probabilities.max())


def classifier_sample(data: Path) -> Feeds:
    """The cat."""
    return classifier_feeds(photo(data, "chelsea", 224))


def judge_classifier(run: Run, data: Path, quick: bool) -> Verdict:
    """A cat, a cup of coffee, and (not ``quick``) 20 labelled ImageNet pictures, of which 18 are named rightly."""
    names, answers, right = class_names(data), [], True
    for name, classes in PHOTO_CLASSES.items():
        best, sure = top_class(run(classifier_feeds(photo(data, name, 224)))["logits"])
        answers.append(f"{name}: {names[best]} {sure:.2f}")
        right = right and best in classes
    if not quick:
        pictures = sorted((data / "imagenet-pictures").glob("imagenet_*.jpg"))
        hits = 0
        for path in pictures:
            best, _ = top_class(run(classifier_feeds(Image.open(path)))["logits"])
            hits += best == int(path.stem.rsplit("_", 1)[1])
        answers.append(f"{hits} of {len(pictures)} labelled pictures")
        right = right and len(pictures) == 20 and hits >= 18
    return Verdict(right, "; ".join(answers))


# BlazeFace, front camera: input:0 [1, 128, 128, 3], RGB / 127.5 - 1; scores [1, 512, 1] and [1, 384, 1] (before the
# sigmoid), boxes [1, 512, 16] and [1, 384, 16] (dx, dy, w, h, 6 points, in pixels from the anchor's middle).

_FACE_CENTRE_PX, _FACE_SIDE_PX = (226, 129), 95  # of the astronaut, in the 512-pixel photo


def face_feeds(picture: Image.Image) -> Feeds:
    """What BlazeFace wants to see of a picture."""
    small = picture.convert("RGB").resize((128, 128), Image.Resampling.BILINEAR)
    return {"input:0": np.asarray(small, np.float32)[None] / np.float32(127.5) - 1}


def _anchors() -> np.ndarray:
    """[896, 2] middles of the anchors, 0..1: 2 in each cell of a 16 x 16 grid, then 6 in each of 8 x 8."""
    middles = []
    for cells, repeats in ((16, 2), (8, 6)):
        axis = (np.arange(cells) + 0.5) / cells
        grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
        middles.append(np.repeat(grid, repeats, axis=0))
    return np.concatenate(middles)


def best_face(outputs: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """Score 0..1 and box (middle x, middle y, width, height; 0..1) of the surest face."""
    scores = np.concatenate([outputs["Identity:0"].reshape(-1), outputs["Identity_1:0"].reshape(-1)])
    boxes = np.concatenate([outputs["Identity_2:0"].reshape(-1, 16), outputs["Identity_3:0"].reshape(-1, 16)])
    best = int(scores.argmax())
    box = boxes[best, :4] / 128
    return float(sigmoid(scores[best])), np.concatenate([_anchors()[best] + box[:2], box[2:]])


def face_sample(data: Path) -> Feeds:
    """The astronaut."""
    return face_feeds(photo(data, "astronaut", 512))


def judge_face(run: Run, data: Path, quick: bool) -> Verdict:
    """The astronaut's face within 5 pixels of 512 and surer than 0.85; no face (below 0.5) in a cup and a cat."""
    score, box = best_face(run(face_sample(data)))
    x, y, width = box[0] * 512, box[1] * 512, box[2] * 512
    near = max(abs(x - _FACE_CENTRE_PX[0]), abs(y - _FACE_CENTRE_PX[1]), abs(width - _FACE_SIDE_PX)) < 5
    right = score > 0.85 and near
    said = f"astronaut's face at ({x:.0f}, {y:.0f}), {width:.0f} px wide, score {score:.3f}"
    for name in ("coffee",) if quick else ("coffee", "chelsea"):
        other, _ = best_face(run(face_feeds(photo(data, name, 512))))
        right = right and other < 0.5
        said += f"; {name} {other:.2f}"
    return Verdict(right, said)


# multistyle26: image [1, 3, H, W] 0..1, style_weights [26]; stylized [1, 3, H, W] 0..1.

_STYLE_SIZE = 256


def style_feeds(picture: Image.Image, style: int) -> Feeds:
    """A picture, to be painted in one of the 26 styles."""
    weights = np.zeros(26, np.float32)
    weights[style] = 1
    return {"image": planes(square(picture, _STYLE_SIZE)) / np.float32(255), "style_weights": weights}


def style_sample(data: Path) -> Feeds:
    """The cat in style 0."""
    return style_feeds(photo(data, "chelsea", _STYLE_SIZE), 0)


def _likeness(painted: np.ndarray, original: np.ndarray) -> float:
    """Correlation of the brightness of two pictures [1, 3, H, W]."""
    return float(np.corrcoef(painted.mean(axis=1).reshape(-1), original.mean(axis=1).reshape(-1))[0, 1])


def judge_style(run: Run, data: Path, quick: bool) -> Verdict:
    """Each painting still shows the cat (correlation above 0.5), in other colours, and no two styles look alike."""
    cat, paintings, likenesses = photo(data, "chelsea", _STYLE_SIZE), [], []
    for style in (0, 7) if quick else (0, 7, 13, 25):
        feeds = style_feeds(cat, style)
        painted = run(feeds)["stylized"]
        paintings.append(painted)
        likenesses.append(_likeness(painted, feeds["image"]))
        if painted.min() < 0 or painted.max() > 1 or np.abs(painted - feeds["image"]).mean() < 0.1:
            return Verdict(False, f"style {style}: values leave 0..1, or the picture is hardly changed")
    apart = min(float(np.abs(a - b).mean()) for i, a in enumerate(paintings) for b in paintings[:i])
    said = (
        f"{len(paintings)} styles, likeness {min(likenesses):.2f} to {max(likenesses):.2f}, mean distance {apart:.2f}"
    )
    return Verdict(min(likenesses) > 0.5 and apart > 0.1, said)


# M-LSD tiny: input_image_with_alpha:0 [1, 320, 320, 4], RGB 0..255 and 1; scores [1, 160, 160, 1] of a segment's
# middle, offsets [1, 160, 160, 4] of its two ends from there, both in steps of 2 pixels.

_RECTANGLE = (60, 80, 260, 240)  # left, top, right, bottom in pixels


def line_feeds(picture: Image.Image) -> Feeds:
    """What M-LSD wants to see of a picture."""
    rgb = np.asarray(picture.convert("RGB").resize((320, 320)), np.float32)
    return {"input_image_with_alpha:0": np.concatenate([rgb, np.ones((320, 320, 1), np.float32)], axis=-1)[None]}


def _drawn_rectangle() -> Image.Image:
    """A light rectangle on grey."""
    picture = Image.new("RGB", (320, 320), (90, 90, 90))
    ImageDraw.Draw(picture).rectangle(_RECTANGLE, fill=(220, 220, 210))
    return picture


def line_sample(data: Path) -> Feeds:
    """A rectangle."""
    return line_feeds(_drawn_rectangle())


def segments(outputs: dict[str, np.ndarray], threshold: float = 0.5) -> np.ndarray:
    """[n, 4] ends x0, y0, x1, y1 in pixels of the segments surer than ``threshold``."""
    scores = outputs["scores"].reshape(160, 160)
    rows, columns = np.nonzero(scores > threshold)
    middles = np.stack([columns, rows, columns, rows], axis=-1)
    return 2 * (middles + outputs["offsets"].reshape(160, 160, 4)[rows, columns])


def judge_lines(run: Run, data: Path, quick: bool) -> Verdict:
    """The four sides of a rectangle within 4 pixels and nothing else."""
    found = segments(run(line_sample(data)))
    left, top, right, bottom = _RECTANGLE
    sides = [
        (left, top, right, top),
        (left, bottom, right, bottom),
        (left, top, left, bottom),
        (right, top, right, bottom),
    ]
    errors = []
    for side in sides:
        either_way = [np.abs(found - side).max(axis=1), np.abs(found[:, [2, 3, 0, 1]] - side).max(axis=1)]
        errors.append(float(np.min(either_way)) if len(found) else np.inf)
    said = f"{len(found)} segments, the rectangle's sides within {max(errors):.1f} px"
    return Verdict(len(found) == 4 and max(errors) < 4, said)
