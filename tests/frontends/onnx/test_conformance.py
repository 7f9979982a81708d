"""docs/onnx-conformance.json is what the importer does: a sample of refusals without building, of passes run whole."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

from onnx_cases import PASS, REFUSED, WRONG, all_cases, import_case, run_case
from onnx_conformance import SUMMARY, read_list

LIST = read_list()
SAME_ONNX = pytest.mark.skipif(
    not (Path(__file__).resolve().parents[3] / "docs" / "onnx-conformance.json").read_text().startswith(
        f'{{"onnx": "{onnx.__version__}"'
    ),
    reason=f"the list was made with another onnx than {onnx.__version__}",
)  # fmt: skip
PASSING = [key for key, outcome in LIST.items() if outcome.result == PASS and key[0] != "light"]
REFUSALS = [key for key, outcome in LIST.items() if outcome.result == REFUSED]


def test_the_list_is_good_enough():
    node = [outcome.result for key, outcome in LIST.items() if key[0] == "node"]
    assert node.count(PASS) >= 1500
    assert not [key for key, outcome in LIST.items() if outcome.result == WRONG]
    assert len(LIST) == 2033


def test_the_page_says_how_many_cases_fix_an_input():
    fixed = [outcome for outcome in LIST.values() if outcome.result == PASS and outcome.fixed]
    assert 100 < len(fixed) < 400
    assert f"In {len(fixed)} of the passing cases an input decides a size" in SUMMARY.read_text()


@SAME_ONNX
def test_no_case_is_left_out():
    assert set(LIST) == set(all_cases())


@SAME_ONNX
@pytest.mark.parametrize("key", REFUSALS[:: max(len(REFUSALS) // 60, 1)], ids="/".join)
def test_is_refused_as_the_list_says(key):
    outcome = import_case(all_cases()[key])
    assert (outcome.result, outcome.reason) == (REFUSED, LIST[key].reason)


@SAME_ONNX
@pytest.mark.parametrize("key", PASSING[:: max(len(PASSING) // 60, 1)], ids="/".join)
def test_passes_through_the_whole_line(key):
    outcome = run_case(all_cases()[key])
    assert outcome.result == PASS, outcome.reason
    assert list(outcome.fixed) == list(LIST[key].fixed)
