#!/usr/bin/env python3
"""EfficientNet-Lite0 compressed with the shipped recipes ``safe`` and ``balanced``, judged by its agreement with itself.

    tools/squeeze_efficientnet.py [--output FOLDER] [safe] [balanced]

``balanced`` sees 64 unlabelled crops of photographs; both are judged on 200 crops of other photographs, by how often the
best class is the original's. Exit code 1 when a promise is broken: 4x and 8x at 95 % agreement.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import drawn_codes

_DATA = Path(__file__).resolve().parent.parent / "models"
MODEL = _DATA / "efficientnet-lite0" / "efficientnet-lite0.onnx"
CROPS, CALIBRATION_CROPS = 200, 64
_RATIO = {"safe": 4.0, "balanced": 8.0}
_AGREEMENT = 0.95


def squeeze(recipe: str, folder: Path) -> bool:
    """Compress with a shipped recipe, print what it cost, and return whether the promise holds."""
    from xnncc.squeeze.compress import compress

    calib = {"input": drawn_codes.crops(_DATA, "calib", CALIBRATION_CROPS)} if recipe == "balanced" else None
    test = {"input": drawn_codes.crops(_DATA, "test", CROPS)}
    file = folder / f"efficientnet_lite0_{recipe}.xq"
    result = compress(MODEL, file, recipe=recipe, calib=calib, eval=test, metric="agreement")
    ratio, agreement = float(result.report["ratio"]), 1 - float(result.report["loss"]["test"])
    print(f"{recipe}: {file.stat().st_size:,} bytes, {ratio:.2f}x, agreement {agreement:.1%} on {CROPS} crops", flush=True)
    return ratio >= _RATIO[recipe] and agreement >= _AGREEMENT


def main() -> int:
    """Compress and judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("recipes", nargs="*", default=list(_RATIO), help="safe, balanced")
    parser.add_argument("--output", type=Path, default=Path("."), help="folder of the .xq files")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    return 0 if all([squeeze(recipe, options.output) for recipe in options.recipes]) else 1


if __name__ == "__main__":
    sys.exit(main())
