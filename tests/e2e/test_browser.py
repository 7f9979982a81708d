"""Real networks in headless Chromium: the same numbers as everywhere, and a page that classifies a photo."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from chromium import need_chromium, visit
from engines import artefact_engine
from judges.vision import PHOTO_CLASSES, class_names
from real_models import MODELS, REAL_MODELS, RealModel

pytestmark = pytest.mark.e2e
EVERYWHERE = [name for name, model in REAL_MODELS.items() if model.everywhere]


def test_page_classifies_the_cat(built: Callable[[str, str], Path], real_model: Callable[[str], RealModel]) -> None:
    """The demo page of EfficientNet-Lite0: a visitor drops the photo and reads the right name."""
    need_chromium()
    real_model("efficientnet-lite0")
    folder, names = built("efficientnet-lite0", "web-wasm"), class_names(MODELS)
    files: dict[str, bytes | Path] = {file.name: file for file in folder.iterdir()}
    files["cat.png"] = MODELS / "photos" / "chelsea.png"
    files["labels.txt"] = json.dumps(names).encode()
    said = visit(files, "index.html?mean=127&std=128", "drop(await file('cat.png')); return await answer()")
    rows = said["rows"]
    assert len(rows) == 5 and rows[0]["index"] in PHOTO_CLASSES["chelsea"], rows
    assert [row["name"] for row in rows] == [names[row["index"]] for row in rows]
    assert sum(row["index"] in PHOTO_CLASSES["chelsea"] for row in rows) == 3  # all the cats that the judge allows
    assert float(said["status"].split(" ms")[0]) > 1


@pytest.mark.parametrize("name", ["blazeface", "silero-vad"])
def test_same_numbers_in_chromium(name: str, built: Callable[[str, str], Path], real_model: Callable) -> None:
    _verify(name, built, real_model)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERYWHERE)
def test_four_give_the_right_answer_in_chromium(
    name: str, built: Callable[[str, str], Path], real_model: Callable
) -> None:
    _verify(name, built, real_model)
    verdict = real_model(name).judge(artefact_engine(built(name, "web-wasm"), "browser"), MODELS, True)
    assert verdict.right, verdict.said


def _verify(name: str, built: Callable[[str, str], Path], real_model: Callable) -> None:
    """Within 1e-4 of onnxruntime on the sample."""
    from xnncc.verify import verify

    need_chromium()
    model: RealModel = real_model(name)
    result = verify(model.path(), built(name, "web-wasm"), samples=model.sample(MODELS), device="browser")
    assert result.passed, result.outputs
