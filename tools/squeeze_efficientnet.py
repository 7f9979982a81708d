"""Compress EfficientNet-Lite0 and judge it by agreement with itself on crops: row 4 of the squeeze's table.

    python tools/fetch_models.py efficientnet-lite0 imagenet-pictures photos
    python tools/squeeze_efficientnet.py safe                     # data-free, 200 crops judge
    python tools/squeeze_efficientnet.py balanced --target-kib 2260   # an eighth; 64 further crops calibrate

With a contract 200 more crops are measured on while its search runs; the 200 that judge are looked at once, at the end.
Crops are unlabelled: random squares of 55 to 100 % of the shorter side, half of them mirrored, of 23 pictures.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from xnncc.cli.compress import parse_loss
from xnncc.squeeze.compress import compress

JUDGED, CALIBRATED, SEED = 200, 64, 7
ROOT = Path(__file__).parent.parent
MODELS, RESULTS = ROOT / "models", ROOT / "docs" / "results" / "efficientnet-lite0.json"


def crops(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return ``count`` crops, [count, 3, 224, 224] float32, (RGB - 127) / 128."""
    files = sorted([*(MODELS / "imagenet-pictures").glob("*.jpg"), *(MODELS / "photos").glob("*.png")])
    if not files:
        sys.exit("no pictures: run python tools/fetch_models.py imagenet-pictures photos")
    return np.stack([_crop(Image.open(files[index % len(files)]).convert("RGB"), rng) for index in range(count)])


def _crop(picture: Image.Image, rng: np.random.Generator) -> np.ndarray:
    side = int(min(picture.size) * rng.uniform(0.55, 1))
    left, top = (int(rng.integers(0, size - side + 1)) for size in picture.size)
    cut = picture.crop((left, top, left + side, top + side)).resize((224, 224), Image.Resampling.LANCZOS)
    pixels = np.asarray(cut, np.float32)
    pixels = pixels[:, ::-1] if rng.random() < 0.5 else pixels
    return np.ascontiguousarray((pixels.transpose(2, 0, 1) - 127) / 128)


def _record(row: dict[str, Any], path: Path) -> None:
    """Write ``row`` among the others of ``path``, in the place of the one of the same recipe and contract."""
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    keep = [one for one in rows if any(one[key] != row[key] for key in ("recipe", "contract"))]
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = sorted([*keep, row], key=lambda one: (one["recipe"], one["contract"]))
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Run one recipe and print size and agreement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", choices=("safe", "balanced"))
    parser.add_argument("--max-loss", default=None)
    parser.add_argument("--target-kib", type=float, default=None)
    parser.add_argument("-o", "--output", type=Path, default=None)
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the figures (default: %(default)s)")
    options = parser.parse_args()
    rng = np.random.default_rng(SEED)
    has_contract = options.max_loss is not None or options.target_kib is not None
    judged = 2 * JUDGED if has_contract else JUDGED  # the search gets half of them
    every = crops(judged + CALIBRATED, rng)
    result = compress(
        MODELS / "efficientnet-lite0" / "efficientnet-lite0.onnx",
        options.output or Path(f"efficientnet-lite0-{options.recipe}.xq"),
        recipe=options.recipe,
        calib={"input": every[judged:]} if options.recipe == "balanced" else None,
        eval={"input": every[:judged]},
        metric="agreement",
        max_loss=parse_loss(options.max_loss),
        target_kib=options.target_kib,
        progress=lambda text, done, total: print(f"\r{text} {done}/{total}".ljust(70), end="", file=sys.stderr),
    )
    report = result.report
    agreement = 100 * (1 - report["loss"]["test"])
    print(
        f"\n{result.path}: {report['result']['bytes']} bytes, {report['ratio']:.2f}x, top-1 agreement with the "
        f"original {agreement:.1f} % on {report['samples']['test']} crops, contract holds: {result.holds}"
    )
    row = {
        "recipe": options.recipe,
        "contract": f"{options.target_kib:g} KiB" if options.target_kib else options.max_loss or "",
        "bytes": report["result"]["bytes"],
        "ratio": round(report["ratio"], 2),
        "agreement": round(agreement, 2),
        "crops": report["samples"]["test"],
    }
    _record(row, options.results)
    sys.exit(0 if result.holds else 1)


if __name__ == "__main__":
    main()
