"""The compressed model file ``.xq``: a graph, its weights coded, and what was lost. Reading it needs no TVM.

    bytes 0-3   "XQ1\\n"
    bytes 4-7   CRC-32 of everything after them, little endian
    varint      bytes of the graph section          varint   bytes of the coded section
    graph       packed: plain values [facts, records, constants]
    coded       the weights that are integers, by ``pack/coding``
    raw         packed: all other constants, one after another

``records`` is what ``ir/graph_records.py`` makes. ``constants`` has one entry for each constant in order of first use:
0 for the next one of the coded section, [shape, dtype] for one in the raw section, [shape, dtype, K] for one of K
values there (``xq_constants.py``). ``packing.py`` says how sections are packed. Everything is a function of the
contents: same model, same bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadModel, BadPackage
from ..ir.coded import CodedTensor
from .packing import damaged, packed, unpacked
from .plain import decode_plain, encode_plain, put_varint
from .xq_constants import in_planes, raw_arrays, raw_entry, raw_parts, raw_place

MAGIC = b"XQ1\n"
TRIAL_CODERS = ("range",)  # 20 times as fast as trying all of them; within 1 % on dense weights
MAX_GRAPH_BYTES = 64 << 20  # unpacked


@dataclass(frozen=True)
class XqFile:
    """The contents. ``constants``: in the order in which ``records`` use them. ``facts``: plain values by name."""

    records: Any
    constants: Sequence[CodedTensor | np.ndarray]
    facts: dict[str, Any] = field(default_factory=dict)


def write_xq(path: Path, file: XqFile) -> bytes:
    """Write ``file`` to ``path``, all or nothing, and return the bytes."""
    data = encode_xq(file)
    aside = path.with_name(f".{path.name}.part")
    aside.write_bytes(data)
    aside.replace(path)
    return data


def read_xq(path: Path) -> XqFile:
    """Return the contents of ``path``.

    Raises: BadModel.
    """
    return decode_xq(path.read_bytes(), str(path))


def encode_xq(file: XqFile, is_final: bool = True) -> bytes:
    """Return the bytes of ``file``; for a trial that is not ``is_final`` by the fastest coder, not the best of all."""
    from .coding import encode

    coded = [one for one in file.constants if isinstance(one, CodedTensor)]
    raw = [one for one in file.constants if not isinstance(one, CodedTensor)]
    tables = [raw_parts(one) for one in raw]
    entries = iter([raw_place(one, parts) for one, parts in zip(raw, tables, strict=True)])
    places = [0 if isinstance(one, CodedTensor) else next(entries) for one in file.constants]
    parts = [part for table in tables for part in table]
    graph = packed([encode_plain([[list(pair) for pair in file.facts.items()], file.records, places])])
    stream = (encode(coded) if is_final else encode(coded, TRIAL_CODERS)) if coded else b""
    body = bytearray()
    put_varint(body, len(graph))
    put_varint(body, len(stream))
    body += graph + stream
    body += packed([b"".join(one.tobytes() for one in parts), in_planes(parts)]) if parts else b""
    return MAGIC + zlib.crc32(body).to_bytes(4, "little") + bytes(body)


def decode_xq(data: bytes, what: str) -> XqFile:
    """Return the contents of ``data``; ``what`` names it in messages.

    Raises: BadModel.
    """
    if data[:2] != MAGIC[:2]:
        raise BadModel(what, "it does not begin like an .xq file", "Make it with `xnncc compress`.")
    if data[:4] != MAGIC:
        raise BadModel(what, f"it is of format {data[:4]!r}, this xnncc reads {MAGIC!r}", "Update xnncc.")
    body = data[8:]
    if zlib.crc32(body).to_bytes(4, "little") != data[4:8]:
        raise BadModel(what, "its checksum is wrong: it was cut or changed", "Get the file again.")
    graph, stream, rest = _sections(body, what)
    document = decode_plain(unpacked(graph, MAX_GRAPH_BYTES, what), what)
    if not isinstance(document, list) or len(document) != 3:
        raise damaged(what, "no facts, records and constants")
    facts, records, places = document
    return XqFile(records, _constants(places, stream, rest, what), _facts(facts, what))


def _sections(body: bytes, what: str) -> tuple[bytes, bytes, bytes]:
    lengths, at = [], 0
    for _ in range(2):
        number = 0
        for shift in range(0, 35, 7):
            if at >= len(body):
                raise damaged(what, "it ends in its header")
            byte, at = body[at], at + 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        lengths.append(number)
    if sum(lengths) > len(body) - at:
        raise damaged(what, f"sections of {sum(lengths)} bytes, {len(body) - at} left")
    middle = at + lengths[0]
    return body[at:middle], body[middle : middle + lengths[1]], body[middle + lengths[1] :]


def _constants(places: Any, stream: bytes, rest: bytes, what: str) -> list[CodedTensor | np.ndarray]:
    from .coding import decode

    entries = [raw_entry(place, what) for place in places] if isinstance(places, list) else []
    try:
        coded = decode(stream) if stream else []
    except BadPackage as error:
        raise damaged(what, f"its coded weights: {error.why or error.what}") from None
    if len(coded) != sum(entry is None for entry in entries):
        raise damaged(what, f"{len(coded)} coded weights, {sum(entry is None for entry in entries)} places for them")
    raw = iter(raw_arrays([entry for entry in entries if entry is not None], rest, what))
    weights = iter(coded)
    return [next(weights) if entry is None else next(raw) for entry in entries]


def _facts(pairs: Any, what: str) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for pair in pairs if isinstance(pairs, list) else [None]:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise damaged(what, "facts without names")
        facts[pair[0]] = pair[1]
    return facts
