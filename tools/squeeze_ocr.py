#!/usr/bin/env python3
"""PP-OCRv4 compressed with calibration samples only, no training: detector and recogniser, judged on drawn text.

    tools/squeeze_ocr.py [--output docs/results]     compress both, build both for this machine, judge; minutes
    tools/squeeze_ocr.py --judge-only                 judge the files that are there

The recogniser is judged by its character error rate, spaces aside, on at least 2,000 characters of each script; the
detector by the overlap of its map of text with the original's, and by the lines found. Both as the library that
``xnncc build`` makes of the ``.xq`` file, against the original under onnxruntime. ``loss`` of the recipes was chosen on
selection seeds (``drawn_text.SEEDS``); the test seeds are used here only.
Exit code 1 when a promise is broken: together at most 1.75 MB, +0.2 points, overlap 0.90, every line found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import drawn_text
import numpy as np
from engines import artefact_engine, onnxruntime_engine
from judges.verdict import Run

_MODELS = Path(__file__).resolve().parent.parent / "models" / "ppocr-v4"
REC, DET = _MODELS / "ch_PP-OCRv4_rec_infer.onnx", _MODELS / "ch_PP-OCRv4_det_infer.onnx"
REC_SHAPE, DET_SHAPE = (1, 3, *drawn_text.LINE_PX), (1, 3, drawn_text.PAGE_PX, drawn_text.PAGE_PX)
LETTERS = 2000  # of each script
PAGES = 12
_LIMIT_BYTES, _LIMIT_POINTS, _LIMIT_OVERLAP = 1_750_000, 0.2, 0.9

_RECIPE = """
[recipe]
name = "{name}"
[[step]]
method = "quantise_fisher"
loss = {loss}
compensate = "{compensate}"
[[step]]
method = "quantise_small"
loss = {small}
"""
REC_RECIPE = _RECIPE.format(name="ppocr-rec", loss=0.02, compensate="always", small=0.002)
DET_RECIPE = _RECIPE.format(name="ppocr-det", loss=0.05, compensate="measured", small=0.002)


def calibration_lines() -> np.ndarray:
    """Return [64, 3, 48, 480]: noisy lines of all scripts."""
    return drawn_text.mixed_lines(drawn_text.SEEDS["calib"], {"latin": 24, "random": 16, "chinese": 24}).inputs


def calibration_pages() -> np.ndarray:
    """Return [12, 3, 480, 480]: noisy pages."""
    first = drawn_text.SEEDS["calib"]
    return np.stack([drawn_text.page(first + i, noisy=True)[0] for i in range(12)])


def character_errors(run: Run, seed: int, letters: int = LETTERS) -> dict[str, float]:
    """Return the character error rate of a recogniser on each script, and their mean, in points."""
    classes, found = drawn_text.characters(REC), {}
    for script in drawn_text.SCRIPTS:
        lines = drawn_text.lines(script, seed, letters=letters)
        answers = [next(iter(run({"x": x[None]}).values()))[0] for x in lines.inputs]
        found[script] = drawn_text.character_error(lines.texts, [drawn_text.read_line(a, classes) for a in answers])
    return found | {"mean": sum(found.values()) / len(found)}


def text_maps(run: Run, seed: int, count: int = PAGES) -> tuple[list[np.ndarray], int, int]:
    """Return the detector's maps of text (bool), the lines found and all lines, on ``count`` pages."""
    maps, found, lines = [], 0, 0
    for i in range(count):
        page, boxes = drawn_text.page(seed + i)
        maps.append(next(iter(run({"x": page[None]}).values()))[0, 0] > 0.3)
        found += drawn_text.found_boxes(maps[-1], boxes)
        lines += len(boxes)
    return maps, found, lines


def map_overlap(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """Return intersection over union of two lists of maps."""
    pairs = list(zip(a, b, strict=True))
    return sum(int((x & y).sum()) for x, y in pairs) / sum(int((x | y).sum()) for x, y in pairs)


def built(model: Path, folder: Path) -> Run:
    """Return the network that ``xnncc build`` makes of ``model`` for this machine."""
    import xnncc

    return artefact_engine(Path(xnncc.build(model, "host", folder / model.stem).directory))


def squeeze(source: Path, output: Path, recipe: str, samples: np.ndarray, shape: tuple[int, ...]) -> None:
    """Compress ``source`` with ``recipe`` into ``output``."""
    from xnncc.compress.recipe import parse_recipe
    from xnncc.squeeze.compress import compress

    result = compress(
        source, output, recipe=parse_recipe(recipe, output.stem), calib={"x": samples}, shapes={"x": shape}
    )
    print(f"{output.name}: {output.stat().st_size:,} bytes, {result.report['ratio']:.1f}x", flush=True)


def judge(rec: Path, det: Path) -> bool:
    """Print what both files cost, and return whether every promise holds."""
    seed = drawn_text.SEEDS["test"]
    with tempfile.TemporaryDirectory() as folder:
        small_rec, small_det = built(rec, Path(folder)), built(det, Path(folder))
        before = character_errors(onnxruntime_engine(REC), seed)
        after = character_errors(small_rec, seed)
        maps, found, lines = text_maps(small_det, seed)
    original, _, _ = text_maps(onnxruntime_engine(DET), seed)
    size, overlap = rec.stat().st_size + det.stat().st_size, map_overlap(maps, original)
    points = after["mean"] - before["mean"]
    for script in (*drawn_text.SCRIPTS, "mean"):
        print(f"character error {script:<8} {before[script]:.2f} -> {after[script]:.2f}")
    print(f"together {size:,} bytes, {points:+.2f} points; map overlap {overlap:.3f}, {found} of {lines} lines found")
    return size <= _LIMIT_BYTES and points <= _LIMIT_POINTS and overlap >= _LIMIT_OVERLAP and found == lines


def main() -> int:
    """Compress and judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--output", type=Path, default=Path("docs/results"), help="folder of the .xq files")
    parser.add_argument("--judge-only", action="store_true", help="judge the files that are there")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rec, det = options.output / "ppocr_rec_calib.xq", options.output / "ppocr_det_calib.xq"
    if not options.judge_only:
        squeeze(DET, det, DET_RECIPE, calibration_pages(), DET_SHAPE)
        squeeze(REC, rec, REC_RECIPE, calibration_lines(), REC_SHAPE)
    return 0 if judge(rec, det) else 1


if __name__ == "__main__":
    sys.exit(main())
