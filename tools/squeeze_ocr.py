#!/usr/bin/env python3
"""PP-OCRv4 compressed, detector and recogniser, judged on drawn text.

    tools/squeeze_ocr.py [--output docs/results]     with calibration samples only; minutes
    tools/squeeze_ocr.py --train                      trained on unlabelled lines and pages; an hour on one core
    tools/squeeze_ocr.py [--train] --judge-only       judge the files that are there
    tools/squeeze_ocr.py [--train] --select           judge them on selection data, which recipes are chosen on

The recogniser is judged by its character error rate, spaces aside, on 6,000 characters of each script; the
detector by the overlap of its map of text with the original's, and by the lines found. Both as the library that
``xnncc build`` makes of the ``.xq`` file, against the original under onnxruntime. The test seeds of ``drawn_text`` are
used for the last judgement only. Stopped and started again, training goes on where it was.
Exit code 1 when a promise is broken: calibrated together at most 1.75 MB and +0.2 points, trained 1.0 MB and +0.5;
overlap 0.90, every line found.
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
LETTERS = 6000  # of each script
PAGES = 24
_CALIBRATED, _TRAINED = (1_750_000, 0.2), (1_000_000, 0.5)  # bytes, points
_LIMIT_OVERLAP = 0.9
WORK = Path(__file__).resolve().parent.parent / "build" / "ocr"  # checkpoints

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
REC_RECIPE = _RECIPE.format(name="ppocr-rec", loss=0.015, compensate="always", small=0.002)
DET_RECIPE = _RECIPE.format(name="ppocr-det", loss=0.04, compensate="measured", small=0.002)


def calibration_lines(latin: int, random: int, chinese: int) -> np.ndarray:
    """Return [lines, 3, 48, 480]: noisy lines, as many of each script."""
    counts = {"latin": latin, "random": random, "chinese": chinese}
    return drawn_text.mixed_lines(drawn_text.SEEDS["calib"], counts).inputs


def calibration_pages(count: int) -> np.ndarray:
    """Return [count, 3, 480, 480]: noisy pages."""
    first = drawn_text.SEEDS["calib"]
    return np.stack([drawn_text.page(first + i, noisy=True)[0] for i in range(count)])


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


def squeeze(
    source: Path, output: Path, recipe: str, calib: np.ndarray, shape: tuple[int, ...], judge: np.ndarray
) -> None:
    """Compress ``source`` with ``recipe`` into ``output``; the report's loss is that on ``judge``."""
    from xnncc.compress.recipe import parse_recipe
    from xnncc.squeeze.compress import compress

    result = compress(
        source,
        output,
        recipe=parse_recipe(recipe, output.stem),
        calib={"x": calib},
        eval={"x": judge},
        shapes={"x": shape},
    )
    print(f"{output.name}: {output.stat().st_size:,} bytes, {result.report['ratio']:.1f}x", flush=True)


def judge(rec: Path, det: Path, part: str, limits: tuple[int, float]) -> bool:
    """Print what both files cost on the part of ``drawn_text.SEEDS``, and return whether every promise holds."""
    seed = drawn_text.SEEDS[part]
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
    return size <= limits[0] and points <= limits[1] and overlap >= _LIMIT_OVERLAP and found == lines


def main() -> int:
    """Compress and judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--output", type=Path, default=Path("docs/results"), help="folder of the .xq files")
    parser.add_argument("--train", action="store_true", help="train on unlabelled lines and pages")
    parser.add_argument("--judge-only", action="store_true", help="judge the files that are there")
    parser.add_argument("--select", action="store_true", help="judge on selection data")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    kind = "trained" if options.train else "calib"
    rec, det = (options.output / f"ppocr_{part}_{kind}.xq" for part in ("rec", "det"))
    if not options.judge_only and options.train:
        from ocr_training import trained_det, trained_rec

        det.write_bytes(trained_det(DET, calibration_pages(12), DET_SHAPE, WORK / "det"))
        rec.write_bytes(trained_rec(REC, calibration_lines(24, 16, 24), REC_SHAPE, WORK / "rec"))
    elif not options.judge_only:
        select = drawn_text.SEEDS["select"]
        page, lines = drawn_text.page(select)[0][None], drawn_text.lines("chinese", select, count=4)
        squeeze(DET, det, DET_RECIPE, calibration_pages(24), DET_SHAPE, page)
        squeeze(REC, rec, REC_RECIPE, calibration_lines(24, 16, 24), REC_SHAPE, lines.inputs)
    limits = _TRAINED if options.train else _CALIBRATED
    return 0 if judge(rec, det, "select" if options.select else "test", limits) else 1


if __name__ == "__main__":
    sys.exit(main())
