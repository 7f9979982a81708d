"""manifest.json: what lies in an artefact's folder, for people and scripts. Same contents, same bytes: no times in it.

    {"format": 1, "name", "target", "build_id", "graph_symbol", "op_count", "arena_bytes", "thread_scratch_bytes",
     "weights_bytes", "inputs": [{"name", "shape", "dtype"}], "outputs": [...],
     "files": [{"path", "bytes", "sha256", "role"}], "tools": {"xnncc": "0.1.0", ...}, "source": {"file", "sha256"},
     "ops": [{"index", "kernel", "rule", "source": [...], "outputs": [{"space", "offset", "size", "shape", ...}]}]}

A network that was built for several shapes has "variants" too: for each further one "inputs", "outputs", "op_count",
"arena_bytes" and "ops", as they stand above for the first.

With coded weights "coded_bytes" is their section's length and "coded" lists "name", "shape", "coder", "bytes" and
"bits_per_weight" of each.

"fixed": [{"name", "shape", "dtype", "base64"}] are inputs of the model that the build made constants, "nms_rows" is
how many rows its NonMaxSuppression gives. Further keys are kept as they are. Sizes are bytes; paths are relative to
the folder.
"""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from xnncc.errors import BadPackage
from xnncc.pack import layout
from xnncc.pack.write import replace_file

FORMAT = 1
MAX_BYTES = 64 << 20  # of the file: a network of 10,000 operators needs about 6 MB
_REBUILD = "Build the folder again with 'xnncc build'"

# What each place must hold: a type, [what every item must hold], {key: what its value must hold}, or a test.
_COUNT, _TEXT = "a count", "text"
_TENSOR = {"name": _TEXT, "shape": [_COUNT], "dtype": "a dtype"}
_REGION = {"space": "a space", "offset": _COUNT, "size": _COUNT, "shape": [_COUNT], "dtype": "a dtype", "layout": _TEXT}
_SHAPE: dict[str, Any] = {
    "format": _COUNT, "name": _TEXT, "target": _TEXT, "build_id": "a 64-bit number", "graph_symbol": "a C identifier",
    "inputs": [_TENSOR], "outputs": [_TENSOR], "op_count": _COUNT, "arena_bytes": _COUNT,
    "thread_scratch_bytes": _COUNT, "weights_bytes": _COUNT,
    "files": [{"path": "a path inside the folder", "bytes": _COUNT, "sha256": "64 hexadecimal digits", "role": _TEXT}],
    "tools": "a table of text", "source": {"file": _TEXT, "sha256": "64 hexadecimal digits"},
    "ops": [{"index": _COUNT, "kernel": _TEXT, "rule": _TEXT, "source": [_TEXT], "outputs": [_REGION]}],
}  # fmt: skip
_OF_A_VARIANT = ("inputs", "outputs", "op_count", "arena_bytes", "ops")
_VARIANTS = {"variants": [{key: _SHAPE[key] for key in _OF_A_VARIANT}]}


def write_manifest(path: str | os.PathLike[str], manifest: dict[str, Any]) -> None:
    """Write ``manifest`` to ``path``: sorted keys, fixed formatting; the file appears whole or not at all.

    Raises:
        BadPackage: something in it is missing or of another type.
        OutputError: the folder cannot be written or the disk is full.
    """
    _check(str(path), "manifest", manifest, _SHAPE)
    text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    replace_file(Path(path), [text.encode("utf-8", "surrogatepass") + b"\n"])


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the manifest in ``path``, or in the folder ``path``, with every known key there and of its type.

    Raises:
        BadPackage: no such file, no JSON, too long, of a newer version, or something missing or of another type.
    """
    file = Path(path)
    file = file / "manifest.json" if file.is_dir() else file
    try:
        with open(file, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadPackage(f"'{file}' cannot be read", reason, "Give a folder written by 'xnncc build'") from error
    if len(data) > MAX_BYTES:
        _refuse(str(file), f"longer than {MAX_BYTES >> 20} MiB")
    try:
        manifest = json.loads(data, parse_constant=_no_constant, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        _refuse(str(file), f"not JSON as xnncc writes it ({error})")
    _check_version(str(file), manifest)
    _check(str(file), "manifest", manifest, _SHAPE)
    if "variants" in manifest:
        _check(str(file), "manifest", manifest, _VARIANTS)
    return manifest


def variant_manifests(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the manifest as each variant would have it alone, with its number as "variant"."""
    first = {key: value for key, value in manifest.items() if key != "variants"}
    further = [first | {key: v[key] for key in _OF_A_VARIANT} for v in manifest.get("variants", ())]
    return [m | {"variant": index} for index, m in enumerate([first, *further])]


def _check_version(file: str, manifest: Any) -> None:
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if isinstance(version, int) and version > FORMAT:
        next = "Update xnncc: pip install --upgrade xnncc"
        raise BadPackage(f"'{file}' is too new", f"format {version}, this xnncc reads up to {FORMAT}", next)
    if version != FORMAT:
        _refuse(file, f"format is {version!r}, expected {FORMAT}")


def _check(file: str, where: str, value: Any, expected: Any) -> None:
    """Raise BadPackage unless ``value``, found at ``where``, is as ``expected`` says."""
    if isinstance(expected, dict):
        if not isinstance(value, dict):
            _refuse(file, f"{where} is not a table")
        for key, inner in expected.items():
            if key not in value:
                _refuse(file, f"{where} has no '{key}'")
            _check(file, key if where == "manifest" else f"{where}.{key}", value[key], inner)
    elif isinstance(expected, list):
        if not isinstance(value, (list, tuple)):
            _refuse(file, f"{where} is not a list")
        for i, item in enumerate(value):
            _check(file, f"{where}[{i}]", item, expected[0])
    elif not _is(expected, value):
        shown = repr(value)
        _refuse(file, f"{where} is {shown[:60]}{'...' if len(shown) > 60 else ''}, expected {expected}")


def _is(expected: str, value: Any) -> bool:
    """Is ``value`` what the words ``expected`` say?"""
    if expected == _COUNT:
        return type(value) is int and 0 <= value <= layout.MAX_BYTES
    if expected == "a 64-bit number":
        return type(value) is int and -(1 << 63) <= value < 1 << 63
    if expected == "a table of text":
        return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    if not isinstance(value, str):
        return False
    if expected == "a dtype":
        return value in layout.DTYPES
    if expected == "a space":
        return value in ("weights", "arena", "input", "output")
    if expected == "a C identifier":
        return value.isascii() and value.isidentifier()
    if expected == "64 hexadecimal digits":
        return len(value) == 64 and set(value) <= set("0123456789abcdef")
    if expected == "a path inside the folder":
        path = PurePosixPath(value)
        return value != "" and not path.is_absolute() and ".." not in path.parts and not set(value) & set("\\:\0")
    assert expected == _TEXT
    return True


def _refuse(file: str, why: str) -> NoReturn:
    raise BadPackage(f"'{file}' is not a good manifest", why, _REBUILD)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key occurs twice")
    return table
