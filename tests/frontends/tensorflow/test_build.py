"""From a frozen graph to a library, and back to TensorFlow's numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stored_cases import FOLDER, NETWORKS, error_of, network

import xnncc
from xnncc.build import build


def _built_and_run(name: str, tmp_path: Path) -> None:
    stored = network(name)
    result = build(FOLDER / f"{name}.pb", "host", tmp_path / name, samples=stored.feeds)
    net = xnncc.load(result.directory)
    found = net(*stored.feeds.values())
    found = found if isinstance(found, dict) else {info["name"]: np.asarray(f) for info, f in zip(
        result.manifest["outputs"], found if isinstance(found, list | tuple) else [found], strict=True)}  # fmt: skip
    for output, expected in stored.expected.items():
        assert error_of(found[output], expected) <= 1e-5


def test_a_built_library_gives_tensorflows_numbers(tmp_path: Path) -> None:
    _built_and_run("fake_quantised", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_every_network(name: str, tmp_path: Path) -> None:
    _built_and_run(name, tmp_path)


@pytest.mark.slow
def test_stored_networks_can_be_made_again(tmp_path: Path) -> None:
    """Wants TensorFlow 2.21 in this environment; what it computes today is what is stored."""
    pytest.importorskip("keras", reason="TensorFlow is not installed")
    import make_models

    make_models.main(tmp_path)
    for name in NETWORKS:
        again = np.load(tmp_path / f"{name}.npz")
        with np.load(FOLDER / f"{name}.npz") as stored:
            for key in stored.files:
                np.testing.assert_allclose(again[key], stored[key], rtol=1e-5, atol=1e-6)
