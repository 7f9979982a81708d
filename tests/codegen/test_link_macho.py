"""Apple's formats: nothing here can run them, so every claim is read out of the files."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tiny import tiny_artefact, tiny_objects

from xnncc.codegen.build_runtime import runtime_objects
from xnncc.codegen.link import archive
from xnncc.codegen.link_macho import libsystem_stub
from xnncc.codegen.toolchain import find_tool, run_tool
from xnncc.target import load_target


def tool(name: str, *arguments: object) -> str:
    program = next((p for v in ("-22", "", "-14") if (p := shutil.which(f"llvm-{name}{v}"))), None)
    if program is None:
        pytest.skip(f"llvm-{name} is missing")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def dylib(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artefact(load_target("macos-arm64"), tmp_path_factory.mktemp("macos")) / "libtiny.dylib"


@pytest.fixture(scope="module")
def ios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artefact(load_target("ios-arm64"), tmp_path_factory.mktemp("ios"))


def test_dylib_says_what_it_is(dylib: Path) -> None:
    commands = tool("objdump", "--macho", "--private-headers", dylib)
    assert re.search(r"ARM64\s+ALL\s+0x00\s+DYLIB", commands)
    assert re.search(r"platform macos\s+sdk 11.0\s+minos 11.0", commands)
    assert "@rpath/libtiny.dylib" in commands
    assert re.findall(r"cmd LC_LOAD_DYLIB\s+cmdsize \d+\s+name (\S+)", commands) == ["/usr/lib/libSystem.B.dylib"]
    assert "LC_CODE_SIGNATURE" in commands


def test_dylib_exports_the_graph_and_the_runtime(dylib: Path) -> None:
    names = re.findall(r" T (\w+)", tool("nm", "--extern-only", "--defined-only", dylib))
    assert "_xnn_tiny_graph" in names and "_xnnrt_open_file" in names
    assert [n for n in names if n != "_xnn_tiny_graph" and not n.startswith("_xnnrt_")] == []


def test_dylib_is_the_same_twice(dylib: Path, tmp_path: Path) -> None:
    again = tiny_artefact(load_target("macos-arm64"), tmp_path) / "libtiny.dylib"
    assert again.read_bytes() == dylib.read_bytes()
    assert b"/tmp/" not in again.read_bytes()


def test_archive_has_objects_of_ios_without_debug(ios: Path) -> None:
    text = tool("objdump", "--macho", "--private-headers", ios / "libtiny.a")
    assert "platform 2" in text or "platform ios" in text or "LC_VERSION_MIN_IPHONEOS" in text
    assert "__DWARF" not in text
    assert "xnn_tiny.o" in tool("ar", "t", ios / "libtiny.a")


def test_archive_is_the_same_twice(ios: Path, tmp_path: Path) -> None:
    assert (tiny_artefact(load_target("ios-arm64"), tmp_path) / "libtiny.a").read_bytes() == (
        ios / "libtiny.a"
    ).read_bytes()


def test_module_map_names_header_and_library(ios: Path) -> None:
    text = (ios / "module.modulemap").read_text()
    assert 'header "tiny.h"' in text and 'link "tiny"' in text


def test_two_models_in_one_app_link(ios: Path, tmp_path: Path) -> None:
    """Both archives carry the runtime; the linker takes it once, on demand."""
    target = load_target("ios-arm64")
    other = archive(target, [*tiny_objects(target, tmp_path, "other"), *runtime_objects(target)], tmp_path / "libo.a")
    app, stub = tmp_path / "app", tmp_path / "libSystem.tbd"
    stub.write_text(libsystem_stub("ios"))
    (tmp_path / "roots.txt").write_text("_xnn_tiny_graph\n_xnn_other_graph\n_xnnrt_open_file\n")
    argv = [*find_tool("linker", target).argv, "-arch", "arm64", "-platform_version", "ios", "13.0", "13.0", "-dylib"]
    roots = ["-exported_symbols_list", tmp_path / "roots.txt", "-u", "_xnn_tiny_graph", "-u", "_xnn_other_graph"]
    run_tool([*argv, *roots, "-u", "_xnnrt_open_file", ios / "libtiny.a", other, stub, "-o", app], "linking")
    names = tool("nm", "--defined-only", app)
    assert "_xnn_tiny_graph" in names and "_xnn_other_graph" in names
    assert len(re.findall(r"_xnnrt_open_file$", names, re.M)) == 1
