"""Plain values as bytes: None, booleans, whole numbers, floats, text, lists, nested; short things take one byte.

A first byte says what follows:

    0x00-0x7f  the number itself        0xc0 None   0xc1 False   0xc2 True
    0x80-0x9f  a list of 0-31 values    0xc3 float32   0xc4 float64, little endian
    0xa0-0xbf  text of 0-31 bytes       0xc5 number, 0xc6 list's length, 0xc7 text's length as a varint after it
                                        0xc8 negative number: -1 - varint

Varints have seven bits a byte, low ones first. What is read is not trusted: depth, lengths and the sum of all values
are bounded, and every length is compared with the bytes that are left.
"""

from __future__ import annotations

import struct
from typing import Any

from ..errors import BadModel

MAX_DEPTH = 64
MAX_VALUES = 4_000_000  # in one document
MAX_VARINT_BYTES = 10

_NONE, _FALSE, _TRUE, _FLOAT32, _FLOAT64, _NUMBER, _LIST, _TEXT, _NEGATIVE = range(0xC0, 0xC9)
_CONSTANTS = {_NONE: None, _FALSE: False, _TRUE: True}


def encode_plain(value: Any) -> bytes:
    """Return ``value`` as bytes: equal values give equal bytes; tuples become lists."""
    out = bytearray()
    _put(out, value)
    return bytes(out)


def decode_plain(data: bytes, what: str) -> Any:
    """Return the value in ``data``. ``what`` names the file in messages.

    Raises: BadModel.
    """
    reader = _Reader(data, what)
    value = reader.value(0)
    if reader.at != len(data):
        raise reader.bad(f"{len(data) - reader.at} bytes are left after its records")
    return value


def _put(out: bytearray, value: Any) -> None:
    if value is None or isinstance(value, bool):
        out.append(_NONE if value is None else _TRUE if value else _FALSE)
    elif isinstance(value, int):
        if 0 <= value < 0x80:
            out.append(value)
        else:
            out.append(_NUMBER if value >= 0 else _NEGATIVE)
            put_varint(out, value if value >= 0 else -1 - value)
    elif isinstance(value, float):
        short = struct.pack("<f", value) if abs(value) < 1e38 or value in (float("inf"), -float("inf")) else b""
        is_short = len(short) == 4 and struct.unpack("<f", short)[0] == value
        out.append(_FLOAT32 if is_short else _FLOAT64)
        out += short if is_short else struct.pack("<d", value)
    elif isinstance(value, str):
        text = value.encode("utf-8")
        _put_head(out, 0xA0, _TEXT, len(text))
        out += text
    elif isinstance(value, (list, tuple)):
        _put_head(out, 0x80, _LIST, len(value))
        for item in value:
            _put(out, item)
    else:
        raise TypeError(f"{type(value).__name__} is no plain value")


def _put_head(out: bytearray, short: int, long: int, length: int) -> None:
    if length < 0x20:
        out.append(short + length)
    else:
        out.append(long)
        put_varint(out, length)


def put_varint(out: bytearray, number: int) -> None:
    """Append a number of at least 0."""
    while number > 0x7F:
        out.append(0x80 | (number & 0x7F))
        number >>= 7
    out.append(number)


class _Reader:
    """Reads values from bytes that nobody vouches for."""

    def __init__(self, data: bytes, what: str) -> None:
        self.data, self.what, self.at, self.values = data, what, 0, 0

    def bad(self, why: str) -> BadModel:
        return BadModel(self.what, f"its records are damaged: {why}", "Get the file again.")

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise self.bad(f"{count} bytes wanted, {len(self.data) - self.at} left")
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self) -> int:
        number = 0
        for position in range(MAX_VARINT_BYTES):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << (7 * position)
            if byte < 0x80:
                return number
        raise self.bad(f"a number of more than {MAX_VARINT_BYTES} bytes")

    def value(self, depth: int) -> Any:
        self.values += 1
        if depth > MAX_DEPTH or self.values > MAX_VALUES:
            raise self.bad(f"nested deeper than {MAX_DEPTH}, or more than {MAX_VALUES} values")
        head = self.take(1)[0]
        if head < 0x80:
            return head
        if head < 0xA0 or head == _LIST:
            return self.list(head - 0x80 if head < 0xA0 else self.varint(), depth)
        if head < 0xC0 or head == _TEXT:
            return self.text(head - 0xA0 if head < 0xC0 else self.varint())
        if head in _CONSTANTS:
            return _CONSTANTS[head]
        if head == _FLOAT32:
            return struct.unpack("<f", self.take(4))[0]
        if head == _FLOAT64:
            return struct.unpack("<d", self.take(8))[0]
        if head in (_NUMBER, _NEGATIVE):
            number = self.varint()
            return number if head == _NUMBER else -1 - number
        raise self.bad(f"byte 0x{head:02x} begins no value")

    def list(self, count: int, depth: int) -> list[Any]:
        if count > len(self.data) - self.at:  # every value takes a byte at least
            raise self.bad(f"a list of {count}, {len(self.data) - self.at} bytes left")
        return [self.value(depth + 1) for _ in range(count)]

    def text(self, count: int) -> str:
        try:
            return self.take(count).decode("utf-8")
        except UnicodeDecodeError:
            raise self.bad("text that is not UTF-8") from None
