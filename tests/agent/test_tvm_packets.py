"""The reader of TVM's packets under sanitizers, and the command line of an agent that serves TVM."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from xnncc.device.agent_build import agent_program
from xnncc.target import load_target

ROOT = Path(__file__).resolve().parents[2]


def test_twenty_thousand_packets_are_survived_under_sanitizers() -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing: apt-get install gcc")
    argv = [sys.executable, str(ROOT / "tools" / "fuzz_agent.py"), "--tvm", "--frames", "20000", "--seed", "7"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    came = dict(zip(words[4:12:2], map(int, words[5:12:2]), strict=True))
    assert list(came) == ["returns", "exceptions", "copies", "kernels"]
    assert min(came.values()) > 100, "the packets reach far"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tvm-rpc", "0"], "it has 16 to 128 printable characters"),
        (["--tvm-rpc", "0", "--key", "short"], "it has 16 to 128 printable characters"),
        (["--tvm-rpc", "0", "--key", "0123456789abcde:f"], "it has 16 to 128 printable characters"),
        (["--tvm-rpc", "0", "--key", "k" * 129], "it has 16 to 128 printable characters"),
        (["--tvm-rpc", "70000", "--key", "k" * 20], "--tvm-rpc: this value will not do"),
        (["--tracker", "localhost:9190", "--key", "k" * 20], "a tracker is given as A.B.C.D:PORT"),
        (["--tracker", "127.0.0.1", "--key", "k" * 20], "a tracker is given as A.B.C.D:PORT"),
    ],
)
def test_its_options_are_checked(tmp_path: Path, options: list[str], words: str) -> None:
    argv = [str(agent_program(load_target("host"))), *options]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, timeout=20, check=False)
    assert done.returncode == 2 and done.stdout == "" and words in done.stderr
