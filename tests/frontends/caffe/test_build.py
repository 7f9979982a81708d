"""From prototxt and caffemodel to a library: the manifest tells one pair of files from another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from caffe_files import input_text, layer_text, save

import xnncc
from xnncc.build import build

pytestmark = pytest.mark.e2e
TEXT = input_text("data", (1, 3)) + layer_text("InnerProduct", "inner_product_param { num_output: 2 bias_term: false }")


def _source(folder: Path, factor: float) -> str:
    """Build y = W x with W of ``factor``, check y, and return the hash of the source."""
    folder.mkdir()
    built = build(save(folder, TEXT, {"innerproduct": [np.full((2, 3), factor)]}), "host", folder / "built")
    (y,) = xnncc.load(built.directory)(np.array([[1, 2, 3]], "float32")).values()
    assert y.tolist() == [[6 * factor, 6 * factor]]
    return built.manifest["source"]["sha256"]


def test_the_source_hash_covers_the_weights(tmp_path: Path) -> None:
    first = _source(tmp_path / "a", 1.0)
    assert _source(tmp_path / "b", 1.0) == first
    assert _source(tmp_path / "c", 2.0) != first
