"""Writing packages: the same bytes each time, all of the file or none of it, and nothing the format cannot hold."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from xnncc import pack
from xnncc.errors import BadPackage, OutputError
from xnncc.pack import layout

X = pack.Tensor("x", (1, 4), "float32")
GOOD = pack.Package("tiny", "linux-x86-64", -1, 256, 64, 2, (X,), (X,), bytes(range(8)))


def test_weights_are_aligned_in_the_file() -> None:
    for letters in range(1, 130):
        data = pack.encode(dataclasses.replace(GOOD, name="m" * letters, weights=b"\x5a\xa5" * 8))
        assert data.index(b"\x5a\xa5" * 8) % 64 == 0


def test_takes_weights_of_any_buffer() -> None:
    import array

    floats = array.array("f", [1.0, 2.0])
    views = [floats.tobytes(), memoryview(floats), memoryview(floats.tobytes())]
    assert len({pack.encode(dataclasses.replace(GOOD, weights=view)) for view in views}) == 1


def test_writes_each_name_once() -> None:
    assert pack.encode(dataclasses.replace(GOOD, name="x", target="x")).count(b"x\0") == 1


def test_same_contents_same_bytes(tmp_path: Path) -> None:
    pack.write(tmp_path / "a.xnn", GOOD)
    pack.write(tmp_path / "b.xnn", dataclasses.replace(GOOD))
    assert (tmp_path / "a.xnn").read_bytes() == (tmp_path / "b.xnn").read_bytes() == pack.encode(GOOD)


def test_replaces_a_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "m.xnn").write_bytes(b"old")
    pack.write(tmp_path / "m.xnn", GOOD)
    assert os.listdir(tmp_path) == ["m.xnn"]


def test_disk_full_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.xnn").write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OutputError, match=r"m\.xnn' cannot be written: no space left on device\. Give another output"):
        pack.write(tmp_path / "m.xnn", GOOD)
    assert os.listdir(tmp_path) == ["m.xnn"]
    assert (tmp_path / "m.xnn").read_bytes() == b"old"


def test_ctrl_c_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        pack.write(tmp_path / "m.xnn", GOOD)
    assert os.listdir(tmp_path) == []


def test_says_which_folder_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/m\.xnn' cannot be written: not a directory"):
        pack.write(tmp_path / "file" / "m.xnn", GOOD)
    with pytest.raises(OutputError, match="no such file or directory"):
        pack.write(tmp_path / "gone" / "m.xnn", GOOD)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": ""}, "model name '' is empty or has characters that UTF-8 or C cannot hold"),
        ({"target": "a\0b"}, r"target name 'a\x00b' is empty or has characters that UTF-8 or C cannot hold"),
        (
            {"inputs": (pack.Tensor("\ud800", (), "int8"),)},
            r"tensor name '\ud800' is empty or has characters that UTF-8 or C cannot hold",
        ),
        ({"inputs": (X, X)}, "two inputs are named 'x'"),
        ({"outputs": tuple(pack.Tensor(str(i), (), "int8") for i in range(1025))}, "1025 outputs, at most 1024"),
        ({"inputs": (pack.Tensor("t", (1,) * 9, "int8"),)}, "tensor 't': 9 dimensions, at most 8"),
        (
            {"inputs": (pack.Tensor("t", (1 << 20, 1 << 20), "int16"),)},
            "tensor 't': shape [1048576, 1048576] is too large",
        ),
        ({"inputs": (pack.Tensor("t", (2, -1), "int16"),)}, "tensor 't': shape [2, -1] is too large"),
        ({"name": "n" * (1 << 20)}, "1048592 bytes of names, at most 1 MiB"),
        ({"arena_bytes": -1}, "-1 bytes of arena, at most 2^40"),
        ({"thread_scratch_bytes": 1 << 41}, "2199023255552 bytes of thread scratch, at most 2^40"),
        ({"op_count": 1 << 31}, "2147483648 operators"),
        ({"build_id": 1 << 63}, "a build id has 64 bits"),
        (
            {"extra": (pack.Section("WGHT", b""),)},
            "META, WGHT, STAT and VARI are written from the package's own fields",
        ),
        ({"extra": (pack.Section("TOOLONG", b""),)}, "section kind 'TOOLONG' is not four ASCII characters"),
        ({"extra": (pack.Section("GOLD", b"1", decoded_bytes=2),)}, "section GOLD: raw, yet of another decoded length"),
        ({"extra": (pack.Section("GOLD", b""),) * 63}, "65 sections, at most 64"),
    ],
)
def test_refuses_what_the_format_cannot_hold(changes: dict[str, object], why: str) -> None:
    with pytest.raises(BadPackage) as caught:
        pack.encode(dataclasses.replace(GOOD, **changes))  # type: ignore[arg-type]
    assert caught.value.why == why


def test_says_which_dtypes_there_are() -> None:
    with pytest.raises(BadPackage, match=r"tensor 't': dtype 'complex64', not one of \['float32', "):
        pack.encode(dataclasses.replace(GOOD, inputs=(pack.Tensor("t", (), "complex64"),)))
    assert len(layout.DTYPES) == 13


def test_refuses_states_that_are_no_pairs() -> None:
    for changes, why in (
        ({"state_count": 2}, "2 states are too many"),
        (
            {"state_count": 1, "outputs": (dataclasses.replace(X, shape=(4, 1)),)},
            "state 'x' is not of the dtype and shape of 'x'",
        ),
    ):
        with pytest.raises(BadPackage, match=why):
            pack.encode(dataclasses.replace(GOOD, **changes))  # type: ignore[arg-type]
