"""Front-end tests share relax_running.py and operators of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
# For relax_running.py, and for the writers of each format's files that test_survey.py uses.
sys.path[:0] = [str(HERE), *(str(HERE / name) for name in ("caffe", "tensorflow", "tflite"))]


@pytest.fixture
def registries() -> Iterator[None]:
    """Whatever a test registers is forgotten after it."""
    from xnncc.frontends import custom_ops
    from xnncc.frontends.caffe.layers import CONVERTERS as CAFFE
    from xnncc.frontends.caffe.reference import FORMULAS
    from xnncc.frontends.onnx.operators import CONVERTERS as ONNX
    from xnncc.frontends.tensorflow.interpret import MEANINGS
    from xnncc.frontends.tensorflow.operators import CONVERTERS as TENSORFLOW
    from xnncc.frontends.tflite.interpret_layout import EVALUATORS
    from xnncc.frontends.tflite.operators import CONVERTERS as TFLITE

    tables: list[dict] = [FORMULAS, CAFFE, ONNX, MEANINGS, TENSORFLOW, EVALUATORS, TFLITE, custom_ops._TABLE]
    before = [dict(table) for table in tables]
    yield
    for table, entries in zip(tables, before, strict=True):
        table.clear()
        table.update(entries)


_PLUS = """
from tvm import te

import xnncc

CALLS = []

@xnncc.custom_op("MyPlus", reference=lambda call, *arrays: sum(arrays))
def plus(call, first, *others):
    CALLS.append(call)
    return te.compute(first.shape, lambda *i: sum((x(*i) for x in others), first(*i)), name="plus")
"""


@pytest.fixture
def my_plus(registries: None, tmp_path: Path) -> Callable[[], list[Any]]:
    """A plugin that adds its operands, for any format; returns the calls that its function has seen."""
    from xnncc.frontends.custom_ops import custom_named, load_plugins

    (tmp_path / "plus.py").write_text(_PLUS)
    load_plugins([tmp_path / "plus.py"])
    op = custom_named("MyPlus")
    assert op is not None
    return lambda: op.emit.__globals__["CALLS"]
