"""The kernels of DetectionOutput against the formula, at the sizes and ties where sorting and counting go wrong."""

from __future__ import annotations

import numpy as np
import pytest
from caffe_files import input_text, layer_text
from network_running import compile_and_run

from xnncc.frontends.caffe.detection_kernel import Detection, suppress_kernel


def network(priors: int, classes: int, params: str, *, batch: int = 1, groups: int = 1) -> str:
    """Return DetectionOutput alone, over priors in a row; its PriorBox has one box a place."""
    box = "prior_box_param { min_size: 8 step: 2 variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }"
    text = input_text("f", (1, 1, 1, priors)) + input_text("i", (1, 1, 64, 64))
    text += input_text("loc", (batch, priors * 4 * groups)) + input_text("conf", (batch, priors * classes))
    text += layer_text("PriorBox", box, ("f", "i"), ("p",))
    params = f"detection_output_param {{ num_classes: {classes} code_type: CENTER_SIZE {params} }}"
    return text + layer_text("DetectionOutput", params, ("loc", "conf", "p"))


def feeds(seed: int, priors: int, classes: int, batch: int = 1, groups: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "f": np.zeros((1, 1, 1, priors), "f4"), "i": np.zeros((1, 1, 64, 64), "f4"),
        "loc": rng.normal(size=(batch, priors * 4 * groups)).astype("f4"),
        "conf": rng.uniform(size=(batch, priors * classes)).astype("f4"),
    }  # fmt: skip


@pytest.mark.parametrize("priors", [1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 65])
def test_every_number_of_candidates(load, priors):
    """Merge sort at and around powers of two; nothing is suppressed, so the order shows."""
    given = feeds(priors, priors, 2)
    imported = load(network(priors, 2, "nms_param { nms_threshold: 2 top_k: 100 } keep_top_k: 100"), None, given)
    assert imported.check.max_relative_error <= 1e-6
    rows = imported.reference(given)["out"][0, 0]
    assert (rows[:, 1] == 1).all() and (np.diff(rows[:, 2]) <= 0).all() and len(rows) == priors


@pytest.mark.parametrize("levels", [1, 2, 4])
def test_equal_scores_keep_the_order_of_the_priors(load, levels):
    given = feeds(3, 40, 3)
    given["conf"] = np.ceil(given["conf"] * levels).astype("f4") / 8
    params = "nms_param { nms_threshold: 0.4 top_k: 25 } keep_top_k: 17 confidence_threshold: 0.1"
    assert load(network(40, 3, params), None, given).check.max_relative_error <= 1e-6


@pytest.mark.parametrize(
    "params",
    [
        "keep_top_k: 1", "nms_param { top_k: 1 } keep_top_k: 50",
        "nms_param { top_k: 30 nms_threshold: 0 } keep_top_k: 50",
        "confidence_threshold: 0.99", "confidence_threshold: 5", "background_label_id: 2", "background_label_id: -1",
        "nms_param { nms_threshold: 0.8 eta: 0.9 }",
    ],
)  # fmt: skip
def test_limits(load, params):
    assert load(network(30, 3, params, batch=2), None, feeds(4, 30, 3, 2)).check.max_relative_error <= 1e-6


def test_rows_behind_the_last_box_are_minus_one(load):
    given = feeds(5, 10, 2)
    imported = load(network(10, 2, "confidence_threshold: 5 keep_top_k: 4"), None, given)
    assert imported.reference(given)["out"].tolist() == [[[[-1.0] * 7] * 4]]


@pytest.mark.parametrize("shared", [True, False])
def test_the_whole_line_gives_the_same_boxes(load, shared):
    """Scheduled, compiled, linked and run by the runtime, with memory that holds NaN before."""
    groups = 1 if shared else 3
    given = feeds(6, 50, 3, 2, groups)
    params = "nms_param { nms_threshold: 0.4 top_k: 30 } keep_top_k: 20 confidence_threshold: 0.3"
    params += f" share_location: {str(shared).lower()}"
    imported = load(network(50, 3, params, batch=2, groups=groups), None, given)
    built = compile_and_run(imported.mod, *given.values())
    assert np.allclose(built.outputs[0], imported.reference(given)["out"], rtol=1e-6, atol=1e-6)
    assert [kernel for kernel in built.kernels if kernel.startswith("ssd_")] == ["ssd_suppress", "ssd_collect"]


def test_the_kernel_is_one_block_so_that_no_schedule_reorders_it():
    d = Detection(1, 9, 3, True, 0, 0.1, 0.4, 1.0, 5, 5)
    assert suppress_kernel(d).body.block.name_hint == "ssd_suppress"
