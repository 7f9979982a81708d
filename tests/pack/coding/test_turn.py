"""Matrices coded columns first: smaller where columns differ, and the same weights again, in .xq and in packages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from xnncc.ir.coded import CodedTensor, coded_table
from xnncc.ir.placement import CodedTable, Placement
from xnncc.pack import coding
from xnncc.pack.coding.blob import decode_blob, encode_blob
from xnncc.pack.coding.turn import turned, turning_pays

ONE = np.array([0.125], np.float32)
RANGE = ("range",)


def _by_column(*shape: int) -> np.ndarray:
    """Return integers whose columns have spreads of their own."""
    rng = np.random.default_rng(0)
    rows, columns = shape[0], int(np.prod(shape[1:]))
    spread = rng.permutation(np.geomspace(0.3, 30, columns))
    return np.round(rng.laplace(size=(rows, columns)) * spread).astype(np.int32).reshape(shape)


def _steps(count: int) -> np.ndarray:
    return np.linspace(0.5, 1, count, dtype=np.float32)


def _blocks(array: np.ndarray) -> np.ndarray:
    """Pack [O, ...] as [O/8, ..., 8]."""
    flat = array.reshape(len(array) // 8, 8, -1)
    return np.ascontiguousarray(flat.transpose(0, 2, 1))


def _placed(tensor: CodedTensor, change: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, Placement]:
    table = CodedTable(coded_table([tensor]))
    array = table.follow(tensor.values(), change)
    found = table.place(0, array)
    assert found is not None
    return array, found[1]


TENSORS = {
    "one step": CodedTensor(_by_column(64, 200), ONE),
    "steps by row": CodedTensor(_by_column(64, 200), _steps(64), axis=0),
    "steps by column": CodedTensor(_by_column(64, 200), _steps(200), axis=1),
    "window": CodedTensor(_by_column(64, 25, 3, 3), _steps(64), axis=0),
    "leading ones": CodedTensor(_by_column(64, 200).reshape(1, 64, 1, 200), _steps(200), axis=3),
    "codebook": CodedTensor(np.abs(_by_column(64, 200)) % 40, codebook=_steps(40)),
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_package_holds_the_turned_matrix_and_the_same_weights(name: str) -> None:
    tensor = TENSORS[name]
    for change in (lambda a: a, _blocks) if tensor.shape[0] != 1 else (lambda a: a,):
        array, placement = _placed(tensor, change)
        way = turned(placement)
        assert way is not None and way.tensor.shape == (tensor.size // 64, 64)
        assert decode_blob(encode_blob(array.tobytes(), [way]).data, array.nbytes) == array.tobytes()
        assert decode_blob(encode_blob(array.tobytes(), [placement]).data, array.nbytes) == array.tobytes()


def test_steps_along_a_part_of_the_columns_are_left_as_they_are() -> None:
    _, placement = _placed(CodedTensor(_by_column(64, 25, 8), _steps(25), axis=1), lambda a: a)
    assert turned(placement) is None


@pytest.mark.parametrize("name", TENSORS)
def test_a_coded_section_comes_back(name: str) -> None:
    tensor = TENSORS[name]
    (back,) = coding.decode(coding.encode([tensor], RANGE))
    np.testing.assert_array_equal(back.integers, tensor.integers)
    np.testing.assert_array_equal(back.values(), tensor.values())


def test_it_is_smaller_where_columns_differ_and_left_alone_where_rows_do() -> None:
    tensor = TENSORS["one step"]
    other = CodedTensor(np.ascontiguousarray(tensor.integers.T), ONE)
    assert turning_pays(other, RANGE) != turning_pays(tensor, RANGE)
    sizes = [len(coding.encode([one], RANGE)) for one in (tensor, other)]
    assert abs(sizes[0] - sizes[1]) <= 2  # either way the better one is taken
    assert not turning_pays(tensor, ("huffman",))
    assert not turning_pays(CodedTensor(np.zeros((64, 8), np.int32), ONE), RANGE)
