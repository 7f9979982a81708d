#!/usr/bin/env python3
"""The WeChat QR detector (a Caffe SSD) compressed without any data, judged on 200 scenes with one code each.

    tools/squeeze_wechat.py [--output docs/results]     compress, build for this machine, judge
    tools/squeeze_wechat.py --judge-only                 judge the file that is there

The recipe's ``loss`` was chosen on selection seeds (``drawn_codes.SEEDS``); the test scenes are used here only. Exit
code 1 when a promise is broken: at most 125 KB, every code found (overlap above 0.5), mean overlap at most 0.01 less.
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
_LIMIT_BYTES, _LIMIT_OVERLAP = 125_000, 0.01

RECIPE = """
[recipe]
name = "wechat"
[[step]]
method = "quantise_fisher"
loss = 0.001
compensate = "never"
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


def judge(file: Path) -> bool:
    """Print what the file costs, and return whether every promise holds."""
    with tempfile.TemporaryDirectory() as folder:
        before = overlaps(built(MODEL, Path(folder)))
        after = overlaps(built(file, Path(folder)))
    size, lost = file.stat().st_size, float(before.mean() - after.mean())
    print(
        f"{file.name}: {size:,} bytes; found {int((after > 0.5).sum())} of {len(after)} "
        f"(before {int((before > 0.5).sum())}), mean overlap {before.mean():.3f} -> {after.mean():.3f}"
    )
    return size <= _LIMIT_BYTES and bool((after > 0.5).all()) and lost <= _LIMIT_OVERLAP


def main() -> int:
    """Compress and judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--output", type=Path, default=Path("docs/results"), help="folder of the .xq file")
    parser.add_argument("--judge-only", action="store_true", help="judge the file that is there")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "wechat_data_free.xq"
    if not options.judge_only:
        from xnncc.compress.recipe import parse_recipe
        from xnncc.squeeze.compress import compress

        compress(MODEL, file, recipe=parse_recipe(RECIPE, "wechat"))
    return 0 if judge(file) else 1


if __name__ == "__main__":
    sys.exit(main())
