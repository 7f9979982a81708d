"""How the runtime compiles: without a warning everywhere, small, and with few wishes to the system."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from building import INCLUDES, NOTHING, ROOT, RUNTIME, SOURCES, WARNINGS, call

CLANG = shutil.which("clang-22") or shutil.which("clang")
needs_clang = pytest.mark.skipif(not CLANG, reason="clang is not installed (apt install clang)")
needs_arm64 = pytest.mark.skipif(
    not shutil.which("aarch64-linux-gnu-gcc"),
    reason="aarch64-linux-gnu-gcc is not installed (apt install gcc-aarch64-linux-gnu)",
)
# What the runtime may ask of the C library. Hand-written headers and stub libraries of Android and Apple hold these.
MEMORY = {"malloc", "free", "memcpy", "memset", "memcmp"}
THREADS = {
    *(f"pthread_{name}" for name in ("create", "join", "key_create", "key_delete", "getspecific", "setspecific")),
    *(f"pthread_mutex_{name}" for name in ("init", "destroy", "lock", "unlock")),
    *(f"pthread_cond_{name}" for name in ("init", "destroy", "wait", "signal", "broadcast")),
    *("sched_yield", "sysconf", "syscall"),
}
MAPPED = {"open", "close", "lseek", "mmap", "munmap"}
READ = {"open", "close", "lseek", "read"}


def symbols(folder: Path, *flags: str) -> tuple[set[str], set[str]]:
    """Return the names that the whole runtime wants from outside, and those that it shows to others."""
    subprocess.run(["gcc", "-c", "-Os", *INCLUDES, *flags, *map(str, SOURCES)], cwd=folder, check=True)
    objects = sorted(folder.glob("*.o"))
    lines = call("readelf", "-Ws", *objects).splitlines()
    entries = [line.split() for line in lines if len(line.split()) == 8 and line.split()[4] in ("GLOBAL", "WEAK")]
    defined = {name for *_, visibility, section, name in entries if section != "UND"}
    wanted = {name for *_, section, name in entries if section == "UND"} - defined - {"_GLOBAL_OFFSET_TABLE_"}
    shown = {name for *_, visibility, section, name in entries if section != "UND" and visibility == "DEFAULT"}
    return wanted, shown


@pytest.mark.parametrize("flags", [[], NOTHING], ids=["all", "nothing"])
@pytest.mark.parametrize(
    "compiler",
    [
        "gcc",
        pytest.param(CLANG or "clang", marks=needs_clang),
        pytest.param("aarch64-linux-gnu-gcc", marks=needs_arm64),
    ],
)
def test_no_warning(tmp_path: Path, compiler: str, flags: list[str]) -> None:
    command = [compiler, "-c", "-Os", *WARNINGS, *INCLUDES, *flags, *map(str, SOURCES)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_header_is_cpp_too(tmp_path: Path) -> None:
    user = tmp_path / "user.cpp"
    user.write_text('#include "xnnrt.h"\nint main() { return xnnrt_abi() - XNNRT_ABI; }\n')
    call("g++", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", *INCLUDES, user)


def test_wants_only_memory_without_threads_and_files(tmp_path: Path) -> None:
    assert symbols(tmp_path, *NOTHING)[0] <= MEMORY


def test_wants_few_functions_of_the_system(tmp_path: Path) -> None:
    assert symbols(tmp_path)[0] <= MEMORY | THREADS | MAPPED


def test_wants_read_instead_of_mmap(tmp_path: Path) -> None:
    assert symbols(tmp_path, "-DXNNRT_NO_MMAP", *WARNINGS)[0] <= MEMORY | THREADS | READ


def test_shows_only_its_interface(tmp_path: Path) -> None:
    header = (RUNTIME / "include" / "xnnrt.h").read_text()
    shown = symbols(tmp_path)[1]
    assert all(name.startswith("xnnrt_") and f"{name}(" in header for name in shown)
    assert len(shown) == header.count("\nXNNRT_API ")


@needs_arm64
def test_core_for_arm64_is_at_most_20_kib() -> None:
    report = json.loads(call(sys.executable, ROOT / "tools" / "size_report.py", "--json"))
    assert report["core"] <= 20 * 1024
    assert report["core"] > 4000  # it did measure something
    assert 4000 < report["decoders"] <= 8 * 1024  # of coded weights, all coders
