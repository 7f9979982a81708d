"""bench: the table for the README, and the one line that sums up."""

from __future__ import annotations

import math

import pytest
from bench import markdown, summary, with_table


def _result(network: str, ours: float, **peers: float) -> dict:
    ratios = {peer: ms / ours for peer, ms in peers.items()}
    return {"network": network, "median_ms": {"xnncc": ours, **peers}, "peer_over_xnncc": ratios}


RESULTS = [_result("a", 2.0, onnxruntime=4.0, ncnn=3.0), _result("b", 1.0, onnxruntime=1.2)]


def test_summary_takes_the_best_peer_of_each_network() -> None:
    assert summary(RESULTS) == f"best peer over xnncc: geometric mean {math.sqrt(1.5 * 1.2):.2f}, lowest 1.20 (b)"
    assert summary([_result("c", 1.0)]) == "no peer ran"


def test_table_says_which_peer_failed() -> None:
    lines = markdown(RESULTS, ["onnxruntime", "ncnn"]).splitlines()
    assert lines[2:4] == ["| a | 2.00 | 4.00 (2.00x) | 3.00 (1.50x) |", "| b | 1.00 | 1.20 (1.20x) | fails |"]


def test_table_takes_the_place_of_the_one_of_its_name() -> None:
    text = "x\n<!-- bench a -->\nold\n<!-- /bench -->\ny\n<!-- bench b -->\nkept\n<!-- /bench -->\n"
    want = "x\n<!-- bench a -->\nnew\n<!-- /bench -->\ny\n<!-- bench b -->\nkept\n<!-- /bench -->\n"
    assert with_table(text, "a", "new") == want
    assert with_table("<!-- bench a -->\n<!-- /bench -->\n", "a", "new") == "<!-- bench a -->\nnew\n<!-- /bench -->\n"
    with pytest.raises(ValueError, match="bench c"):
        with_table(text, "c", "new")
