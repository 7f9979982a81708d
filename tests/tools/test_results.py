"""The committed results of the squeeze: files are as long as their tables say, open, and still do their work."""

from __future__ import annotations

import json
from pathlib import Path

import drawn_codes
import numpy as np
import pytest
from lenet.base import NETWORKS

from xnncc.compress.constants import constant_arrays
from xnncc.frontends import load_model
from xnncc.frontends.evaluate import evaluate

ROOT = Path(__file__).resolve().parents[2]
RESULTS, MODELS = ROOT / "docs" / "results", ROOT / "models"
ROWS = json.loads((RESULTS / "lenet.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['network']}-{row['recipe']}-{row['seed']}")
def test_lenet_files_are_as_long_as_the_table_says(row: dict) -> None:
    path = RESULTS / f"{row['network']}-{row['recipe']}-seed{row['seed']}.xq"
    parameters = sum(shape[0] * (1 + int(np.prod(shape[1:]))) for shape in NETWORKS[row["network"]][0].values())
    assert path.stat().st_size == row["bytes"]
    assert row["ratio"] == pytest.approx(4 * parameters / row["bytes"], abs=0.05)


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.xq")), ids=lambda path: path.stem)
def test_every_file_opens_and_is_a_quarter_of_float32_at_most(path: Path) -> None:
    imported = load_model(path)
    floats = [array for array in constant_arrays(imported.mod).values() if array.dtype == np.float32]
    assert imported.outputs and sum(array.nbytes for array in floats) > 4 * path.stat().st_size


@pytest.mark.skipif(
    not all((MODELS / name).is_dir() for name in ("photos", "imagenet-pictures")),
    reason="not fetched: tools/fetch_models.py photos imagenet-pictures",
)
def test_the_trained_detector_finds_a_code() -> None:
    mod = load_model(RESULTS / "wechat_trained.xq").mod
    for scene in drawn_codes.scenes(MODELS, "select", 1):
        (detections,), _ = evaluate(mod, [scene.input[None]])
        assert drawn_codes.overlap(drawn_codes.best_box(detections), scene.box) > 0.5
