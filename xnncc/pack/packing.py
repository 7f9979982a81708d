"""Sections packed: the shortest of the bytes as they are, deflate with what small networks have in common, and LZMA.

A packed section begins with a byte: twice the place in ``_PACKINGS``, plus 1 when its data lie in planes.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Sequence

from ..errors import BadModel, UnsupportedModel

MAX_LZMA_BYTES = 1 << 20  # beyond, its gain over deflate on floats is not worth minutes

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


def damaged(what: str, why: str) -> BadModel:
    """Return the error of a file whose bytes make no sense."""
    return BadModel(what, f"it is damaged: {why}", "Get the file again.")


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, _COMMON)
    return packer.compress(data) + packer.flush()


def _inflate(data: bytes, limit: int) -> bytes:
    return zlib.decompressobj(-15, _COMMON).decompress(data, limit)


def _unlzma(data: bytes, limit: int) -> bytes:
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_LZMA).decompress(data, limit)


# (pack, unpack to at most so many bytes); the order is part of the format
_PACKINGS: tuple[tuple[Callable[[bytes], bytes], Callable[[bytes, int], bytes]], ...] = (
    (lambda data: data, lambda data, limit: data[:limit]),
    (_deflate, _inflate),
    (lambda data: lzma.compress(data, lzma.FORMAT_RAW, filters=_LZMA), _unlzma),
)


def packed(variants: Sequence[bytes]) -> bytes:
    """Return the shortest packing of the variants: the data as they are, and in planes."""
    tries = [
        bytes([2 * place + plane]) + pack(data)
        for plane, data in enumerate(variants)
        for place, (pack, _) in enumerate(_PACKINGS[:-1] if len(data) > MAX_LZMA_BYTES else _PACKINGS)
    ]
    return min(tries, key=len)


def is_in_planes(section: bytes) -> bool:
    """Whether the data of a packed section are its second variant."""
    return bool(section[0] & 1)


def unpacked(section: bytes, limit: int, what: str) -> bytes:
    """Return the data of a packed section, refused beyond ``limit`` bytes."""
    if not section or section[0] >> 1 >= len(_PACKINGS):
        raise damaged(what, "a section that is packed in no known way")
    try:
        data = _PACKINGS[section[0] >> 1][1](section[1:], limit + 1)
    except (zlib.error, lzma.LZMAError) as error:
        raise damaged(what, f"a section does not unpack ({error})") from None
    except MemoryError:
        raise UnsupportedModel(what, "this machine has too little memory to unpack it", "Use a larger one.") from None
    if len(data) > limit:
        raise damaged(what, f"a section of more than {limit} bytes")
    return data
