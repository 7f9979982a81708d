"""Protobuf's text format -> a tree of messages, without a schema: fields that only a fork of Caffe has stay readable.

    layer {                              Message: {"name": ["conv1"], "convolution_param": [Message]}
      name: "conv1"
      convolution_param { pad: 1 }       every value remembers its line, for messages
    }

Read: strings in both quotes (neighbours join), numbers, words, lists in brackets, messages in braces or angle
brackets, ``#`` comments, commas and semicolons between fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ...errors import BadModel

MAX_BYTES = 64 * 2**20  # the text only; a network of 1,000 layers has 500 KiB
MAX_DEPTH = 64

_TOKEN = re.compile(
    r"""(?P<space>[\s,;]+|\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<word>[-+]?[A-Za-z0-9_.][\w.+-]*)
      | (?P<mark>[{}<>:\[\]])""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True)
class Scalar:
    """A number, a word or a string, as it was written."""

    text: str
    is_string: bool
    line: int


@dataclass
class Message:
    """Fields in order, each with all its values: a field may be repeated."""

    line: int
    fields: dict[str, list[Value]] = field(default_factory=dict)

    def messages(self, name: str) -> list[Message]:
        """Return the values of a field that are messages."""
        return [value for value in self.fields.get(name, ()) if isinstance(value, Message)]

    def texts(self, name: str) -> list[str]:
        """Return the values of a field that are strings, words or numbers, as written."""
        return [value.text for value in self.fields.get(name, ()) if isinstance(value, Scalar)]


Value: TypeAlias = "Scalar | Message"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


def read_prototxt(path: Path) -> Message:
    """Return the whole file as one message.

    Raises:
        BadModel: not readable, no text, or no text in this format; names the line.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadModel(f"{path}", f"more than {MAX_BYTES // 2**20} MiB is no network description", _GIVE_TEXT)
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise BadModel(f"{path}", str(error.strerror or error).lower(), "Check the file.") from error
    except UnicodeDecodeError as error:
        raise BadModel(f"{path}", f"byte {error.start} is no text", _GIVE_TEXT) from error
    if not text.strip():
        raise BadModel(f"{path}", "the file is empty", "Fetch or export it again.")
    return _Parser(path, _tokens(path, text)).message(0, "")


_GIVE_TEXT = "Give the .prototxt; the weights (.caffemodel) lie beside it or come with --weights."


def _tokens(path: Path, text: str) -> list[_Token]:
    found, at, line = [], 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise BadModel(f"{path}", f"line {line}: unexpected {text[at]!r}", "The file is damaged or no prototxt.")
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(_Token(kind, match.group(), line))
        line += match.group().count("\n")
        at = match.end()
    found.append(_Token("end", "the end of the file", line))
    return found


class _Parser:
    """A recursive descent over the tokens; recursion is bounded by ``MAX_DEPTH``."""

    def __init__(self, path: Path, tokens: list[_Token]) -> None:
        self._path, self._tokens, self._at, self._depth = path, tokens, 0, 0

    def message(self, line: int, closing: str) -> Message:
        """Return the fields up to ``closing`` (the end of the file when empty), which is consumed."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._fault(f"messages are nested more than {MAX_DEPTH} deep")
        result = Message(line)
        while True:
            token = self._next()
            if token.kind == "end" and not closing:
                break
            if closing and token.text == closing and token.kind == "mark":
                break
            if token.kind == "end":
                raise self._fault(f"the file is cut off: the '{_opening(closing)}' of line {line} is never closed")
            if token.kind != "word" or not (token.text[0].isalpha() or token.text[0] == "_"):
                raise self._fault(f"expected a field's name, found {token.text!r}")
            result.fields.setdefault(token.text, []).extend(self._values(token.text))
        self._depth -= 1
        return result

    def _values(self, name: str) -> list[Value]:
        token = self._next()
        if token.kind == "mark" and token.text in _CLOSING:
            return [self.message(token.line, _CLOSING[token.text])]
        if token.text != ":":
            raise self._fault(f"expected ':' or '{{' after '{name}', found {token.text!r}")
        token = self._next()
        if token.kind == "mark" and token.text == "[":
            return self._list()
        return [self._value(token)]

    def _list(self) -> list[Value]:
        values: list[Value] = []
        while True:
            token = self._next()
            if token.kind == "mark" and token.text == "]":
                return values
            values.append(self._value(token))

    def _value(self, token: _Token) -> Value:
        if token.kind == "mark" and token.text in _CLOSING:
            return self.message(token.line, _CLOSING[token.text])
        if token.kind == "word":
            return Scalar(token.text, False, token.line)
        if token.kind == "string":
            text = _unquoted(token.text)
            while self._tokens[self._at].kind == "string":
                text += _unquoted(self._next().text)
            return Scalar(text, True, token.line)
        raise self._fault(f"expected a value, found {token.text!r}")

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _fault(self, why: str) -> BadModel:
        line = self._tokens[max(self._at - 1, 0)].line
        return BadModel(f"{self._path}", f"line {line}: {why}", "The file is damaged or no prototxt.")


def _opening(closing: str) -> str:
    return next(a for a, b in _CLOSING.items() if b == closing)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), text[1:-1])
