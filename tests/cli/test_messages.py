"""Every way a run can end: exit code, one sentence, and a document for machines."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xnncc import errors


def _classes() -> list[type[errors.XnnccError]]:
    found, waiting = [], [errors.XnnccError]
    while waiting:
        found.append(waiting.pop())
        waiting += [kind for kind in found[-1].__subclasses__() if kind.__module__ == errors.__name__]
    return found


@pytest.mark.parametrize("kind", _classes(), ids=lambda kind: kind.__name__)
def test_our_errors_exit_1_with_one_sentence(kind: type, xnncc: Callable, fake_build: Any) -> None:
    fake_build.error = kind("'m.onnx'", "it is odd", "Do better.")
    ended = xnncc("build", "m.onnx", "-t", "host")
    assert ended.code == 1
    assert ended.stdout == ""
    assert ended.stderr.splitlines() == [
        "error: 'm.onnx': it is odd. Do better.",
        f"  see docs/errors.md#{kind.__name__.lower()}",
    ]


@pytest.mark.parametrize("kind", _classes(), ids=lambda kind: kind.__name__)
def test_every_class_has_its_heading_in_the_docs(kind: type) -> None:
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    assert f"\n## {kind.__name__}\n" in page


def test_a_rooms_own_class_is_told_as_the_one_it_refines(xnncc: Callable, fake_build: Any) -> None:
    class AgentIsTired(errors.DeviceError):
        pass

    fake_build.error = AgentIsTired("device 'tcp:1'", "it sleeps", "Wake it.")
    assert xnncc("build", "m.onnx", "-t", "host").stderr.endswith("see docs/errors.md#deviceerror\n")


def test_a_known_next_step_is_added_when_the_error_has_none(xnncc: Callable, fake_build: Any) -> None:
    fake_build.error = errors.ToolchainError("no linker")
    assert "Run `xnncc doctor`" in xnncc("build", "m.onnx", "-t", "host").stderr


def test_json_error_is_one_document(xnncc: Callable, fake_build: Any) -> None:
    fake_build.error = errors.BadModel("'m.onnx'", "it is odd", "Do better.")
    ended = xnncc("build", "m.onnx", "-t", "host", "--json")
    assert json.loads(ended.stdout) == {
        "error": {"kind": "BadModel", "what": "'m.onnx'", "why": "it is odd", "next": "Do better."},
        "exit_code": 1,
    }


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EDQUOT, "the disk is full"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "the file system is read-only"),
    ],
)
def test_disk_trouble_is_one_sentence(number: int, words: str, xnncc: Callable, fake_build: Any) -> None:
    fake_build.error = OSError(number, os.strerror(number), "out/net.xnn")
    ended = xnncc("build", "m.onnx", "-t", "host")
    assert ended.code == 1
    assert ended.stderr.splitlines()[0].startswith(f"error: 'out/net.xnn': {words}. ")
    assert len(ended.stderr.splitlines()) == 2


def test_ctrl_c_is_one_line_and_130(xnncc: Callable, fake_build: Any) -> None:
    fake_build.error = KeyboardInterrupt()
    ended = xnncc("build", "m.onnx", "-t", "host")
    assert ended.code == 130
    assert ended.stderr.strip() == (
        "interrupted: nothing half-written was left behind; tune and compress go on where they stopped."
    )


def test_our_bug_exits_3_and_keeps_the_traceback(
    xnncc: Callable, fake_build: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    fake_build.error = ZeroDivisionError("by nothing")
    ended = xnncc("build", "m.onnx", "-t", "host")
    assert ended.code == 3
    assert "Traceback" not in ended.stderr
    (kept,) = tmp_path.glob("xnncc-crash-*.txt")
    assert str(kept) in ended.stderr
    text = kept.read_text(encoding="utf-8")
    assert "Traceback (most recent call last)" in text
    assert "ZeroDivisionError: by nothing" in text
    assert "xnncc build m.onnx -t host" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("bild",), "Did you mean 'build'?"),
        (("build",), "Missing argument 'MODEL'"),
        (("build", "m.onnx"), "--target"),
        (("build", "m.onnx", "-t", "host", "--nonsense"), "--nonsense"),
        (("bench", "d", "--repeat", "many"), "--repeat"),
        (("build", "m.onnx", "-t", "host", "--bindings", "kotlim"), "did you mean 'kotlin'?"),
    ],
)
def test_wrong_usage_exits_2(arguments: tuple[str, ...], words: str, xnncc: Callable, fake_build: Any) -> None:
    ended = xnncc(*arguments)
    assert ended.code == 2
    assert words in ended.stderr
    assert "--help" in ended.stderr
    assert ended.stdout == ""


def test_bare_command_shows_its_help_and_exits_2(xnncc: Callable) -> None:
    ended = xnncc()
    assert ended.code == 2
    assert ended.stderr.startswith("Usage: ")


def test_sigterm_unwinds_so_that_half_written_folders_go(tmp_path: Path) -> None:
    script = """
import os, shutil, signal, sys
from types import SimpleNamespace
def build(*arguments, **keywords):
    os.mkdir("half")
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        shutil.rmtree("half")
sys.modules["xnncc.build"] = SimpleNamespace(build=build)
sys.argv = ["xnncc", "build", "m.onnx", "-t", "host"]
from xnncc.cli.main import run
run()
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m xnncc.cli.main targets --json 2>err | true; cat err; rm err"],
        cwd="/tmp", capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "error" not in done.stdout
    assert "Traceback" not in done.stdout
