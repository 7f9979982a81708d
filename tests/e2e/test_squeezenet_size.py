"""SqueezeNet's Android library, weights aside, fits in 100 KB."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_models import write

pytestmark = pytest.mark.e2e


def test_android_library_is_at_most_100_kib(tmp_path: Path) -> None:
    from xnncc.build import build

    model = write("squeezenet1_1", tmp_path)
    manifest = build(model, "android-arm64", tmp_path / "out", verify=False).manifest
    library = {file["path"]: file["bytes"] for file in manifest["files"] if file["role"] == "library"}
    assert library
    assert sum(library.values()) <= 100 * 1024, library
    # 1,235,496 float32 parameters: the weights are in the package, not in the library.
    assert manifest["weights_bytes"] >= 4 * 1_235_496
