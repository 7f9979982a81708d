"""How lists of shapes go together, and what variants must have in common."""

from __future__ import annotations

import numpy as np
import pytest

from xnncc.errors import ShapeError
from xnncc.ir.plan import TensorInfo
from xnncc.ir.variants import check_variants, shapes_in_words, suits, variant_shapes


def test_no_choice_is_one_variant() -> None:
    assert variant_shapes({}) == [{}]
    assert variant_shapes({"x": (1, 3), "s": ()}) == [{"x": (1, 3), "s": ()}]


def test_lists_of_one_length_go_together_and_a_single_shape_holds_for_all() -> None:
    shapes = {"x": [(1, 16), (1, 32)], "y": [(8,), (4,)], "z": (2,)}
    assert variant_shapes(shapes) == [
        {"x": (1, 16), "y": (8,), "z": (2,)},
        {"x": (1, 32), "y": (4,), "z": (2,)},
    ]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            {"x": [(1,), (2,), (3,)], "y": [(1,), (2,)]},
            (
                "--shape y: 2 shapes, but 'x' has 3: the first of each go together, then the second. "
                "Give 'y' one shape, or 3."
            ),
        ),
        ({"x": [(1, 5), (1, 5)]}, "--shape: the shapes x 1×5 are given twice. Give every choice once."),
        ({"x": [(n,) for n in range(1, 34)]}, "--shape: 33 different shapes. At most 32 fit one artefact."),
    ],
)
def test_lists_that_do_not_go_together(shapes: dict, message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        variant_shapes(shapes)
    assert str(caught.value) == message


X, WIDE = TensorInfo("x", (1, 4), "float32"), TensorInfo("x", (1, 8), "float32")
Y, STATE = TensorInfo("y", (2,), "float32"), TensorInfo("h", (3,), "float32")


def test_variants_differ_in_dims() -> None:
    check_variants([([X], [Y], []), ([WIDE], [Y], [])])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (([TensorInfo("x", (1, 4, 1), "float32")], [Y], []), "numbers of dimensions must be the same"),
        (([WIDE], [TensorInfo("y", (2,), "int8")], []), "outputs are y 2 for one and y 2 for another"),
        (([WIDE], [Y], [(STATE, STATE)]), "a state has another shape"),
        (([X], [Y], []), "two of them give the inputs x 1×4"),
    ],
)
def test_variants_differ_in_nothing_else(other: tuple, words: str) -> None:
    with pytest.raises(ShapeError, match=words):
        check_variants([([X], [Y], []), other])


def test_samples_suit_one_variant() -> None:
    samples = {"x": np.zeros((1, 4)), "m": np.zeros(3)}
    assert suits(samples, {"x": (1, 4)}) and not suits(samples, {"x": (1, 8)}) and not suits(samples, {"y": (1,)})
    assert not suits(None, {})
    assert shapes_in_words([X, TensorInfo("s", (), "int64")]) == "x 1×4, s scalar"
