"""docs/package.md says the same as the code."""

from __future__ import annotations

import re
from pathlib import Path

from xnncc import pack
from xnncc.pack import layout

ROOT = Path(__file__).resolve().parents[2]
DOCS = (ROOT / "docs" / "package.md").read_text(encoding="utf-8")
OPEN_C = (ROOT / "xnncc" / "runtime" / "src" / "open.c").read_text()
TINY = pack.Package(
    "tiny", "linux-x86-64", 0x1122334455667788, 256, 64, 2, (pack.Tensor("x", (1, 4), "float32"),),
    (pack.Tensor("y", (1, 2), "float32"),), bytes(range(8)),
)  # fmt: skip


def dump(data: bytes) -> str:
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:04x}  {row.hex(' '):<47}  {text}")
    return "\n".join(lines)


def test_the_dump_in_the_docs_is_what_is_written() -> None:
    assert f"```\n{dump(pack.encode(TINY))}\n```" in DOCS


def test_the_dtypes_in_the_docs_and_the_runtime_are_ours() -> None:
    table = DOCS.split("## 7. Element types")[1].split("## 8.")[0]
    documented = {name: (int(code), int(size)) for code, name, size in re.findall(r"\| (\d+) \| (\w+) \| (\d) ", table)}
    assert documented == layout.DTYPES
    header = (ROOT / "xnncc" / "runtime" / "include" / "xnnrt.h").read_text()
    enum = header.split("typedef enum xnnrt_dtype {")[1].split("}")[0]
    codes = {name.lower(): int(code) for name, code in re.findall(r"XNNRT_(\w+) = (\d+)", enum)}
    assert codes == {name: code for name, (code, _) in layout.DTYPES.items()}


def test_sizes_and_limits_are_the_same_in_c() -> None:
    in_c = {name: int(value) for name, value in re.findall(r"\b([A-Z_]+) = (\d+)\b(?! <<)", OPEN_C)}
    assert in_c["HEADER_BYTES"] == layout.HEADER.size
    assert in_c["ENTRY_BYTES"] == layout.ENTRY.size
    assert in_c["META_BYTES"] == layout.META.size
    assert in_c["TENSOR_BYTES"] == layout.TENSOR.size
    assert in_c["STAT_BYTES"] == layout.STAT.size
    assert in_c["FORMAT_VERSION"] == layout.FORMAT_VERSION
    assert in_c["MAX_SECTIONS"] == layout.MAX_SECTIONS
    assert in_c["MAX_TENSORS"] == layout.MAX_TENSORS
    assert "MAX_STRINGS = 1 << 20" in OPEN_C
    assert layout.MAX_STRING_BYTES == 1 << 20
    assert "MAX_BYTES ((uint64_t)1 << 40)" in OPEN_C
    assert layout.MAX_BYTES == 1 << 40


def test_size_of_a_tensor() -> None:
    assert pack.Tensor("x", (1, 3, 5), "float16").size_bytes == 30
    assert pack.Tensor("x", (), "int64").size_bytes == 8
    assert pack.Tensor("x", (3, 0), "int64").size_bytes == 0
