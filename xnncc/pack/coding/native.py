"""The coders in C, when this machine has a compiler: fifty times as fast as the plain ones, and the same bytes.

The decoders are those of the runtime. The library is compiled once and kept in the user's cache; without a compiler
``load`` returns None and everything goes on in Python.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

_HERE = Path(__file__).resolve().parent
_RUNTIME = _HERE.parents[1] / "runtime"
_SOURCES = (
    _HERE / "encode_native.c",
    *(
        _RUNTIME / "src" / f"{name}.c"
        for name in ("decode_stream", "decode_range", "decode_huffman", "decode_adaptive", "decode_runs")
    ),
)
_FLAGS = ("-std=c99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{_RUNTIME / 'src'}")
_COMPILERS = ("cc", "gcc", "clang")

Shapes = Sequence[tuple[int, int]]


class Native:
    """The compiled coders, called with numpy arrays."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.xnncc_encode_range.restype = ctypes.c_size_t
        library.xnncc_free.restype = None

    def encode_range(self, tensors: Sequence[np.ndarray], mode: int, shift: int = 0) -> tuple[bytes, list[int]]:
        """As ``range_coder.encode_range``."""
        values = np.concatenate([np.ascontiguousarray(t, np.int32).reshape(-1) for t in tensors])
        out, ends = ctypes.POINTER(ctypes.c_uint8)(), np.zeros(len(tensors), np.uint64)
        sizes = _sizes([t.shape for t in tensors])
        length = self.library.xnncc_encode_range(
            _pointer(values), ctypes.c_size_t(len(tensors)), *map(_pointer, sizes), ctypes.c_uint32(mode),
            ctypes.c_uint32(shift),
            ctypes.byref(out), _pointer(ends),
        )  # fmt: skip
        data = ctypes.string_at(out, length)
        self.library.xnncc_free(out)
        return data, [*map(int, ends[:-1]), length]

    def decode(self, coder: int, first: int, second: int, data: bytes, shapes: Shapes) -> list[np.ndarray] | None:
        """Return the tensors of a stream, [rows, columns] int32, or None when it is damaged."""
        values = np.empty(sum(rows * columns for rows, columns in shapes), np.int32)
        sizes = _sizes(shapes)  # a name of their own: C reads them while Python would have dropped them
        good = self.library.xnncc_decode(
            ctypes.c_uint32(coder), ctypes.c_uint32(first), ctypes.c_uint32(second), data, ctypes.c_size_t(len(data)),
            ctypes.c_size_t(len(shapes)), *map(_pointer, sizes), _pointer(values),
        )  # fmt: skip
        if not good:
            return None
        ends = np.cumsum([rows * columns for rows, columns in shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(values, ends[:-1]), shapes, strict=True)]


def _sizes(shapes: Shapes) -> list[np.ndarray]:
    """Return the rows and the columns of all tensors, for C."""
    return [np.array([shape[i] for shape in shapes], np.uint64) for i in (0, 1)]


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@cache
def load() -> Native | None:
    """Return the coders, or None where there is no compiler that makes them."""
    headers = sorted((_RUNTIME / "src").glob("decode*.h"))
    key = sha256(b"\0".join([repr(_FLAGS[:-1]).encode(), *(path.read_bytes() for path in (*_SOURCES, *headers))]))
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "xnncc" / "coding"
    library = folder / f"{sys.platform}-{key.hexdigest()[:20]}.so"
    try:
        if not library.is_file():
            _compile(library)
        return Native(ctypes.CDLL(str(library)))
    except (OSError, subprocess.CalledProcessError):
        return None


def _compile(library: Path) -> None:
    """Write ``library`` whole or not at all. Raises OSError or CalledProcessError when it cannot."""
    named = [[path] for name in _COMPILERS if (path := shutil.which(name))]
    zig = [[sys.executable, "-m", "ziglang", "cc"]] if importlib.util.find_spec("ziglang") else []
    for compiler in [*named, *zig]:
        library.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=library.parent, suffix=".part")
        os.close(handle)
        try:
            subprocess.run([*compiler, *_FLAGS, *map(str, _SOURCES), "-o", name], check=True, capture_output=True)
            os.replace(name, library)
            return
        except (OSError, subprocess.CalledProcessError):
            with suppress(OSError):
                os.unlink(name)
    raise FileNotFoundError("no compiler")
