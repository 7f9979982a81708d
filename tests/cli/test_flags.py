"""Values of flags: what is taken, and the sentence for what is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xnncc.cli.flags import parse_assignments, parse_fixed, parse_shapes, parse_single_shapes
from xnncc.errors import BadInput, ShapeError


def test_shapes_of_several_inputs() -> None:
    assert parse_shapes(["data=1,3,224,224", "a/b:0=7", "k=v=2,2"]) == {
        "data": (1, 3, 224, 224),
        "a/b:0": (7,),
        "k=v": (2, 2),
    }
    assert parse_shapes(None) == {}


def test_alternatives_of_one_place_go_together() -> None:
    assert parse_shapes(["x=1,3,48,160|320"]) == {"x": [(1, 3, 48, 160), (1, 3, 48, 320)]}
    assert parse_shapes(["x=1|2,3,8|16"]) == {"x": [(1, 3, 8), (2, 3, 16)]}
    assert parse_shapes(["x=5|5"]) == {"x": [(5,), (5,)]}  # refused where the shapes are counted


def test_commands_on_one_shape_refuse_a_choice() -> None:
    assert parse_single_shapes(["x=1,3", "s="]) == {"x": (1, 3), "s": ()}
    with pytest.raises(ShapeError, match="--shape for 'x': it gives 2 shapes and this command takes one"):
        parse_single_shapes(["x=1,3|4"])


def test_scalar_shape() -> None:
    assert parse_shapes(["sr="]) == {"sr": ()}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["1,3,8,8"], "--shape '1,3,8,8': there is no input name before '='. Write --shape NAME=1,3,8,8"),
        (["=1,3"], "--shape '=1,3': there is no input name before '='. Write --shape NAME=1,3"),
        (
            ["x=1x3"],
            "--shape 'x=1x3': '1x3' is no list of whole numbers with commas. Write it like --shape x=1,3,224,224",
        ),
        (["x=1,0"], "--shape 'x=1,0': dimension 0 is not positive. Every dimension must be 1 or more."),
        (["x=1,-1"], "--shape 'x=1,-1': dimension -1 is not positive. Every dimension must be 1 or more."),
        (
            ["x=1|2,8|16|32"],
            (
                "--shape 'x=1|2,8|16|32': one dimension has 2 alternatives and another 3; those of one place go "
                "together. Give every dimension one number, or the same count of them."
            ),
        ),
        (["x=1|0"], "--shape 'x=1|0': dimension 0 is not positive. Every dimension must be 1 or more."),
        (
            ["x=1||2"],
            "--shape 'x=1||2': '1||2' is no list of whole numbers with commas. Write it like --shape x=1,3,224,224",
        ),
        (["x=1", "x=2"], "--shape 'x=2': input 'x' already has a shape. Give one --shape an input."),
    ],
)
def test_bad_shapes(flags: list[str], message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        parse_shapes(flags)
    assert str(caught.value) == message


def test_input_files() -> None:
    assert parse_assignments(["a=x.npy", "b=dir/y=1.npy"]) == {"a": Path("x.npy"), "b": Path("dir/y=1.npy")}


@pytest.mark.parametrize("flags", [["x.npy"], ["=x.npy"], ["x="], ["a=1.npy", "a=2.npy"]])
def test_bad_input_files(flags: list[str]) -> None:
    with pytest.raises(BadInput, match="--input"):
        parse_assignments(flags)


def test_fixed_values_are_flat_lists_of_numbers() -> None:
    fixed = parse_fixed(["shape=1,-1", "a=b=0.5", "on=true,false"])
    assert fixed["shape"].tolist() == [1, -1] and fixed["shape"].dtype == "int64"
    assert fixed["a=b"].tolist() == [0.5] and fixed["on"].tolist() == [True, False]
    assert parse_fixed(None) == {}


def test_fixed_values_from_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.eye(2, dtype="float32"))
    assert parse_fixed([f"m={tmp_path / 'v.npy'}"])["m"].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["shape"], "--fix 'shape': expected NAME=VALUES. Write it like --fix shape=1,-1"),
        (["=1"], "expected NAME=VALUES"),
        (["a=1", "a=2"], "input 'a' is already fixed"),
        (["a=one"], "'one' is no list of numbers with commas, and no .npy file. Write it like --fix a=1,-1"),
        (["a=none.npy"], "there is no such file"),
    ],
)
def test_bad_fixed_values(flags: list[str], message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_fixed(flags)
    assert message in str(error.value)
