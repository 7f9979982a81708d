"""The ``.xq`` container: same contents back, same bytes again, damage refused in one sentence."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from xnncc.errors import BadModel
from xnncc.ir.coded import CodedTensor
from xnncc.pack.xq_file import MAGIC, XqFile, decode_xq, encode_xq, read_xq, write_xq


def _file() -> XqFile:
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.arange(40), np.arange(40)), -1).reshape(1, -1, 1, 2).astype("float32") / 40
    constants = [
        CodedTensor(rng.integers(-7, 8, (8, 12)).astype(np.int32), np.full(8, 0.25, np.float32)),
        rng.standard_normal(10).astype("float32"),
        np.array([[True, False]]),
        grid,
        np.array(7, "int64"),
        np.empty((0, 3), "float32"),
        CodedTensor(rng.integers(0, 3, (5, 4)).astype(np.int32), codebook=np.array([-1, 0, 2], np.float32)),
        np.where(np.arange(600) % 2, np.float32(-0.0), np.float32(np.nan)),
    ]
    return XqFile([["x", [1, 2], "float32"], 3, -4, 0.5, None], constants, {"source": "net.onnx", "loss": 0.25})


def _bits(one: CodedTensor | np.ndarray) -> tuple:
    array = one.values() if isinstance(one, CodedTensor) else one
    return type(one), array.dtype, array.shape, array.tobytes()


def test_contents_come_back_bit_by_bit() -> None:
    file = _file()
    found = decode_xq(encode_xq(file), "x")
    assert found.records == file.records
    assert found.facts == file.facts
    assert [_bits(one) for one in found.constants] == [_bits(one) for one in file.constants]


def test_same_contents_same_bytes(tmp_path: Path) -> None:
    data = write_xq(tmp_path / "a.xq", _file())
    assert data == encode_xq(_file()) == (tmp_path / "a.xq").read_bytes()
    assert encode_xq(read_xq(tmp_path / "a.xq")) == data
    assert [path.name for path in tmp_path.iterdir()] == ["a.xq"]


def test_a_grid_takes_a_table() -> None:
    grid = np.stack(np.meshgrid(np.arange(64), np.arange(64)), -1).astype("float32") / 64
    data = encode_xq(XqFile([], [grid]))
    assert len(data) < 400  # 32,768 bytes of floats
    assert decode_xq(data, "x").constants[0].tobytes() == grid.tobytes()


def test_nothing_takes_few_bytes() -> None:
    assert len(encode_xq(XqFile([], []))) <= 20


def test_every_cut_and_every_flipped_byte_is_refused() -> None:
    data = encode_xq(_file())
    for length in range(0, len(data), 7):
        with pytest.raises(BadModel):
            decode_xq(data[:length], "m.xq")
    for index in range(0, len(data), 5):
        with pytest.raises(BadModel):
            decode_xq(data[:index] + bytes([data[index] ^ 0x41]) + data[index + 1 :], "m.xq")


def test_mutations_with_a_right_checksum_are_contents_or_bad_model() -> None:
    body = bytearray(encode_xq(_file())[8:])
    rng = np.random.default_rng(1)
    refused = 0
    for _ in range(400):
        changed = bytearray(body)
        for _ in range(int(rng.integers(1, 4))):
            changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
        try:
            decode_xq(MAGIC + zlib.crc32(changed).to_bytes(4, "little") + bytes(changed), "m.xq")
        except BadModel as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 100


def test_another_format_is_named() -> None:
    with pytest.raises(BadModel, match=r"does not begin like an \.xq file"):
        decode_xq(b"PK\x03\x04" + bytes(40), "m.xq")
    with pytest.raises(BadModel, match="format b'XQ9"):
        decode_xq(b"XQ9\n" + bytes(40), "m.xq")
