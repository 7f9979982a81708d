"""Write a package: the same contents always give the same bytes (docs/package.md)."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from zlib import crc32

from xnncc.errors import BadPackage, OutputError
from xnncc.pack import layout
from xnncc.pack.layout import Package, Section, Tensor, Variant, aligned


def write(path: str | os.PathLike[str], package: Package) -> None:
    """Write ``package`` to ``path``: the file appears whole or not at all.

    Raises:
        BadPackage: a name, size or number that the format cannot hold.
        OutputError: the folder cannot be written or the disk is full.
    """
    replace_file(Path(path), _chunks(package))


def encode(package: Package) -> bytes:
    """Return the bytes of ``package``.

    Raises:
        BadPackage: a name, size or number that the format cannot hold.
    """
    return b"".join(_chunks(package))


def replace_file(path: Path, chunks: list[bytes | memoryview]) -> None:
    """Write ``chunks`` beside ``path``, then rename over it.

    Raises:
        OutputError: the folder cannot be written or the disk is full.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(aside, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
        os.replace(aside, path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"'{path}' cannot be written", reason, "Give another output folder, or make room") from error
    finally:
        with suppress(OSError):
            aside.unlink()


def _chunks(package: Package) -> list[bytes | memoryview]:
    """Return the file in pieces, so that the weights are not copied."""
    sections = (
        Section("META", _encode_meta(package), required=True),
        _weights(package),
        *_states(package),
        *_variants(package),
        *package.extra,
    )
    _require(package, len(sections) <= layout.MAX_SECTIONS, f"{len(sections)} sections, at most {layout.MAX_SECTIONS}")
    kinds = [section.kind for section in package.extra]
    own = {"META", "WGHT", "STAT", "VARI"}
    _require(package, not own & set(kinds), "META, WGHT, STAT and VARI are written from the package's own fields")
    _require(package, -(1 << 63) <= package.build_id < 1 << 63, "a build id has 64 bits")
    table, contents = b"", list[bytes | memoryview]()
    end = layout.HEADER.size + layout.ENTRY.size * len(sections)
    for section in sections:
        data = memoryview(section.data).cast("B")
        gap = aligned(end) - end
        contents += [bytes(gap), data]
        table += _encode_entry(package, section, end + gap, data)
        end += gap + len(data)
    head = layout.HEADER.pack(
        layout.MAGIC, layout.FORMAT_VERSION, len(sections), end, package.build_id, bytes(28), 0
    )[: layout.HEADER_CRC_OFFSET]  # fmt: skip
    return [head, crc32(table, crc32(head)).to_bytes(4, "little"), table, *contents]


def _weights(package: Package) -> Section:
    """Section 6 of docs/package.md."""
    coded = package.blob_bytes is not None
    _require(package, not coded or package.weights_bytes > 0, "an empty blob is not coded")
    encoding = layout.ENCODING_CODED if coded else layout.ENCODING_RAW
    return Section("WGHT", package.weights, encoding, required=True, decoded_bytes=package.blob_bytes)  # type: ignore[arg-type]


def _encode_entry(package: Package, section: Section, offset: int, data: memoryview) -> bytes:
    """Section 3 of docs/package.md."""
    decoded = len(data) if section.decoded_bytes is None else section.decoded_bytes
    known = len(section.kind) == 4 and section.kind.isascii() and section.kind.isprintable()
    _require(package, known, f"section kind {section.kind!r} is not four ASCII characters")
    coded = section.encoding != layout.ENCODING_RAW
    _require(package, coded or decoded == len(data), f"section {section.kind}: raw, yet of another decoded length")
    _require(package, 0 <= section.encoding < 1 << 32, f"section {section.kind}: encoding {section.encoding}")
    _require(package, 0 <= decoded <= layout.MAX_BYTES, f"section {section.kind}: {decoded} bytes decoded")
    flags = layout.FLAG_REQUIRED if section.required else 0
    return layout.ENTRY.pack(
        section.kind.encode("ascii"), section.encoding, flags, crc32(data), offset, len(data), decoded
    )


def _encode_meta(package: Package) -> bytes:
    """Section 5 of docs/package.md."""
    strings = _Strings(package)
    model, target = strings.add("model name", package.name), strings.add("target name", package.target)
    for what, tensors in (("input", package.inputs), ("output", package.outputs)):
        names = [tensor.name for tensor in tensors]
        twice = sorted({name for name in names if names.count(name) > 1})
        _require(package, not twice, f"two {what}s are named {', '.join(map(repr, twice))}")
        _require(package, len(names) <= layout.MAX_TENSORS, f"{len(names)} {what}s, at most {layout.MAX_TENSORS}")
    records = b"".join(_encode_tensor(package, tensor, strings) for tensor in (*package.inputs, *package.outputs))
    length = len(strings.data)
    _require(package, length <= layout.MAX_STRING_BYTES, f"{length} bytes of names, at most 1 MiB")
    for what, size in (
        ("arena", package.arena_bytes),
        ("thread scratch", package.thread_scratch_bytes),
        ("prepared memory", package.prepared_bytes),
    ):
        _require(package, 0 <= size <= layout.MAX_BYTES, f"{size} bytes of {what}, at most 2^40")
    _require(package, 0 <= package.op_count <= layout.MAX_OPS, f"{package.op_count} operators")
    fixed = layout.META.pack(
        package.arena_bytes, package.thread_scratch_bytes, package.op_count, len(package.inputs), len(package.outputs),
        length, model, target, package.prepared_bytes,
    )  # fmt: skip
    return fixed + records + bytes(strings.data)


def _states(package: Package) -> list[Section]:
    """Section 6.1 of docs/package.md."""
    count = package.state_count
    if count == 0:
        return []
    _require(package, 0 < count <= min(len(package.inputs), len(package.outputs)), f"{count} states are too many")
    for before, after in zip(package.inputs[-count:], package.outputs[-count:], strict=True):
        same = (before.dtype, before.shape) == (after.dtype, after.shape)
        _require(package, same, f"state '{before.name}' is not of the dtype and shape of '{after.name}'")
    return [Section("STAT", layout.STAT.pack(count), required=True)]


def _variants(package: Package) -> list[Section]:
    """Section 6.2 of docs/package.md."""
    sections, count = [], package.state_count
    for index, variant in enumerate(package.variants):
        pairs = ((package.inputs, variant.inputs), (package.outputs, variant.outputs))
        for first, further in pairs:
            same = [_kind(t) for t in first] == [_kind(t) for t in further]
            _require(package, same, f"variant {index + 1} has other tensors than the first")
            _require(package, count == 0 or first[-count:] == further[-count:], "a state changes its shape")
        earlier: list[Package | Variant] = [package, *package.variants[:index]]
        _require(package, all(variant.inputs != e.inputs for e in earlier), "two variants take the same shapes")
        as_package = replace(
            package, arena_bytes=variant.arena_bytes, op_count=variant.op_count, inputs=variant.inputs,
            outputs=variant.outputs,
        )  # fmt: skip
        sections.append(Section("VARI", _encode_meta(as_package), required=True))
    ops = package.op_count + sum(variant.op_count for variant in package.variants)
    _require(package, ops <= layout.MAX_OPS, f"{ops} operators in all variants")
    return sections


def _kind(tensor: Tensor) -> tuple[str, str, int]:
    return tensor.name, tensor.dtype, len(tensor.shape)


def _encode_tensor(package: Package, tensor: Tensor, strings: _Strings) -> bytes:
    """Section 5.2 of docs/package.md."""
    what = f"tensor {tensor.name!r}"
    _require(package, tensor.dtype in layout.DTYPES, f"{what}: dtype {tensor.dtype!r}, not one of {[*layout.DTYPES]}")
    _require(package, len(tensor.shape) <= layout.MAX_RANK, f"{what}: {len(tensor.shape)} dimensions, at most 8")
    code, size = layout.DTYPES[tensor.dtype]
    for dim in tensor.shape:
        size *= dim
        _require(package, dim >= 0 and size <= layout.MAX_BYTES, f"{what}: shape {list(tensor.shape)} is too large")
    dims = (*tensor.shape, *[0] * (layout.MAX_RANK - len(tensor.shape)))
    return layout.TENSOR.pack(strings.add("tensor name", tensor.name), code, len(tensor.shape), 0, *dims)


class _Strings:
    """Section 5.3 of docs/package.md: every different string once, in order of first use."""

    def __init__(self, package: Package) -> None:
        self.package, self.data, self.offsets = package, bytearray(), dict[str, int]()

    def add(self, what: str, text: str) -> int:
        """Return the offset of ``text``."""
        if text not in self.offsets:
            good = text != "" and "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
            _require(self.package, good, f"{what} {text!r} is empty or has characters that UTF-8 or C cannot hold")
            self.offsets[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self.offsets[text]


def _require(package: Package, good: bool, why: str) -> None:
    if not good:
        raise BadPackage(f"model '{package.name}' does not fit a package", why, "Change the model; see docs/package.md")
