"""The base networks of the squeeze's first row, and the table of its results."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from lenet.base import NETWORKS, write_onnx
from squeeze_lenet import table

from xnncc.compress.constants import constant_arrays
from xnncc.frontends import load_model


@pytest.mark.parametrize("network, parameters", [("lenet", 431_080), ("lenet-300-100", 266_610)])
def test_networks_have_as_many_parameters_as_in_the_paper(network: str, parameters: int, tmp_path: Path) -> None:
    rng, weights = np.random.default_rng(0), {}
    for name, shape in NETWORKS[network][0].items():
        weights[f"{name}.weight"] = rng.normal(size=shape).astype("float32") * 0.05
        weights[f"{name}.bias"] = rng.normal(size=shape[0]).astype("float32")
    write_onnx(network, weights, tmp_path / "net.onnx")
    imported = load_model(tmp_path / "net.onnx")  # compared with onnxruntime
    found = [array for array in constant_arrays(imported.mod).values() if array.dtype == np.float32]
    assert sum(array.size for array in found) == parameters
    assert [info.shape for info in imported.outputs] == [(1, 10)]


def test_rows_of_several_seeds_have_a_mean() -> None:
    rows = [
        {
            "network": "lenet",
            "recipe": "max",
            "seed": s,
            "bytes": 4000,
            "ratio": 400.0 + s,
            "test": 99.0,
            "base_test": 99.1,
        }
        for s in (0, 1)
    ]
    assert "| lenet | max | mean of 2 | | 400.5 | 99.00 | 99.10 |" in table(rows)
