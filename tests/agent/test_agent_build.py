"""The agent's program: small, without a warning, the same for every build; what its command line says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from xnncc.codegen.build_runtime import RUNTIME
from xnncc.codegen.emulators import find_emulator
from xnncc.device.agent_build import AGENT, agent_program
from xnncc.errors import DeviceError
from xnncc.target import load_target

ROOT = Path(__file__).resolve().parents[2]
TEXT_KIB, FILE_KIB = 60, 100
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wundef", "-Wstrict-prototypes", "-Wcast-align", "-Werror"]
# Not those that are made of another room's files.
OWN = [path for path in sorted(AGENT.glob("*.c")) if '.c"' not in path.read_text()]


@pytest.mark.parametrize("name", ["linux-arm64", "android-arm64"])
def test_it_is_small(name: str) -> None:
    program = agent_program(load_target(name))
    size = shutil.which("size") or shutil.which("llvm-size")
    assert size is not None, "neither size nor llvm-size is on PATH"
    done = subprocess.run([size, str(program)], capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[1].split()[0]) <= TEXT_KIB * 1024
    assert program.stat().st_size <= FILE_KIB * 1024


def test_it_needs_the_c_library_alone() -> None:
    readelf = shutil.which("readelf") or shutil.which("llvm-readelf")
    assert readelf is not None, "neither readelf nor llvm-readelf is on PATH"
    for name, libraries in {
        "linux-arm64": {"libc.so.6", "libdl.so.2"},
        "android-arm64": {"libc.so", "libdl.so"},
    }.items():
        done = subprocess.run([readelf, "-d", str(agent_program(load_target(name)))], capture_output=True, check=True)
        needed = {line.split("[")[1].rstrip("]") for line in done.stdout.decode().splitlines() if "(NEEDED)" in line}
        assert needed <= libraries


@pytest.mark.slow  # zig builds musl at its first use
@pytest.mark.parametrize("name", ["linux-arm64", "android-arm64"])
def test_a_static_one_is_small_too(name: str) -> None:
    pytest.importorskip("ziglang")
    program = agent_program(load_target(name), is_static=True)
    assert program.stat().st_size <= FILE_KIB * 1024
    emulator = find_emulator(load_target("linux-arm64"))
    if emulator is not None and emulator.found:  # it needs no root of another system
        done = subprocess.run([emulator.found, str(program), "--help"], capture_output=True, text=True, check=True)
        assert done.stdout.startswith("usage: xnncc-agent")


@pytest.mark.parametrize("source", OWN, ids=lambda path: path.name)
def test_it_compiles_without_a_warning(source: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing: apt-get install gcc")
    argv = ["gcc", "-std=c99", "-O1", *WARNINGS, f"-I{RUNTIME / 'include'}", "-c", str(source), "-o", os.devnull]
    subprocess.run(argv, check=True)


@pytest.mark.parametrize("name", ["web-wasm", "ios-arm64", "android-arm32"])
def test_where_no_agent_runs_is_told(name: str) -> None:
    with pytest.raises(DeviceError, match=r"the agent does not run there. Use a target for 64-bit Linux or Android"):
        agent_program(load_target(name))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--port", "0"], "--token-file is missing"),
        (["--port", "65536", "--token-file", "{token}"], "--port: this value will not do"),
        (["--port", "x", "--token-file", "{token}"], "--port: this value will not do"),
        (["--port", "0", "--token-file", "{missing}"], "the token file cannot be read"),
        (["--port", "0", "--token-file", "{short}"], "a token has 16 to 256 bytes"),
        (["--port", "0", "--bind", "localhost", "--token-file", "{token}"], "--bind: this value will not do"),
        (["--port", "0", "--bind", "192.0.2.1", "--token-file", "{token}"], "cannot be listened on"),
        (["--port", "0", "--quota-mib", "0", "--token-file", "{token}"], "--quota-mib: this value will not do"),
        (["--speed", "11"], "--speed: no such option"),
        (["--port"], "--port: no such option, or it lacks its value"),
        ([], "usage: xnncc-agent --port N --token-file F"),
    ],
)
def test_its_command_line_is_checked(tmp_path: Path, options: list[str], words: str) -> None:
    places = {name: tmp_path / name for name in ("token", "short", "missing")}
    places["token"].write_text("0123456789abcdef\n")
    places["short"].write_text("0123456789abcde\n \n")
    argv = [str(agent_program(load_target("host"))), *(o.format(**places) for o in options)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, timeout=20, check=False)
    assert done.returncode in (1, 2) and done.stdout == "" and words in done.stderr


def test_help_is_a_result(tmp_path: Path) -> None:
    argv = [str(agent_program(load_target("host"))), "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, timeout=20, check=True)
    assert done.stdout.startswith("usage: xnncc-agent") and done.stderr == ""


def test_ten_thousand_frames_are_survived_under_sanitizers() -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing: apt-get install gcc")
    argv = [sys.executable, str(ROOT / "tools" / "fuzz_agent.py"), "--frames", "10000", "--seed", "7"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    came = {int(row[1]): int(row[2]) for row in (line.split() for line in done.stdout.splitlines()) if row[0] == "came"}
    assert min(came[number] for number in range(128, 134)) > 20  # every answer was provoked: the frames reach far
