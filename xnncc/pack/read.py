"""Read a package. Its bytes are hostile until this file has checked them, in the order of docs/package.md section 9."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import NoReturn
from zlib import crc32

from xnncc.errors import BadPackage
from xnncc.pack import layout
from xnncc.pack.layout import Package, Section, Tensor, Variant, aligned

_DAMAGED = "Copy it again, or build it again with 'xnncc build'"
_NEWER = "Update xnncc: pip install --upgrade xnncc"


def read(path: str | os.PathLike[str]) -> Package:
    """Return what the package file ``path`` says.

    Raises:
        BadPackage: no such file, cut off, changed, of a newer version, or contradicting itself.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadPackage(f"'{path}' cannot be read", reason, "Give the path of an .xnn file") from error
    return decode(data, str(path))


def decode(data: bytes, path: str = "package") -> Package:
    """Return what the bytes of a package say; ``path`` is for messages. The weights are a view of ``data``.

    Raises:
        BadPackage: cut off, changed, of a newer version, or contradicting itself.
    """
    return _Reader(data, path).package()


class _Reader:
    """The bytes, and the name to complain with."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data, self.path = memoryview(data), path

    def package(self) -> Package:
        """Return the whole package, checked."""
        sections, build_id = self.header()
        entries = self.table(sections)
        meta = weights = states = blob_bytes = None
        extra, variants = [], []
        for kind, encoding, flags, crc, offset, stored, decoded in entries:
            contents = self.data[offset : offset + stored]
            if crc32(contents) != crc:
                self.refuse(f"the checksum of section {_show(kind)} does not fit: the file is damaged")
            if kind == layout.KIND_META:
                meta = contents
            elif kind == layout.KIND_WGHT:
                weights = contents
                blob_bytes = decoded if encoding == layout.ENCODING_CODED else None
            elif kind == layout.KIND_STAT:
                states = contents
            elif kind == layout.KIND_VARI:
                variants.append(contents)
            else:
                required = bool(flags & layout.FLAG_REQUIRED)
                decoded_bytes = None if encoding == layout.ENCODING_RAW else decoded
                extra.append(Section(kind.decode("latin-1"), bytes(contents), encoding, required, decoded_bytes))
        assert meta is not None and weights is not None  # table() has seen both
        package = replace(_Meta(self, meta).package(build_id, weights, tuple(extra)), blob_bytes=blob_bytes)
        package = package if states is None else self.with_states(package, states)
        return self.with_variants(package, meta, variants)

    def with_states(self, package: Package, data: memoryview) -> Package:
        """Section 6.1: return ``package`` with its count of states."""
        if len(data) != layout.STAT.size:
            self.refuse(f"its list of states is {len(data)} bytes long")
        (count,) = layout.STAT.unpack(data)
        if not 1 <= count <= min(len(package.inputs), len(package.outputs)):
            self.refuse(f"{count} states do not fit its inputs and outputs")
        for before, after in zip(package.inputs[-count:], package.outputs[-count:], strict=True):
            if (before.dtype, before.shape) != (after.dtype, after.shape):
                self.refuse(f"state {before.name!r} is not of the type and shape of {after.name!r}")
        return replace(package, state_count=count)

    def with_variants(self, package: Package, meta: memoryview, data: list[memoryview]) -> Package:
        """Section 6.2: return ``package`` with its variants."""
        found: list[Variant] = []
        for contents in data:
            other = _Meta(self, contents).package(package.build_id, package.weights, ())
            same = (package.thread_scratch_bytes, package.prepared_bytes, len(package.inputs), len(package.outputs))
            if same != (other.thread_scratch_bytes, other.prepared_bytes, len(other.inputs), len(other.outputs)):
                self.refuse("its variants need other memory, or have other inputs or outputs")
            if not _same_but_dims(meta, contents, len(other.inputs) + len(other.outputs)):
                self.refuse("the inputs and outputs of its variants differ in more than their sizes")
            count = package.state_count
            if count and (package.inputs[-count:], package.outputs[-count:]) != (
                other.inputs[-count:],
                other.outputs[-count:],
            ):
                self.refuse("the shape of a state depends on the variant")
            found.append(Variant(other.arena_bytes, other.op_count, other.inputs, other.outputs))
        if package.op_count + sum(variant.op_count for variant in found) > layout.MAX_OPS:
            self.refuse("its variants have too many operators")
        return replace(package, variants=tuple(found))

    def header(self) -> tuple[int, int]:
        """Section 2: return the number of sections and the build id."""
        if bytes(self.data[:8]) != layout.MAGIC:
            self.refuse("not an .xnn package: it begins with other bytes", "Give a file written by 'xnncc build'")
        if len(self.data) < layout.HEADER.size:
            self.refuse(f"cut off after {len(self.data)} bytes")
        _, version, sections, size, build_id, reserved, crc = layout.HEADER.unpack_from(self.data)
        if version > layout.FORMAT_VERSION:
            self.refuse(f"format version {version}, this xnncc reads up to {layout.FORMAT_VERSION}", _NEWER)
        if size != len(self.data):
            self.refuse(f"{len(self.data)} bytes long, but it says {size}: cut off, or something was appended")
        table_end = layout.HEADER.size + layout.ENTRY.size * sections
        if sections > layout.MAX_SECTIONS or table_end > size:
            self.refuse(f"{sections} sections do not fit")
        found = crc32(self.data[layout.HEADER.size : table_end], crc32(self.data[: layout.HEADER_CRC_OFFSET]))
        if found != crc:
            self.refuse("the checksum of the header does not fit: the file is damaged")
        if version != layout.FORMAT_VERSION or any(reserved):
            self.refuse("the header has values that no writer writes")
        return sections, build_id

    def table(self, sections: int) -> list[tuple[bytes, int, int, int, int, int, int]]:
        """Sections 3 and 4: return the table's entries; contents are inside the file."""
        size, end = len(self.data), layout.HEADER.size + layout.ENTRY.size * sections
        entries = list(layout.ENTRY.iter_unpack(self.data[layout.HEADER.size : end]))
        kinds = [entry[0] for entry in entries]
        for kind, encoding, flags, _, offset, stored, decoded in entries:
            raw = encoding == layout.ENCODING_RAW
            if flags & ~layout.FLAG_REQUIRED:
                self.refuse(f"section {_show(kind)} has unknown flags {flags:#x}")
            if offset != aligned(end) or offset > size or stored > size - offset or any(self.data[end:offset]):
                self.refuse(f"section {_show(kind)} is not where it must be")
            if decoded > layout.MAX_BYTES or (raw and decoded != stored):
                self.refuse(f"section {_show(kind)} cannot be {decoded} bytes long")
            if kind in (layout.KIND_META, layout.KIND_WGHT, layout.KIND_STAT, layout.KIND_VARI):
                is_known = encoding == layout.ENCODING_CODED and kind == layout.KIND_WGHT
                if not raw and (not is_known or not decoded):
                    self.refuse(f"section {_show(kind)} is coded in an unknown way (number {encoding})", _NEWER)
                if kinds.count(kind) > 1 and kind != layout.KIND_VARI:
                    self.refuse(f"section {_show(kind)} occurs twice")
            elif flags & layout.FLAG_REQUIRED:
                self.refuse(f"it needs section {_show(kind)}, which is not known", _NEWER)
            end = offset + stored
        if end != size:
            self.refuse(f"{size - end} bytes belong to no section")
        for kind in (layout.KIND_META, layout.KIND_WGHT):
            if kind not in kinds:
                self.refuse(f"section {_show(kind)} is missing")
        return entries

    def refuse(self, why: str, next: str = _DAMAGED) -> NoReturn:
        """Raise BadPackage."""
        raise BadPackage(f"'{self.path}' is not a good package", why, next)


class _Meta:
    """Section 5: the contents of META."""

    def __init__(self, reader: _Reader, data: memoryview) -> None:
        self.reader, self.data = reader, data
        self.strings = b""

    def package(self, build_id: int, weights: bytes | memoryview, extra: tuple[Section, ...]) -> Package:
        """Return the package that this META, these weights and these other sections make."""
        if len(self.data) < layout.META.size:
            self.reader.refuse(f"its description is only {len(self.data)} bytes long")
        arena, scratch, ops, inputs, outputs, strings, model, target, prepared = layout.META.unpack_from(self.data)
        if max(arena, scratch, prepared) > layout.MAX_BYTES or ops > layout.MAX_OPS:
            self.reader.refuse(f"{arena} bytes of arena, {scratch} of scratch or {ops} operators cannot be")
        if max(inputs, outputs) > layout.MAX_TENSORS:
            self.reader.refuse(f"{inputs} inputs and {outputs} outputs are too many")
        strings_at = layout.META.size + layout.TENSOR.size * (inputs + outputs)
        if strings_at > len(self.data) or len(self.data) - strings_at != strings:
            self.reader.refuse("its description is not as long as its parts")
        self.strings = self.checked_strings(bytes(self.data[strings_at:]))
        name, target_name = self.string(model), self.string(target)
        tensors = [self.tensor(layout.META.size + layout.TENSOR.size * i) for i in range(inputs + outputs)]
        return Package(
            name, target_name, build_id, arena, scratch, ops,
            tuple(tensors[:inputs]), tuple(tensors[inputs:]), weights, extra, prepared,
        )  # fmt: skip

    def checked_strings(self, strings: bytes) -> bytes:
        """Section 5.3: return ``strings`` if they end in NUL and are UTF-8."""
        if not 1 <= len(strings) <= layout.MAX_STRING_BYTES or strings[-1] != 0:
            self.reader.refuse("its names do not end, or are too long")
        try:
            strings.decode("utf-8")
        except UnicodeDecodeError:
            self.reader.refuse("its names are not UTF-8")
        return strings

    def string(self, offset: int) -> str:
        """Return the string that begins at ``offset``."""
        good = offset < len(self.strings) and (offset == 0 or self.strings[offset - 1] == 0)
        if not good or self.strings[offset] == 0:
            self.reader.refuse(f"no name begins at byte {offset}")
        return self.strings[offset : self.strings.index(0, offset)].decode("utf-8")

    def tensor(self, offset: int) -> Tensor:
        """Section 5.2: return the tensor whose record is at ``offset`` of META."""
        name_at, code, rank, reserved, *dims = layout.TENSOR.unpack_from(self.data, offset)
        name = self.string(name_at)
        dtype = layout.DTYPE_NAMES.get(code)
        if dtype is None:
            self.reader.refuse(f"tensor {name!r} has an unknown element type (number {code})", _NEWER)
        if rank > layout.MAX_RANK or reserved or any(dims[rank:]):
            self.reader.refuse(f"tensor {name!r} has a malformed shape")
        size = layout.DTYPES[dtype][1]
        for dim in dims[:rank]:
            size *= dim
            if dim > layout.MAX_BYTES or size > layout.MAX_BYTES:
                self.reader.refuse(f"tensor {name!r} of shape {dims[:rank]} is too large")
        return Tensor(name, tuple(dims[:rank]), dtype)


def _same_but_dims(meta: memoryview, other: memoryview, tensors: int) -> bool:
    """Return whether two METAs of as many tensors differ in arena, operators and dims alone."""
    at = layout.META.size
    fixed = layout.META.unpack_from(meta)[3:8] == layout.META.unpack_from(other)[3:8]
    records = all(
        meta[i : i + layout.TENSOR_DIMS] == other[i : i + layout.TENSOR_DIMS]
        for i in range(at, at + layout.TENSOR.size * tensors, layout.TENSOR.size)
    )
    strings_at = at + layout.TENSOR.size * tensors
    return fixed and records and meta[strings_at:] == other[strings_at:]


def _show(kind: bytes) -> str:
    """Return a section's kind for a message: as text if it is, else as hexadecimal digits."""
    text = kind.decode("latin-1")
    return f"'{text}'" if text.isascii() and text.isprintable() else f"0x{kind.hex()}"
