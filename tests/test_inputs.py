"""Tensors from files, and plausible ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from xnncc.errors import BadInput
from xnncc.inputs import random_inputs, read_npy, read_npz
from xnncc.ir.plan import TensorInfo

INFOS = (
    TensorInfo("image", (1, 3, 4), "float32"),
    TensorInfo("ids", (1, 7), "int64"),
    TensorInfo("bytes", (500,), "uint8"),
    TensorInfo("signed", (500,), "int8"),
    TensorInfo("mask", (9,), "bool"),
    TensorInfo("rate", (), "int64"),
)


def test_random_inputs_have_the_shapes_and_dtypes_asked_for() -> None:
    arrays = random_inputs(INFOS)
    assert [(n, a.shape, a.dtype.name) for n, a in arrays.items()] == [(i.name, i.shape, i.dtype) for i in INFOS]


def test_same_seed_same_numbers() -> None:
    for name, array in random_inputs(INFOS, 3).items():
        np.testing.assert_array_equal(array, random_inputs(INFOS, 3)[name])
    assert not np.array_equal(random_inputs(INFOS, 3)["image"], random_inputs(INFOS, 4)["image"])


def test_integers_are_safe_as_indices_and_bytes_take_their_whole_range() -> None:
    arrays = random_inputs(INFOS)
    assert set(arrays["ids"].flat) <= {0, 1}
    assert arrays["bytes"].max() > 200
    assert arrays["signed"].min() < -100


def test_read_npz_and_npy(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    np.save(tmp_path / "b.npy", np.arange(4))
    assert list(read_npz(tmp_path / "a.npz")) == ["x"]
    assert read_npy(tmp_path / "b.npy").shape == (4,)


@pytest.mark.parametrize("content", [None, b"", b"Dear reader", b"PK\x03\x04cut", b"\x93NUMPY\x01\x00"])
@pytest.mark.parametrize("reader", [read_npz, read_npy])
def test_bad_files_are_one_sentence(content: bytes | None, reader, tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadInput, match=r"x\.bin"):
        reader(path)


def test_the_wrong_kind_of_numpy_file_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    np.save(tmp_path / "b.npy", np.arange(4))
    with pytest.raises(BadInput, match=r"it is an \.npz archive"):
        read_npy(tmp_path / "a.npz")
    with pytest.raises(BadInput, match="one array without a name"):
        read_npz(tmp_path / "b.npy")


def test_a_damaged_member_is_one_sentence(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(3000))
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(BadInput, match="damaged"):
        read_npz(tmp_path / "a.npz")


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(BadInput):
        read_npy(tmp_path / "p.npy")
