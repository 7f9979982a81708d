"""Reading packages that are cut, changed, too new or made to hurt; what was written is what is read."""

from __future__ import annotations

import struct
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xnncc import pack
from xnncc.errors import BadPackage
from xnncc.pack import layout

TINY = pack.Package(
    "tiny", "linux-x86-64", -1, 256, 64, 2, (pack.Tensor("x", (1, 4), "float32"),),
    (pack.Tensor("y", (1, 2), "float32"),), bytes(range(8)),
)  # fmt: skip
GOOD = pack.encode(TINY)

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
shapes = st.lists(st.integers(0, 20), max_size=8).map(tuple)
tensors = st.lists(
    st.builds(pack.Tensor, names, shapes, st.sampled_from([*layout.DTYPES])), max_size=5, unique_by=lambda t: t.name
).map(tuple)
kinds = st.text("ABCDXYZ019", min_size=4, max_size=4)
sections = st.one_of(
    st.builds(pack.Section, kinds, st.binary(max_size=200)),
    st.builds(pack.Section, kinds, st.binary(max_size=200), st.integers(1, 9), st.just(False), st.integers(0, 1 << 40)),
)
packages = st.builds(
    pack.Package, names, names, st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 1 << 40),
    st.integers(0, 1 << 40), st.integers(0, (1 << 31) - 1), tensors, tensors, st.binary(max_size=300),
    st.lists(sections, max_size=4).map(tuple),
)  # fmt: skip


def refusal(data: bytes) -> str:
    with pytest.raises(BadPackage) as caught:
        pack.decode(data, "dir/m.xnn")
    assert str(caught.value).startswith("'dir/m.xnn' is not a good package: ")
    assert caught.value.next
    return caught.value.why


def mended(data: bytes | bytearray) -> bytes:
    """``data`` with good CRCs and length: the damage is then found by what it says, not by the CRC."""
    changed = bytearray(data)
    count = struct.unpack_from("<I", data, 12)[0]
    struct.pack_into("<Q", changed, 16, len(data))
    for at in range(64, 64 + 40 * count, 40):
        offset, stored = struct.unpack_from("<QQ", changed, at + 16)
        struct.pack_into("<I", changed, at + 12, crc32(changed[offset : offset + stored]))
    struct.pack_into("<I", changed, 60, crc32(changed[64 : 64 + 40 * count], crc32(changed[:60])))
    return bytes(changed)


def patched(at: int, fmt: str, *values: object) -> bytes:
    changed = bytearray(GOOD)
    struct.pack_into(fmt, changed, at, *values)
    return mended(changed)


@given(packages)
@settings(max_examples=150, deadline=None)
def test_reads_what_was_written(package: pack.Package) -> None:
    data = pack.encode(package)
    assert pack.decode(data) == package
    assert pack.encode(pack.decode(data)) == data


def test_refuses_every_single_changed_bit() -> None:
    for bit in range(8 * len(GOOD)):
        changed = bytearray(GOOD)
        changed[bit // 8] ^= 1 << bit % 8
        refusal(bytes(changed))


def test_refuses_every_truncation() -> None:
    for length in range(len(GOOD)):
        refusal(GOOD[:length])
    assert "cut off, or something was appended" in refusal(GOOD + b"\0")


@given(st.binary(max_size=200))
@example(layout.MAGIC)
@settings(max_examples=200, deadline=None)
def test_refuses_anything_else(data: bytes) -> None:
    refusal(data)
    refusal(layout.MAGIC + data)


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_survives_damage_with_good_checksums(data: st.DataObject) -> None:
    """Reads a Package or raises BadPackage, whatever the numbers say: no other error, nothing endless."""
    changed = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(changed) - 1))
        changed[at] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 255]))
    struct.pack_into("<I", changed, 12, struct.unpack_from("<I", changed, 12)[0] % 10)
    try:
        pack.decode(mended(changed))
    except BadPackage as error:
        assert error.why


def test_names_the_newer_version() -> None:
    changed = bytearray(GOOD)
    struct.pack_into("<I", changed, 8, 3)
    assert refusal(bytes(changed)) == "format version 3, this xnncc reads up to 1"


META = struct.unpack_from("<Q", GOOD, 80)[0]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x7fELF" + GOOD[4:], "not an .xnn package: it begins with other bytes"),
        (GOOD[:30], "cut off after 30 bytes"),
        (GOOD[:-1] + b"\0", "the checksum of section 'WGHT' does not fit: the file is damaged"),
        (patched(8, "<I", 0), "the header has values that no writer writes"),
        (patched(40, "<I", 1), "the header has values that no writer writes"),
        (patched(64 + 8, "<I", 3), "section 'META' has unknown flags 0x3"),
        (patched(104 + 4, "<I", 9), "section 'WGHT' is coded in an unknown way (number 9)"),
        (patched(104 + 16, "<Q", 0), "section 'WGHT' is not where it must be"),
        (patched(104 + 32, "<Q", 9), "section 'WGHT' cannot be 9 bytes long"),
        (patched(104, "<4s", b"NEWS"), "it needs section 'NEWS', which is not known"),
        (patched(104, "<4s", b"\1\2\3\xff"), "it needs section 0x010203ff, which is not known"),
        (patched(104, "<4s", b"META"), "section 'META' occurs twice"),
        (patched(104, "<4sII", b"NEWS", 0, 0), "section 'WGHT' is missing"),
        (patched(104 + 24, "<QQ", 7, 7), "1 bytes belong to no section"),
        (patched(META - 1, "<B", 1), "section 'META' is not where it must be"),
        (patched(META, "<Q", 1 << 41), "2199023255552 bytes of arena, 64 of scratch or 2 operators cannot be"),
        (patched(META + 20, "<I", 1025), "1025 inputs and 1 outputs are too many"),
        (patched(META + 20, "<I", 2), "its description is not as long as its parts"),
        (patched(META + 28, "<I", 21), "its description is not as long as its parts"),
        (patched(META + 32, "<I", 1), "no name begins at byte 1"),
        (patched(META + 36, "<I", 4000000000), "no name begins at byte 4000000000"),
        (patched(META + 48 + 4, "<I", 14), "tensor 'x' has an unknown element type (number 14)"),
        (patched(META + 48 + 8, "<I", 9), "tensor 'x' has a malformed shape"),
        (patched(META + 48 + 8, "<I", 1), "tensor 'x' has a malformed shape"),
        (patched(META + 48 + 16, "<Q", 1 << 39), "tensor 'x' of shape [549755813888, 4] is too large"),
        (patched(META + 48 + 160, "<B", 0xFF), "its names are not UTF-8"),
        (patched(META + 48 + 160 + 21, "<B", 65), "its names do not end, or are too long"),
    ],
)
def test_says_what_is_wrong(data: bytes, why: str) -> None:
    assert refusal(data) == why


def test_keeps_optional_sections_it_does_not_know() -> None:
    extra = (pack.Section("GOLD", b"12"), pack.Section("CODE", b"x", encoding=4, decoded_bytes=1 << 20))
    fields = {**vars(TINY), "extra": extra}
    assert pack.decode(pack.encode(pack.Package(**fields))).extra == extra


def test_says_which_file_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadPackage, match=r"^'.*/gone\.xnn' cannot be read: no such file or directory\. Give the path"):
        pack.read(tmp_path / "gone.xnn")
    with pytest.raises(BadPackage, match="is a directory"):
        pack.read(tmp_path)


def test_reads_a_file(tmp_path: Path) -> None:
    pack.write(tmp_path / "m.xnn", TINY)
    assert pack.read(tmp_path / "m.xnn") == TINY
    assert pack.read(str(tmp_path / "m.xnn")).weights == bytes(range(8))


STATEFUL = pack.Package(**{**vars(TINY), "outputs": (pack.Tensor("xn", (1, 4), "float32"),), "state_count": 1})


def test_reads_states() -> None:
    data = pack.encode(STATEFUL)
    assert pack.decode(data).state_count == 1
    assert data[-4:] == b"\1\0\0\0"


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (struct.pack("<I", 0), "0 states do not fit its inputs and outputs"),
        (struct.pack("<I", 2), "2 states do not fit its inputs and outputs"),
    ],
)
def test_says_what_is_wrong_with_states(stored: bytes, why: str) -> None:
    assert refusal(mended(pack.encode(STATEFUL)[:-4] + stored)) == why


def test_refuses_states_of_different_shapes() -> None:
    """Written as an unknown section of the same name would be: the writer itself refuses."""
    other = pack.Package(**{**vars(TINY), "extra": (pack.Section("XTAT", struct.pack("<I", 1), required=True),)})
    data = mended(pack.encode(other).replace(b"XTAT", b"STAT"))
    assert refusal(data) == "state 'x' is not of the type and shape of 'y'"
