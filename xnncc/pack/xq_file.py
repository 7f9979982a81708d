"""The compressed model file ``.xq``: a graph, its weights coded, and what was lost. Reading it needs no TVM.

    bytes 0-3   "XQ1\\n"
    bytes 4-7   CRC-32 of everything after them, little endian
    varint      bytes of the graph section          varint   bytes of the coded section
    graph       packed: plain values [facts, records, constants]
    coded       the weights that are integers, by ``pack/coding``
    raw         packed: all other constants, one after another

``records`` is what ``ir/graph_records.py`` makes. ``constants`` has one entry for each constant in order of first use:
0 for the next one of the coded section, [shape, dtype] for one in the raw section. A packed section begins with the
way it is packed (``_PACKINGS``), the smallest of all. Everything is a function of the contents: same model, same bytes.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadModel, UnsupportedModel
from ..ir.coded import CodedTensor
from .plain import decode_plain, encode_plain, put_varint

MAGIC = b"XQ1\n"
MAX_GRAPH_BYTES = 64 << 20  # unpacked
MAX_RAW_BYTES = 2 << 30
MAX_RANK = 8
MAX_LZMA_BYTES = 1 << 20  # beyond, its gain over deflate on floats is not worth minutes
DTYPES = ("float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool")  # fmt: skip

# What small networks have in common; deflate refers to it instead of spelling it out. Never changed: files need it.
_COMMON = (
    b"_scale_bias_weight_running_mean_varkernel:0StatefulPartitionedCallmodel/sequential/depthwise_conv2d/BiasAdd"
    b"Identityinputoutputdataimageprobprobabilitieslogitssource recipe metric loss data sha256 bytes before safe"
    b"balanced max deep-compressionagreementtop1sqnrcosinetrainingcalibration.tmp_0batch_norm_.tmp_3pool2d_softmax_"
    b"/Sigmoid_output_0/Softmax_output_0/Concat_output_0/Reshape_output_0/Flatten_output_0/MaxPool_output_0"
    b"/GlobalAveragePool_output_0/Clip_output_0/Add_output_0/Mul_output_0/MatMul_output_0/Gemm_output_0/Relu_output_0"
    b"/conv1/Conv_output_0/fc1/Gemm_output_0conv1conv2pool1pool2fc1fc2relu1relu2int32float32"
)
_LZMA = [{"id": lzma.FILTER_LZMA1, "dict_size": 1 << 24, "lc": 3, "lp": 0, "pb": 0, "preset": 9}]


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


def encode_xq(file: XqFile) -> bytes:
    """Return the bytes of ``file``."""
    from .coding import encode

    coded = [one for one in file.constants if isinstance(one, CodedTensor)]
    raw = [one for one in file.constants if not isinstance(one, CodedTensor)]
    places = [0 if isinstance(one, CodedTensor) else [list(one.shape), str(one.dtype)] for one in file.constants]
    graph = _packed([encode_plain([[list(pair) for pair in file.facts.items()], file.records, places])])
    stream = encode(coded) if coded else b""
    body = bytearray()
    put_varint(body, len(graph))
    put_varint(body, len(stream))
    body += graph + stream
    body += _packed([b"".join(one.tobytes() for one in raw), _in_planes(raw)]) if raw else b""
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
    document = decode_plain(_unpacked(graph, MAX_GRAPH_BYTES, what), what)
    if not isinstance(document, list) or len(document) != 3:
        raise _bad(what, "no facts, records and constants")
    facts, records, places = document
    return XqFile(records, _constants(places, stream, rest, what), _facts(facts, what))


def _sections(body: bytes, what: str) -> tuple[bytes, bytes, bytes]:
    lengths, at = [], 0
    for _ in range(2):
        number = 0
        for shift in range(0, 35, 7):
            if at >= len(body):
                raise _bad(what, "it ends in its header")
            byte, at = body[at], at + 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        lengths.append(number)
    if sum(lengths) > len(body) - at:
        raise _bad(what, f"sections of {sum(lengths)} bytes, {len(body) - at} left")
    middle = at + lengths[0]
    return body[at:middle], body[middle : middle + lengths[1]], body[middle + lengths[1] :]


def _constants(places: Any, stream: bytes, rest: bytes, what: str) -> list[CodedTensor | np.ndarray]:
    from .coding import decode

    entries = [_entry(place, what) for place in places] if isinstance(places, list) else []
    coded = decode(stream) if stream else []
    if len(coded) != sum(entry is None for entry in entries):
        raise _bad(what, f"{len(coded)} coded weights, {sum(entry is None for entry in entries)} places for them")
    raw = iter(_raw_arrays([entry for entry in entries if entry is not None], rest, what))
    weights = iter(coded)
    return [next(weights) if entry is None else next(raw) for entry in entries]


def _entry(place: Any, what: str) -> tuple[tuple[int, ...], np.dtype] | None:
    """Return shape and dtype of a raw constant, None for a coded one."""
    if place == 0 and not isinstance(place, bool):
        return None
    if isinstance(place, list) and len(place) == 2 and place[1] in DTYPES and isinstance(place[0], list):
        dims = place[0]
        fits = len(dims) <= MAX_RANK and all(type(dim) is int and 0 <= dim <= MAX_RAW_BYTES for dim in dims)
        if fits:
            return tuple(dims), np.dtype(place[1])
    raise _bad(what, "a constant without shape or dtype")


def _raw_arrays(entries: list[tuple[tuple[int, ...], np.dtype]], rest: bytes, what: str) -> list[np.ndarray]:
    sizes = [int(np.prod(shape, dtype=object)) * dtype.itemsize for shape, dtype in entries]
    total = sum(sizes)
    if total > MAX_RAW_BYTES:
        raise _bad(what, f"{total} bytes of constants")
    data = _unpacked(rest, total, what) if rest else b""
    if len(data) != total:
        raise _bad(what, f"{len(data)} bytes of constants, {total} expected")
    if rest and _is_in_planes(rest):
        data = _from_planes(data, entries)
    arrays, at = [], 0
    for (shape, dtype), size in zip(entries, sizes, strict=True):
        arrays.append(np.frombuffer(data, dtype, size // dtype.itemsize, at).reshape(shape))
        at += size
    if any(array.dtype == bool and array.view(np.uint8).max(initial=0) > 1 for array in arrays):
        raise _bad(what, "a bool that is neither 0 nor 1")
    return arrays


def _in_planes(arrays: list[np.ndarray]) -> bytes:
    """Return the first bytes of all elements, then the second, ...: exponents of floats lie together then."""
    width = max(array.dtype.itemsize for array in arrays)
    planes = [array.reshape(-1).view(np.uint8).reshape(-1, array.dtype.itemsize) for array in arrays if array.size]
    return b"".join(
        plane[:, byte].tobytes() for byte in range(width) for plane in planes if byte < plane.shape[1]
    )


def _from_planes(data: bytes, entries: list[tuple[tuple[int, ...], np.dtype]]) -> bytes:
    counts = [(int(np.prod(shape, dtype=object)), dtype.itemsize) for shape, dtype in entries]
    parts = [np.empty((count, width), np.uint8) for count, width in counts]
    at, source = 0, np.frombuffer(data, np.uint8)
    for byte in range(max((width for _, width in counts), default=0)):
        for part in parts:
            if byte < part.shape[1]:
                part[:, byte] = source[at : at + len(part)]
                at += len(part)
    return b"".join(part.tobytes() for part in parts)


def _facts(pairs: Any, what: str) -> dict[str, Any]:
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 and isinstance(p[0], str) for p in pairs):
        raise _bad(what, "facts without names")
    return {name: value for name, value in pairs}


def _bad(what: str, why: str) -> BadModel:
    return BadModel(what, f"it is damaged: {why}", "Get the file again.")


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _COMMON)
    return packer.compress(data) + packer.flush()


def _inflate(data: bytes, limit: int) -> bytes:
    return zlib.decompressobj(-15, _COMMON).decompress(data, limit)


def _unlzma(data: bytes, limit: int) -> bytes:
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_LZMA).decompress(data, limit)


# The first byte of a packed section: twice the place here, plus 1 when the data lie in planes.
_PACKINGS: tuple[tuple[Callable[[bytes], bytes], Callable[[bytes, int], bytes]], ...] = (
    (lambda data: data, lambda data, limit: data[:limit]),
    (_deflate, _inflate),
    (lambda data: lzma.compress(data, lzma.FORMAT_RAW, filters=_LZMA), _unlzma),
)


def _packed(variants: list[bytes]) -> bytes:
    """Return the shortest packing of the variants: the data as they are, and in planes."""
    tries = [
        bytes([2 * place + plane]) + pack(data)
        for plane, data in enumerate(variants)
        for place, (pack, _) in enumerate(_PACKINGS[:-1] if len(data) > MAX_LZMA_BYTES else _PACKINGS)
    ]
    return min(tries, key=len)


def _is_in_planes(section: bytes) -> bool:
    return bool(section[0] & 1)


def _unpacked(section: bytes, limit: int, what: str) -> bytes:
    """Return the data of a packed section, refused beyond ``limit`` bytes."""
    if not section or section[0] >> 1 >= len(_PACKINGS):
        raise _bad(what, "a section that is packed in no known way")
    try:
        data = _PACKINGS[section[0] >> 1][1](section[1:], limit + 1)
    except (zlib.error, lzma.LZMAError) as error:
        raise _bad(what, f"a section does not unpack ({error})") from None
    except MemoryError:
        raise UnsupportedModel(what, "this machine has too little memory to unpack it", "Use a larger one.") from None
    if len(data) > limit:
        raise _bad(what, f"a section of more than {limit} bytes")
    return data
