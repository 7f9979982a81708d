"""Importer tests build tiny ONNX models with onnx_models.py and compare with onnxruntime."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from onnx_models import one_node, save

from xnncc.errors import UnsupportedModel
from xnncc.frontends.imported import Imported

# Single operators: a few roundings of float32 and no deep sums, so the import's 1e-4 would be far too lenient.
OPERATOR_TOLERANCE = 2e-6


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Imported]:
    """``load(model, feeds)`` returns the import of a ModelProto, compared with onnxruntime on ``feeds``."""

    def run(model: Any, feeds: dict[str, np.ndarray] | None = None, **options: Any) -> Imported:
        from xnncc.frontends import load_model

        shapes = {name: value.shape for name, value in (feeds or {}).items() if value.ndim}
        return load_model(save(model, tmp_path / "model.onnx"), options.pop("shapes", shapes), feeds, **options)

    return run


@pytest.fixture
def matches(load: Callable[..., Imported]) -> Callable[..., Imported]:
    """``matches("Relu", x)`` imports one node and requires onnxruntime's numbers; returns the import.

    Arguments are tensors given at run time; those wrapped in ``const`` are weights, None is an input left out.
    """

    def run(operator: str, *inputs: Any, tolerance: float = OPERATOR_TOLERANCE, **options: Any) -> Imported:
        model, feeds = one_node(operator, *inputs, **options)
        imported = load(model, feeds)
        assert imported.check is not None and imported.check.max_relative_error <= tolerance
        return imported

    return run


@pytest.fixture
def refuses(load: Callable[..., Imported]) -> Callable[..., str]:
    """``refuses("Resize", x, mode="area")`` returns the sentence with which the import refuses ``the_node``."""

    def run(operator: str, *inputs: Any, **options: Any) -> str:
        model, feeds = one_node(operator, *inputs, **options)
        with pytest.raises(UnsupportedModel) as refusal:
            load(model, feeds)
        assert "the_node" in str(refusal.value) and operator in str(refusal.value)
        return str(refusal.value)

    return run


@pytest.fixture
def operators() -> Callable[[Imported], list[str]]:
    """``operators(imported)`` lists the Relax operators of main, in order, without ``relax.``."""

    def names(imported: Imported) -> list[str]:
        values = [b.value for block in imported.mod["main"].body.blocks for b in block.bindings]
        return [value.op.name.removeprefix("relax.") for value in values if hasattr(value, "op")]

    return names
