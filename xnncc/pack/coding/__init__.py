"""Entropy coding of integer weights, lossless: what ``compress`` writes into ``.xq`` and ``build`` into ``.xnn``.

    encode([CodedTensor, ...]) -> bytes        the smallest of all coders, streams shared or apart
    decode(bytes) -> [CodedTensor, ...]        hostile until checked

docs/package.md section 6.2 has the bytes; the C runtime decodes the same at open.
"""

from xnncc.pack.coding.code import Encoded, decode, encode, encode_with_sizes

__all__ = ["Encoded", "decode", "encode", "encode_with_sizes"]
