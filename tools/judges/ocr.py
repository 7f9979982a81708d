"""Drawn text, so the truth is exact: PP-OCRv4 (detector, recogniser, orientation) and a captcha reader."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from judges.verdict import Feeds, Run, Verdict

_FONTS = Path("/usr/share/fonts/truetype/dejavu")  # Debian's fonts-dejavu-core
LINES = (
    ("DejaVuSans.ttf", "tensor kernel 2026"),
    ("DejaVuSerif.ttf", "Huffman fusion A76"),
    ("DejaVuSansMono.ttf", "sparse budget 3.14"),
    ("DejaVuSans-Bold.ttf", "latency target"),
    ("DejaVuSerif-Bold.ttf", "quantise the model"),
)


def _font(name: str, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """A DejaVu face, or the one that Pillow carries where DejaVu is not installed."""
    path = _FONTS / name
    return ImageFont.truetype(str(path), size) if path.is_file() else ImageFont.load_default(size)


def draw_line(font: str, text: str, size: int = 28) -> Image.Image:
    """Dark text on light grey, with a little room around it."""
    face = _font(font, size)
    picture = Image.new("RGB", (int(face.getbbox(text)[2]) + 16, size + 18), (230, 230, 230))
    ImageDraw.Draw(picture).text((8, 6), text, font=face, fill=(40, 40, 40))
    return picture


def line_feeds(picture: Image.Image, width: int) -> Feeds:
    """x [1, 3, 48, width]: BGR -1..1, the line scaled to 48 rows and padded with zeros at the right."""
    scaled = min(width, -(-48 * picture.width // picture.height))
    pixels = np.asarray(picture.resize((scaled, 48), Image.Resampling.BILINEAR), np.float32)
    x = np.zeros((1, 3, 48, width), np.float32)
    x[0, :, :, :scaled] = pixels[:, :, ::-1].transpose(2, 0, 1) / 127.5 - 1
    return {"x": x}


# Recogniser: x [1, 3, 48, 320] -> probabilities [1, 40, 6625], CTC with class 0 as the blank.


@lru_cache(maxsize=2)
def _characters(model: Path) -> tuple[str, ...]:
    """Classes of the recogniser, from the model's own metadata."""
    import onnx

    metadata = {entry.key: entry.value for entry in onnx.load(model).metadata_props}
    return ("", *metadata["character"].splitlines(), " ")


def _collapse(classes: np.ndarray, blank: int, characters: Sequence[str]) -> str:
    """Greedy CTC: drop repeats, then blanks."""
    kept = [c for i, c in enumerate(classes) if c != blank and (i == 0 or c != classes[i - 1])]
    return "".join(characters[c] for c in kept)


def recogniser_sample(data: Path) -> Feeds:
    """The first line."""
    return line_feeds(draw_line(*LINES[0]), 320)


def judge_recogniser(run: Run, data: Path, quick: bool) -> Verdict:
    """Every drawn line is read without a mistake (spaces aside: the model is loose about them)."""
    characters = _characters(data / "ppocr-v4" / "ch_PP-OCRv4_rec_infer.onnx")
    wrong, read = [], []
    for font, text in LINES[:2] if quick else LINES:
        (probabilities,) = run(line_feeds(draw_line(font, text), 320)).values()
        answer = _collapse(probabilities[0].argmax(axis=-1), 0, characters)
        read.append(answer.strip())
        if answer.replace(" ", "") != text.replace(" ", ""):
            wrong.append(f"'{text}' as '{answer}'")
    said = f"{len(read) - len(wrong)} of {len(read)} lines read: " + ", ".join(f"'{answer}'" for answer in read[:2])
    return Verdict(not wrong, said if not wrong else f"{said}; read {', '.join(wrong)}")


# Orientation: x [1, 3, 48, 192] -> probabilities [1, 2] of upright and upside down.


def orientation_sample(data: Path) -> Feeds:
    """A line blended with itself turned: the network is in doubt, and a wrong number is not hidden behind a sure 1."""
    line = draw_line(*LINES[0])
    return line_feeds(Image.blend(line, line.rotate(180), 0.5), 192)


def judge_orientation(run: Run, data: Path, quick: bool) -> Verdict:
    """Each line upright and upside down is told apart with more than 0.9."""
    sure = []
    for font, text in LINES[:1] if quick else LINES:
        line = draw_line(font, text)
        for turned in (0, 1):
            picture = line.rotate(180) if turned else line
            (probabilities,) = run(line_feeds(picture, 192)).values()
            sure.append(float(probabilities.reshape(-1)[turned]))
    return Verdict(min(sure) > 0.9, f"{len(sure)} lines told apart, the least sure with {min(sure):.3f}")


# Detector: x [1, 3, 320, 320] normalised as ImageNet -> map [1, 1, 320, 320] of text.

_PAGE_PX = 320
_MEAN, _STD = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)


def _page() -> tuple[Image.Image, list[tuple[int, int, int, int]]]:
    """A white page with every line on it, and the lines' boxes."""
    page, boxes = Image.new("RGB", (_PAGE_PX, _PAGE_PX), (255, 255, 255)), []
    for row, (font, text) in enumerate(LINES):
        line, top = draw_line(font, text, 18), 14 + 60 * row
        page.paste(line, (12, top))
        boxes.append((12, top, 12 + line.width, top + line.height))
    return page, boxes


def detector_sample(data: Path) -> Feeds:
    """The page."""
    pixels = np.asarray(_page()[0], np.float32) / 255
    return {"x": np.ascontiguousarray(((pixels - _MEAN) / _STD).transpose(2, 0, 1)[None], np.float32)}


def judge_detector(run: Run, data: Path, quick: bool) -> Verdict:
    """Each line of the page is covered over at least three quarters of its width, and nothing is found elsewhere."""
    _, boxes = _page()
    (probabilities,) = run(detector_sample(data)).values()
    text = probabilities.reshape(_PAGE_PX, _PAGE_PX) > 0.3
    covered = [float(text[top:bottom, left:right].any(axis=0).mean()) for left, top, right, bottom in boxes]
    elsewhere = text.copy()
    for left, top, right, bottom in boxes:
        elsewhere[top:bottom, left:right] = False
    found = sum(share > 0.75 for share in covered)
    said = f"{found} of {len(boxes)} lines found, {int(elsewhere.sum())} pixels of text elsewhere"
    return Verdict(found == len(boxes) and not elsewhere.any(), said)


# Captcha reader: image [1, 3, 60, 160], BGR 0..255 -> logits [20, 1, 37], CTC with class 36 as the blank; by the
# model's own decoder the last step is not read and class 0 never emitted.

_SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BLANK = 36


def _captchas() -> list[tuple[str, Feeds]]:
    """Six texts of four symbols, each symbol turned and coloured, on a speckled ground."""
    rng, captchas = random.Random(3), []
    for _ in range(6):
        text = "".join(rng.choice("23456789ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(4))
        picture = Image.new("RGB", (160, 60), (240, 240, 250))
        for place, symbol in enumerate(text):
            stencil = Image.new("L", (50, 60), 0)
            ImageDraw.Draw(stencil).text((6, 6), symbol, font=_font("DejaVuSans-Bold.ttf", 38), fill=255)
            stencil = stencil.rotate(rng.uniform(-15, 15), Image.Resampling.BICUBIC)
            ink = Image.new("RGB", (50, 60), (rng.randint(0, 120), rng.randint(0, 120), rng.randint(0, 120)))
            picture.paste(ink, (14 + 33 * place, 2), stencil)
        pixels = np.asarray(picture, np.float32)[:, :, ::-1].transpose(2, 0, 1)[None]
        captchas.append((text, {"image": np.ascontiguousarray(pixels)}))
    return captchas


def captcha_sample(data: Path) -> Feeds:
    """The first captcha."""
    return _captchas()[0][1]


def judge_captcha(run: Run, data: Path, quick: bool) -> Verdict:
    """Every captcha is read without a mistake."""
    truth, read = [], []
    for text, feeds in _captchas()[: 2 if quick else None]:
        steps = run(feeds)["logits"].reshape(20, 37)[:19]
        truth.append(text)
        read.append(_collapse(steps[:, 1:].argmax(axis=-1) + 1, _BLANK, _SYMBOLS))
    wrong = [f"'{t}' as '{r}'" for t, r in zip(truth, read, strict=True) if t != r]
    said = f"{len(truth) - len(wrong)} of {len(truth)} captchas read, such as '{truth[0]}'"
    return Verdict(not wrong, said if not wrong else f"{said}; read {', '.join(wrong)}")
