"""Lines and pages of drawn text with their truth, for compressing and judging PP-OCRv4: Latin, random and Chinese.

Everything follows from a seed; training, selection and test data are told apart by seeds (``SEEDS``) and so share no
line. Chinese needs WenQuanYi Micro Hei (Debian's fonts-wqy-microhei), the rest DejaVu (fonts-dejavu-core).
"""

from __future__ import annotations

import random
import string
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

_FONTS = Path("/usr/share/fonts/truetype")
_DEJAVU = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSansMono", "DejaVuSansMono-Bold")
_CHINESE = _FONTS / "wqy" / "wqy-microhei.ttc"
SCRIPTS = ("latin", "random", "chinese")
SEEDS = {"calib": 7, "train": 100_000, "select": 2_000, "test": 31_000}
LINE_PX = (48, 480)  # what the recogniser sees: height, width
PAGE_PX = 480

_WORDS = (
    "model", "tensor", "phone", "kernel", "sparse", "quantise", "Huffman", "fusion", "2026", "A76", "Mali", "G78",
    "3.14", "pruning", "latency", "budget", "cache", "loop", "target", "build", "Packet", "River", "4096", "window",
    "bridge", "Sunday", "19.95", "order", "total", "Invoice", "No.7", "engine", "(beta)", "speed", "50%", "light",
    "Zurich", "quick", "jumps", "hazy", "vector", "QUEUE", "lazy", "dog", "mixed", "&Co",
)  # fmt: skip
_SYMBOLS = string.ascii_letters + string.digits + ".,:-/()%&+"
_MEAN, _STD = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)


@lru_cache(maxsize=1)
def characters(model: Path) -> tuple[str, ...]:
    """Classes of the recogniser from its own metadata; class 0 is the blank of CTC."""
    import onnx

    metadata = {entry.key: entry.value for entry in onnx.load(model).metadata_props}
    return ("", *metadata["character"].splitlines(), " ")


@lru_cache(maxsize=1)
def hanzi() -> str:
    """The 3,755 most common characters: GB 2312 level 1, rows 16 to 55."""
    codes = (bytes([row + 160, cell + 160]) for row in range(16, 56) for cell in range(1, 95))
    return "".join(code.decode("gb2312", "ignore") for code in codes)


@lru_cache(maxsize=64)
def _font(path: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, size)


def draw_line(rng: random.Random, script: str, size: int = 28, noisy: bool = False) -> tuple[str, Image.Image]:
    """Return a text of ``script`` and its picture: dark on light, ``noisy`` with blur, noise and sometimes inverted."""
    if script == "latin":
        text = " ".join(rng.sample(_WORDS, rng.randint(2, 3)))
    elif script == "random":
        text = "".join(rng.choice(_SYMBOLS) for _ in range(rng.randint(8, 18)))
    else:
        text = "".join(rng.choice(hanzi()) for _ in range(rng.randint(6, 14)))
    face = str(_CHINESE if script == "chinese" else _FONTS / "dejavu" / f"{rng.choice(_DEJAVU)}.ttf")
    font = _font(face, size)
    picture = Image.new("RGB", (int(font.getbbox(text)[2]) + 16, size + 18), (rng.randint(200, 255),) * 3)
    ImageDraw.Draw(picture).text((8, 6), text, font=font, fill=(rng.randint(0, 90),) * 3)
    return text, _worn(picture, rng) if noisy else picture


def _worn(picture: Image.Image, rng: random.Random) -> Image.Image:
    noise = np.random.default_rng(rng.randint(0, 1 << 30))
    pixels = np.asarray(picture.filter(ImageFilter.GaussianBlur(0.3 + 0.8 * rng.random())), np.float32)
    pixels = np.clip(pixels + noise.normal(size=pixels.shape) * 12 * rng.random(), 0, 255)
    return Image.fromarray((255 - pixels if rng.random() < 0.3 else pixels).astype(np.uint8))


def scaled_width(picture: Image.Image) -> int:
    """Return how many columns a line takes when it is scaled to 48 rows."""
    return -(-LINE_PX[0] * picture.width // picture.height)


def line_input(picture: Image.Image, width: int = LINE_PX[1]) -> np.ndarray:
    """Return [3, 48, width] float32: BGR -1..1, the line scaled to 48 rows and padded with zeros at the right."""
    height, scaled = LINE_PX[0], min(width, scaled_width(picture))
    pixels = np.asarray(picture.resize((scaled, height), Image.Resampling.BILINEAR), np.float32)
    x = np.zeros((3, height, width), np.float32)
    x[:, :, :scaled] = pixels[:, :, ::-1].transpose(2, 0, 1) / 127.5 - 1
    return x


@dataclass(frozen=True)
class Lines:
    """``texts`` and their pictures as inputs [M, 3, 48, width]."""

    texts: tuple[str, ...]
    inputs: np.ndarray


def lines(
    script: str, seed: int, count: int = 0, letters: int = 0, noisy: bool = False, width: int = LINE_PX[1]
) -> Lines:
    """Return ``count`` lines, or as many as it takes for ``letters`` characters (spaces aside); none is too wide."""
    rng, texts, inputs = random.Random(f"{script} {seed}"), [], []
    while len(texts) < count or sum(len(text.replace(" ", "")) for text in texts) < letters:
        text, picture = draw_line(rng, script, noisy=noisy)
        if scaled_width(picture) <= width:
            texts.append(text)
            inputs.append(line_input(picture, width))
    return Lines(tuple(texts), np.stack(inputs))


def mixed_lines(seed: int, counts: dict[str, int], noisy: bool = True, width: int = LINE_PX[1]) -> Lines:
    """Return lines of several scripts, shuffled."""
    parts = [lines(script, seed, count, noisy=noisy, width=width) for script, count in counts.items()]
    order = np.random.default_rng(seed).permutation(sum(len(part.texts) for part in parts))
    texts = [text for part in parts for text in part.texts]
    return Lines(tuple(texts[i] for i in order), np.concatenate([part.inputs for part in parts])[order])


def read_line(probabilities: np.ndarray, classes: tuple[str, ...]) -> str:
    """Return the text of [steps, classes]: the best class of each step, repeats and blanks dropped."""
    best = probabilities.argmax(axis=-1)
    return "".join(classes[c] for i, c in enumerate(best) if c and (i == 0 or c != best[i - 1]))


def edit_distance(a: str, b: str) -> int:
    """Return how many insertions, deletions and replacements make ``a`` into ``b`` (Levenshtein)."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def character_error(truth: tuple[str, ...], read: list[str]) -> float:
    """Return edits for each 100 characters, spaces aside."""
    pairs = [(a.replace(" ", ""), b.replace(" ", "")) for a, b in zip(truth, read, strict=True)]
    return 100 * sum(edit_distance(b, a) for a, b in pairs) / sum(len(a) for a, _ in pairs)


Box = tuple[int, int, int, int]  # left, top, right, bottom in pixels


def page(seed: int, size: int = PAGE_PX, noisy: bool = False) -> tuple[np.ndarray, list[Box]]:
    """Return a page of lines of all scripts as the detector's input [3, size, size], and the lines' boxes."""
    rng = random.Random(f"page {seed}")
    picture, boxes = Image.new("RGB", (size, size), (rng.randint(200, 255),) * 3), []
    top = rng.randint(8, 30)
    while top < size - 50:
        _, line = draw_line(rng, rng.choice(SCRIPTS), rng.choice((16, 20, 24, 28)), noisy)
        left = rng.randint(5, 60)
        line = line.crop((0, 0, min(line.width, size - left - 5), line.height))
        picture.paste(line, (left, top))
        boxes.append((left, top, left + line.width, top + line.height))
        top += line.height + rng.randint(8, 40)
    pixels = np.asarray(picture, np.float32)[:, :, ::-1] / 255
    return np.ascontiguousarray(((pixels - _MEAN) / _STD).transpose(2, 0, 1), np.float32), boxes


def found_boxes(text: np.ndarray, boxes: list[Box]) -> int:
    """Return how many of ``boxes`` the map [H, W] of text (bool) covers over three quarters of their inked width."""
    inked = [(slice(top, bottom), slice(left + 8, right - 8)) for left, top, right, bottom in boxes]
    return sum(float(text[place].any(axis=0).mean()) > 0.75 for place in inked)
