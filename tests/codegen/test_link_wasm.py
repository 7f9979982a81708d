"""WebAssembly modules: no imports, SIMD inside, the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny import tiny_artefact

from xnncc.codegen.link_wasm import imported_names
from xnncc.target import load_target


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artefact(load_target("web-wasm"), tmp_path_factory.mktemp("web")) / "tiny.wasm"


def test_imports_nothing(module: Path) -> None:
    data = module.read_bytes()
    assert data[:8] == b"\0asm\1\0\0\0"
    assert imported_names(data) == []


def test_reads_imports_of_every_kind() -> None:
    entries = [b"\1m\1f\0\x05", b"\1m\1t\1\x70\1\2\x83\1", b"\1m\1m\2\0\x11", b"\1m\1g\3\x7f\1"]
    body = bytes([len(entries)]) + b"".join(entries)
    data = b"\0asm\1\0\0\0" + b"\0\2\1x" + bytes([2, len(body)]) + body
    assert imported_names(data) == ["m.f", "m.t", "m.m", "m.g"]


def test_same_objects_same_bytes(module: Path, tmp_path: Path) -> None:
    assert (tiny_artefact(load_target("web-wasm"), tmp_path) / "tiny.wasm").read_bytes() == module.read_bytes()


def test_holds_no_names_or_paths(module: Path) -> None:
    data = module.read_bytes()
    assert b"/work" not in data and b"/usr" not in data and b"\x04name" not in data
