#!/usr/bin/env python3
"""The WeChat QR detector (a Caffe SSD) compressed, judged on 200 scenes with one code each.

    tools/squeeze_wechat.py [--output docs/results]     without any data: compress, build for this machine, judge
    tools/squeeze_wechat.py --train                      trained on unlabelled scenes, twenty minutes on one core
    tools/squeeze_wechat.py [--train] --judge-only       judge the file that is there
    tools/squeeze_wechat.py [--train] --select           judge it on selection scenes, which recipes are chosen on

The test scenes are used for the last judgement only. Exit code 1 when a promise is broken: at most 125 KB without data
and 60 KB trained, every code found (overlap above 0.5), mean overlap at most 0.01 less.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import drawn_codes
import numpy as np
from engines import artefact_engine
from judges.verdict import Run

_DATA = Path(__file__).resolve().parent.parent / "models"
MODEL = _DATA / "wechat-qr-caffe" / "detect.prototxt"
SCENES = 200
_LIMIT_BYTES, _LIMIT_BYTES_TRAINED, _LIMIT_OVERLAP = 125_000, 60_000, 0.01
TRAINING_SCENES = 640

RECIPE = """
[recipe]
name = "wechat"
[[step]]
method = "quantise_fisher"
loss = 0.001
compensate = "never"
"""
TRAINED_RECIPE = """
[recipe]
name = "wechat-trained"
needs = "train"
[[step]]
method = "quantise_fisher"
loss = 0.02
cap = 1.0
compensate = "always"
[[step]]
method = "quantise_entropy"
bits = 1.78
steps = 2400
batch = 8
lr = 1e-3
[[step]]
method = "tune_scales"
steps = 300
batch = 8
"""


def overlaps(run: Run, part: str = "test", count: int = SCENES) -> np.ndarray:
    """Return the overlap of the surest box with the truth on each scene."""
    found = []
    for scene in drawn_codes.scenes(_DATA, part, count):
        (detections,) = run({"data": scene.input[None]}).values()
        found.append(drawn_codes.overlap(drawn_codes.best_box(detections), scene.box))
    return np.array(found)


def built(model: Path, folder: Path) -> Run:
    """Return the network that ``xnncc build`` makes of ``model`` for this machine."""
    import xnncc

    return artefact_engine(Path(xnncc.build(model, "host", folder / model.stem).directory))


def squeeze(file: Path, is_trained: bool) -> None:
    """Compress the detector into ``file``."""
    from xnncc.compress.recipe import parse_recipe
    from xnncc.squeeze.compress import compress

    if not is_trained:
        compress(MODEL, file, recipe=parse_recipe(RECIPE, "wechat"))
        return
    inputs = np.stack([scene.input for scene in drawn_codes.scenes(_DATA, "train", TRAINING_SCENES)])
    compress(MODEL, file, recipe=parse_recipe(TRAINED_RECIPE, "wechat"), train={"data": inputs}, progress=_say)


def _say(text: str, done: int, total: int) -> None:
    if done % 100 == 0:
        print(f"  {text} {done}/{total}", file=sys.stderr, flush=True)


def judge(file: Path, part: str, limit_bytes: int) -> bool:
    """Print what the file costs on scenes of ``part``, and return whether every promise holds."""
    with tempfile.TemporaryDirectory() as folder:
        before = overlaps(built(MODEL, Path(folder)), part)
        after = overlaps(built(file, Path(folder)), part)
    size, lost = file.stat().st_size, float(before.mean() - after.mean())
    print(
        f"{file.name}: {size:,} bytes; found {int((after > 0.5).sum())} of {len(after)} "
        f"(before {int((before > 0.5).sum())}), mean overlap {before.mean():.3f} -> {after.mean():.3f}"
    )
    return size <= limit_bytes and bool((after > 0.5).all()) and lost <= _LIMIT_OVERLAP


def main() -> int:
    """Compress and judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--output", type=Path, default=Path("docs/results"), help="folder of the .xq file")
    parser.add_argument("--train", action="store_true", help="train on unlabelled scenes")
    parser.add_argument("--judge-only", action="store_true", help="judge the file that is there")
    parser.add_argument("--select", action="store_true", help="judge on selection scenes")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / ("wechat_trained.xq" if options.train else "wechat_data_free.xq")
    if not options.judge_only:
        squeeze(file, options.train)
    limit = _LIMIT_BYTES_TRAINED if options.train else _LIMIT_BYTES
    return 0 if judge(file, "select" if options.select else "test", limit) else 1


if __name__ == "__main__":
    sys.exit(main())
