"""C identifiers and symbols made of file names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xnncc.ir.names import c_identifier, graph_symbol


@pytest.mark.parametrize(
    ("stem", "identifier"),
    [
        ("squeezenet", "squeezenet"),
        ("mobilenet-v2.1", "mobilenet_v2_1"),
        ("2dpose", "m2dpose"),
        ("", "m"),
        ("größe", "gr__e"),
        ("a b\n", "a_b_"),
        ("_x", "_x"),
    ],
)
def test_known_names(stem: str, identifier: str) -> None:
    assert c_identifier(stem) == identifier


@given(st.text(max_size=30))
def test_any_text_becomes_an_identifier(stem: str) -> None:
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", c_identifier(stem), re.ASCII)
    assert c_identifier(c_identifier(stem)) == c_identifier(stem)


def test_the_symbol_has_the_projects_prefix() -> None:
    assert graph_symbol("mobilenet-v2") == "xnn_mobilenet_v2_graph"
