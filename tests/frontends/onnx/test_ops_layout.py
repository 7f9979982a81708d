"""Operators that move elements, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import const, info, model, node, one_node, random

from xnncc.errors import UnsupportedModel

X = random(2, 3, 4)
IMAGE = random(1, 8, 4, 6)


def ints(*values: int) -> const:
    return const(np.array(values, "int64"))


@pytest.mark.parametrize("shape", [(6, 4), (0, -1), (-1,), (4, 0, 2), (2, 3, 4)])
def test_reshape(matches, shape):
    matches("Reshape", X, ints(*shape))


def test_reshape_to_its_own_shape_is_nothing(matches, operators):
    assert operators(matches("Reshape", X, ints(0, 0, -1))) == []


def test_reshape_refusals(refuses):
    assert "[2, 3, 4] cannot become [5, 5]" in refuses("Reshape", X, ints(5, 5))
    assert "does not have" in refuses("Reshape", X, ints(2, 3, 4, 0))
    assert "shape is input 'x1', whose value a build needs" in refuses("Reshape", X, np.array([6, 4]))
    assert "cannot become [0, 24]" in refuses("Reshape", X, ints(0, 24), allowzero=1)


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flatten(matches, axis):
    matches("Flatten", X, axis=axis)


def test_squeeze_and_unsqueeze(matches, refuses):
    matches("Squeeze", random(1, 3, 1, 2))
    matches("Squeeze", random(1, 3, 1, 2), ints(-2))
    matches("Squeeze", random(1, 3, 1, 2), axes=[0], opset=11)
    matches("Unsqueeze", X, ints(0, -1))
    matches("Unsqueeze", X, axes=[1, 2], opset=11)
    assert "axes [1] of [2, 3, 4] are not all 1" in refuses("Squeeze", X, ints(1))
    assert "name a dimension twice" in refuses("Unsqueeze", X, ints(0, 0))


def test_transpose(matches, operators):
    assert operators(matches("Transpose", X, perm=[2, 0, 1])) == ["permute_dims"]
    matches("Transpose", X)
    assert operators(matches("Transpose", random(1, 3, 1, 4), perm=[0, 2, 1, 3])) == ["reshape"]


def test_transpose_refuses_what_is_no_permutation(refuses):
    assert "perm [0, 0, 1] is no permutation" in refuses("Transpose", X, perm=[0, 0, 1])


def test_concat(matches, operators):
    matches("Concat", X, const(random(2, 5, 4)), axis=1)
    matches("Concat", X, const(random(2, 3, 1)), axis=-1)
    assert operators(matches("Concat", X, const(np.zeros((2, 0, 4), "float32")), axis=1)) == []


def test_concat_refuses_shapes_that_do_not_fit(refuses):
    assert "operands [2, 3, 4] float32, [2, 3, 5] float32 do not fit" in refuses(
        "Concat", X, const(random(2, 3, 5)), axis=1
    )


def test_split(matches, operators):
    assert operators(matches("Split", random(6, 2), outputs=3, axis=0, num_outputs=3)) == ["split"]
    matches("Split", random(7, 2), outputs=3, axis=0, num_outputs=3)
    matches("Split", random(6, 2), ints(1, 5), outputs=2)
    matches("Split", random(2, 6), outputs=2, axis=1, split=[2, 4], opset=11)
    matches("Split", random(2, 6), outputs=2, axis=-1, opset=11)
    assert operators(matches("Split", X, outputs=1, num_outputs=1)) == []


def test_parts_without_elements_are_left_out(load, operators):
    nodes = [node("Split", ["x", "sizes"], ["a", "none", "b"], axis=1), node("Concat", ["none", "b"], ["c"], axis=1),
             node("Concat", ["c", "a"], ["y"], axis=1)]  # fmt: skip
    made = model(nodes, [info("x", random(2, 6))], [info("y")], {"sizes": np.array([2, 0, 4])})
    assert operators(load(made, {"x": random(2, 6)})) == ["split", "concat"]


def test_an_output_without_elements_is_refused(load):
    made, feeds = one_node("Split", random(2, 6), ints(6, 0), outputs=2, axis=1)
    with pytest.raises(UnsupportedModel, match=r"output 'y1' is \[2, 0\] and has no elements"):
        load(made, feeds)


def test_split_refuses_sizes_that_do_not_fit(refuses):
    assert "sizes [1, 4] do not cut dimension 0 of [6, 2] into 2 parts" in refuses(
        "Split", random(6, 2), ints(1, 4), outputs=2
    )


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ((1,), (3,), (1,), (1,)), ((-2,), (100,), (2,), (1,)), ((0, 1), (2, 3), (0, 2), (1, 1)),
        ((0,), (4,), (2,), (2,)),
        ((-1,), (-100,), (2,), (-1,)), ((3,), (0,), (2,), (-2,)), ((0,), (2**62,), (1,), (1,)),
        ((2,), (-5,), (-1,), (-1,)),
    ],
)  # fmt: skip
def test_slice(matches, starts, ends, axes, steps):
    matches("Slice", X, ints(*starts), ints(*ends), ints(*axes), ints(*steps))


def test_slice_with_attributes_and_of_everything(matches, operators):
    matches("Slice", X, starts=[1], ends=[-1], axes=[2], opset=9)
    assert operators(matches("Slice", X, ints(0), ints(9), ints(1))) == []


def test_slice_refuses_an_empty_result(refuses):
    assert "no elements" in refuses("Slice", X, ints(2), ints(1), ints(1))


def test_expand_and_tile(matches, operators, refuses):
    matches("Expand", random(3, 1), ints(2, 1, 4))
    assert operators(matches("Expand", X, ints(3, 1))) == []
    matches("Tile", X, ints(2, 1, 3))
    assert operators(matches("Tile", X, ints(1, 1, 1))) == []
    assert "[2, 3, 4] does not broadcast to [5]" in refuses("Expand", X, ints(5))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad(matches, mode):
    matches("Pad", random(4, 5), ints(1, 2, 2, 1), mode=mode, opset=19)


def test_pad_variants(matches):
    matches("Pad", X, ints(1, 2), const(1.5), ints(-1))
    matches("Pad", X, ints(0, -1, 1, 0, 0, -1))
    matches("Pad", X, pads=[0, 0, 1, 0, 0, 2], value=0.5, opset=2 + 4)
    matches("Pad", X, ints(0, 0, 1, 0, 1, 0), None)


def test_pad_refusals(refuses):
    assert "reads past the input" in refuses("Pad", random(3, 4), ints(3, 0, 0, 0), mode="reflect")
    assert "3 pads do not fit 3 axes" in refuses("Pad", X, ints(1, 1, 1))
    assert "constant_value is input 'x2', whose value a build needs" in refuses(
        "Pad", X, ints(0, 0, 1, 0, 0, 1), np.float32(1)
    )


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(matches, mode):
    matches("DepthToSpace", IMAGE, blocksize=2, mode=mode)


def test_space_to_depth(matches):
    matches("SpaceToDepth", IMAGE, blocksize=2)


@pytest.mark.parametrize("upper", [0, 1])
def test_trilu(matches, upper):
    matches("Trilu", random(2, 4, 5), const(np.array(1, "int64")), upper=upper)
    matches("Trilu", random(4, 3), upper=upper)


def test_shape_and_size_are_constants(matches, operators):
    assert operators(matches("Shape", X)) == []
    matches("Shape", X, start=1, end=-1)
    assert operators(matches("Size", X)) == []
    assert operators(matches("EyeLike", random(3, 4), k=1)) == []


def test_sizes_at_run_time_are_named(refuses):
    assert "shape is input 'x0', whose value a build needs" in refuses("ConstantOfShape", np.array([2, 3]))
    limits = [np.array(v, "int64") for v in (0, 5, 1)]
    assert "start is input 'x0', whose value a build needs" in refuses("Range", *limits)
