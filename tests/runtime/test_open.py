"""The reader of packages: against the Python reader, and fuzzed. tests/data/bad keeps what was ever found."""

from __future__ import annotations

import random
import struct
import sys
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pytest
from building import ADDRESS, FOUR_CORES, ROOT, Compile, call
from coded_packages import coded_package

from xnncc import pack
from xnncc.errors import BadPackage
from xnncc.pack import layout

OK, NOT_A_PACKAGE, NEWER, WRONG_LENGTH, CORRUPT, MALFORMED, UNKNOWN_SECTION, UNKNOWN_ENCODING = 0, 5, 6, 7, 8, 9, 10, 11
NO_MEMORY, ARENA_TOO_SMALL = 2, 14


def small(**changes: object) -> pack.Package:
    fields: dict[str, object] = {
        "name": "m", "target": "t", "build_id": -77, "arena_bytes": 128, "thread_scratch_bytes": 64, "op_count": 1,
        "inputs": (pack.Tensor("ä/x:0", (2, 3), "float32"),), "outputs": (pack.Tensor("y", (), "int8"),),
        "weights": b"weights",
    }  # fmt: skip
    return pack.Package(**(fields | changes))  # type: ignore[arg-type]


def with_state(**changes: object) -> pack.Package:
    """A package of one state between "h" and "hn"."""
    before, after = pack.Tensor("h", (2, 3), "float32"), pack.Tensor("hn", (2, 3), "float32")
    inputs, outputs = (pack.Tensor("x", (1,), "int8"), before), (pack.Tensor("y", (), "int8"), after)
    return small(inputs=inputs, outputs=outputs, **{"state_count": 1, **changes})


def with_variants(**changes: object) -> pack.Package:
    """A package of one state and two variants."""
    first = with_state()
    inputs, outputs = (
        (replace(side[0], shape=(7,) * len(side[0].shape)), side[1]) for side in (first.inputs, first.outputs)
    )
    return with_state(variants=(pack.Variant(640, 2, inputs, outputs),), **changes)


def statuses(program: Path, packages: list[bytes]) -> list[int]:
    """What xnnrt_open_memory says of each."""
    stream = b"".join(struct.pack("<I", len(data)) + data for data in packages)
    return [int(line) for line in call(program, stdin=stream).split()]


def mended(data: bytes) -> bytes:
    """``data`` with its file length and CRCs made right, as far as they can be found."""
    changed = bytearray(data)
    count = struct.unpack_from("<I", data, 12)[0]
    struct.pack_into("<Q", changed, 16, len(data))
    if count <= layout.MAX_SECTIONS and 64 + 40 * count <= len(data):
        for at in range(64, 64 + 40 * count, 40):
            offset, stored = struct.unpack_from("<QQ", changed, at + 16)
            if offset + stored <= len(data):
                struct.pack_into("<I", changed, at + 12, crc32(changed[offset : offset + stored]))
        struct.pack_into("<I", changed, 60, crc32(changed[64 : 64 + 40 * count], crc32(changed[:60])))
    return bytes(changed)


@pytest.fixture(scope="module")
def opener(compile_driver: Compile) -> Path:
    return compile_driver("drive_statuses", *ADDRESS, *FOUR_CORES)


def patched(data: bytes, at: int, fmt: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(fmt, changed, at, value)
    return bytes(changed)


def test_each_fault_has_its_status(opener: Path) -> None:
    good = pack.encode(small())
    meta = struct.unpack_from("<Q", good, 80)[0]
    cases = [
        (good, OK),
        (b"", NOT_A_PACKAGE),
        (b"\x7fELF" + good[4:], NOT_A_PACKAGE),
        (good[:40], WRONG_LENGTH),
        (good[:-1], WRONG_LENGTH),
        (good + b"\0", WRONG_LENGTH),
        (patched(good, 8, "<I", 2), NEWER),
        (patched(good, len(good) - 1, "<B", 0), CORRUPT),
        (patched(good, 24, "<q", 5), CORRUPT),
        (mended(patched(good, 8, "<I", 0)), MALFORMED),
        (mended(patched(good, 32, "<I", 1)), MALFORMED),
        (mended(patched(good, meta, "<Q", (1 << 40) + 1)), MALFORMED),
        (mended(patched(good, meta + 48 + 4, "<I", 14)), MALFORMED),
        (
            mended(patched(patched(good, 104, "<I", 0x21212121), 112, "<I", 0)),
            MALFORMED,
        ),  # no WGHT, but an optional one
        (pack.encode(small(extra=(pack.Section("NEWS", b"x", required=True),))), UNKNOWN_SECTION),
        (pack.encode(small(extra=(pack.Section("NEWS", b"x"), pack.Section("COOL", b"")))), OK),
        (mended(patched(good, 64 + 40 + 4, "<I", 1)), MALFORMED),  # coded weights, but these are none
        (mended(patched(good, 64 + 40 + 4, "<I", 2)), UNKNOWN_ENCODING),
        (mended(patched(good, meta, "<Q", 1 << 40)), ARENA_TOO_SMALL),
    ]
    state = pack.encode(with_state())
    stat, meta = (struct.unpack_from("<Q", state, at)[0] for at in (64 + 80 + 16, 80))
    cases += [
        (state, OK),
        (mended(patched(state, stat, "<I", 0)), MALFORMED),
        (mended(patched(state, stat, "<I", 3)), MALFORMED),
        (mended(patched(state, stat, "<I", 2)), MALFORMED),  # x and y differ in shape
        (mended(patched(state, meta + 48 + 80 + 4, "<I", 9)), MALFORMED),  # h is int32, hn float32
        (mended(patched(state, 64 + 80 + 4, "<I", 1)), UNKNOWN_ENCODING),
    ]
    assert statuses(opener, [data for data, _ in cases]) == [status for _, status in cases]


def test_variants_differ_in_sizes_alone(opener: Path) -> None:
    good = pack.encode(with_variants())
    entry = 64 + 3 * 40
    meta, vari = (struct.unpack_from("<Q", good, at)[0] for at in (80, entry + 16))
    assert good[entry : entry + 4] == b"VARI"
    x, h = vari + 48, vari + 48 + 80
    cases = [
        (good, OK),
        (mended(patched(good, vari, "<Q", 1 << 20)), ARENA_TOO_SMALL),  # its arena counts too
        (mended(patched(good, vari, "<Q", (1 << 40) + 1)), MALFORMED),
        (mended(patched(good, vari + 8, "<Q", 128)), MALFORMED),  # another scratch
        (mended(patched(good, vari + 16, "<I", 5)), OK),  # other operators
        (mended(patched(patched(good, vari + 16, "<I", (1 << 31) - 2), meta + 16, "<I", 2)), MALFORMED),  # too many
        (mended(patched(good, vari + 40, "<Q", 64)), MALFORMED),  # prepared memory of its own
        (mended(patched(good, x + 16, "<Q", 99)), OK),
        (mended(patched(good, x + 4, "<I", 6)), MALFORMED),  # another dtype
        (mended(patched(good, x + 8, "<I", 2)), MALFORMED),  # another rank
        (mended(patched(good, h + 16, "<Q", 3)), MALFORMED),  # another state
        (mended(patched(good, entry + 4, "<I", 1)), UNKNOWN_ENCODING),
        (mended(patched(good, len(good) - 2, "<B", 65)), MALFORMED),  # another name
    ]
    assert statuses(opener, [data for data, _ in cases]) == [status for _, status in cases]


def test_crc_of_every_length(opener: Path) -> None:
    packages = [pack.encode(small(weights=bytes(range(3, 3 + length)))) for length in range(40)]
    assert statuses(opener, packages) == [OK] * 40


def test_agrees_with_the_python_reader(opener: Path) -> None:
    """C opens exactly what Python reads, on 6000 packages with 1 to 3 damaged places and good CRCs. Coded weights are
    decoded by C alone, so there C may refuse more."""
    choose = random.Random(7)
    coded = pack.Section("GOLD", b"g" * 70, encoding=1, decoded_bytes=99)
    goods = [pack.encode(small()), pack.encode(small(extra=(coded,), outputs=(), weights=b""))]
    goods += [pack.encode(with_state()), pack.encode(with_variants())]
    goods += [pack.encode(coded_package(1, "range", ((5, 3), (4,)))[0])]
    packages = []
    for _ in range(6000):
        data = bytearray(choose.choice(goods))
        for _ in range(choose.randint(1, 3)):
            at = choose.choice([choose.randrange(len(data)), choose.randrange(64, 192), choose.randrange(192, 320)])
            data[at] = choose.choice([0, 1, 2, 65, 128, 255, data[at] ^ 1 << choose.randrange(8)])
        packages.append(mended(bytes(data)))
    found = statuses(opener, packages)
    assert found.count(OK) > 300
    assert found.count(MALFORMED) > 300
    for data, status in zip(packages, found, strict=True):
        try:
            is_coded = pack.decode(data).blob_bytes is not None
            assert status in (OK, NO_MEMORY, ARENA_TOO_SMALL) or (is_coded and status == MALFORMED), data.hex()
        except BadPackage:
            assert status not in (OK, NO_MEMORY, ARENA_TOO_SMALL), data.hex()


def test_packages_that_once_did_harm(opener: Path) -> None:
    files = sorted((ROOT / "tests" / "data" / "bad").glob("*.xnn"))
    assert len(statuses(opener, [file.read_bytes() for file in files])) == len(files)


def test_twenty_thousand_damaged_packages() -> None:
    talk = call(sys.executable, ROOT / "tools" / "fuzz_package.py", "--inputs", "20000")
    assert "nothing found" in talk
