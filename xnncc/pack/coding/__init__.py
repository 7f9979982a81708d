"""Entropy coding of integer weights, lossless: what ``compress`` writes into ``.xq`` and ``build`` into ``.xnn``.

    encode([CodedTensor, ...]) -> bytes        the smallest of all coders, streams shared or apart
    decode(bytes) -> [CodedTensor, ...]        hostile until checked

docs/package.md sections 6.3 to 6.6 have the bytes; the C runtime decodes the same at open.
"""

from xnncc.pack.coding.blob import CodedBlob, decode_blob, encode_blob
from xnncc.pack.coding.code import Encoded, decode, encode, encode_with_sizes

__all__ = ["CodedBlob", "Encoded", "decode", "decode_blob", "encode", "encode_blob", "encode_with_sizes"]
