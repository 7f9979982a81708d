"""What a shared library says about itself, read with the system's own tools."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tiny import EXPECTED, INPUT, tiny_artefact, tiny_objects

from xnncc.codegen.link import link_library
from xnncc.device.network import load
from xnncc.errors import ToolchainError
from xnncc.target import Target, load_target

NAMES = ["linux-x86-64", "linux-arm64", "android-arm64", "android-arm32"]


@pytest.fixture(scope="module", params=NAMES)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Target, Path]:
    """Return a target and the tiny library for it."""
    target = load_target(request.param)
    folder = tiny_artefact(target, tmp_path_factory.mktemp(request.param))
    return target, folder / "libtiny.so"


def readelf(*arguments: object) -> str:
    program = shutil.which("readelf") or shutil.which("llvm-readelf-22") or shutil.which("llvm-readelf")
    if program is None:
        pytest.skip("readelf is missing")
    return subprocess.run([program, "-W", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


def test_is_a_library_of_that_machine(built: tuple[Target, Path]) -> None:
    target, library = built
    header = readelf("-h", library)
    machine = {"x86_64": "X86-64", "aarch64": "AArch64", "armv7a": "ARM"}[target.arch]
    assert re.search(r"Type:\s+DYN", header) and re.search(rf"Machine:.*{machine}", header)


def test_pages_are_large_enough(built: tuple[Target, Path]) -> None:
    target, library = built
    alignments = {int(m, 16) for m in re.findall(r"^\s+LOAD.* (0x[0-9a-f]+)$", readelf("-l", library), re.M)}
    assert alignments == {65536 if target.name == "linux-arm64" else 16384}


def test_needs_only_the_c_library(built: tuple[Target, Path]) -> None:
    needed = re.findall(r"NEEDED.*\[(.*)\]", readelf("-d", built[1]))
    assert {re.sub(r"\.so.*", "", name) for name in needed} <= {"libc", "libm", "libdl"}


def test_is_hardened_and_stripped(built: tuple[Target, Path]) -> None:
    dynamic, segments = readelf("-d", built[1]), readelf("-l", built[1])
    assert "TEXTREL" not in dynamic
    assert "BIND_NOW" in dynamic and "SYMBOLIC" in dynamic
    assert "GNU_RELRO" in segments
    assert re.search(r"GNU_STACK.* RW ", segments)
    sections = readelf("-S", built[1])
    assert ".debug" not in sections and ".symtab" not in sections and ".note.gnu.build-id" not in sections


def test_exports_the_graph_and_the_runtime(built: tuple[Target, Path]) -> None:
    symbols = readelf("--dyn-syms", built[1])
    exported = re.findall(r"(?:GLOBAL|WEAK)\s+DEFAULT\s+(?!UND)\w+ (\w+)", symbols)
    assert "xnn_tiny_graph" in exported and "xnnrt_open_file" in exported
    assert [s for s in exported if s != "xnn_tiny_graph" and not s.startswith("xnnrt_")] == []


def test_asks_for_old_versions_only(built: tuple[Target, Path]) -> None:
    target, library = built
    versions = set(re.findall(r"Name: (\w+[\w.]*)", readelf("-V", library)))
    allowed = {"bionic": {"LIBC"}, "glibc": {"GLIBC_2.2.5", "GLIBC_2.3.2", "GLIBC_2.17"}}[target.toolchain.libc]
    assert versions <= allowed


def test_same_objects_same_bytes(built: tuple[Target, Path], tmp_path: Path) -> None:
    target, library = built
    assert (tiny_artefact(target, tmp_path / "again") / "libtiny.so").read_bytes() == library.read_bytes()


def test_holds_no_path_of_this_machine(built: tuple[Target, Path]) -> None:
    data = built[1].read_bytes()
    assert str(Path.home()).encode() not in data or Path.home() == Path("/")
    assert str(Path(__file__).parent.parent).encode() not in data


def test_gcc_alone_builds_for_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without clang and lld, gcc and GNU ld give a library of the same needs that runs."""
    real = shutil.which
    if real("gcc") is None or real("ld") is None:
        pytest.skip("gcc or ld is missing")
    monkeypatch.setattr("xnncc.codegen.toolchain.shutil.which", lambda n: real(n) if n in ("gcc", "ld") else None)
    folder = tiny_artefact(load_target("host"), tmp_path)
    assert b"GCC: (" in (folder / "libtiny.so").read_bytes()
    monkeypatch.undo()
    versions = set(re.findall(r"Name: (\w+[\w.]*)", readelf("-V", folder / "libtiny.so")))
    assert versions <= {"GLIBC_2.2.5", "GLIBC_2.3.2", "GLIBC_2.17"}
    assert (folder / "libtiny.so").stat().st_size < 36 * 1024
    with load(folder) as net:
        np.testing.assert_allclose(net(INPUT)["y"], EXPECTED, rtol=1e-6)


def test_missing_symbol_is_named(tmp_path: Path) -> None:
    target = load_target("android-arm64")
    objects = tiny_objects(target, tmp_path, defines=("GRAPH_ONLY",))
    with pytest.raises(ToolchainError, match=r"linking libtiny.so for android-arm64 failed: .*xnn_tiny_(scale|exp)"):
        link_library(target, objects, "xnn_tiny_graph", "tiny", tmp_path)
