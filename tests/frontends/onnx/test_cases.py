"""Every case that importers are known to get wrong is right here, or refused by name; and TVM's lowering agrees."""

from __future__ import annotations

import pytest
from relax_running import run_compiled
from shared_cases import CASES, REFUSED, TOLD

from xnncc.errors import UnsupportedModel
from xnncc.frontends.check import relative_error


@pytest.mark.parametrize("name", sorted(set(CASES) - set(REFUSED)))
def test_case_is_right(load, name):
    model, feeds = CASES[name]()
    imported = load(model, feeds)
    limit = 5e-4 if "fp16" in name else 2e-6  # float16 rounds at 5e-4
    assert imported.check.max_relative_error <= limit


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_case_is_refused_by_name(load, name):
    with pytest.raises(UnsupportedModel) as refusal:
        load(*CASES[name]())
    assert REFUSED[name] in str(refusal.value)


@pytest.mark.parametrize("name", sorted(TOLD))
def test_case_is_right_when_told(load, name):
    model, feeds = CASES[name]()
    fixed = TOLD[name].get("fixed", {})
    imported = load(model, {name: feed for name, feed in feeds.items() if name not in fixed}, **TOLD[name])
    assert imported.check.max_relative_error == 0


# One per operator whose numpy meaning (evaluate_*.py) and TVM lowering could part; the rest is in test_evaluate.py.
@pytest.mark.parametrize(
    "name", ["avgpool_ceil_pad_excl", "convtranspose_same_upper", "pad_wrap_op19", "maxpool_ceil_caffe"]
)
def test_compiled_case_is_right(load, name):
    model, feeds = CASES[name]()
    imported = load(model, feeds)
    found = run_compiled(imported.mod, [feeds[info.name] for info in imported.inputs])
    for info, value in zip(imported.outputs, found, strict=True):
        assert relative_error(value, imported.reference(feeds)[info.name]) <= 2e-6
