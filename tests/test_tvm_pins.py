"""The pinned pair apache-tvm and apache-tvm-ffi works: a bad pair dies of SIGSEGV in the middle of a tuning run."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires, version
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "data" / "tune_tiny.py"


@pytest.mark.parametrize("package", ["apache-tvm", "apache-tvm-ffi"])
def test_the_pinned_version_is_installed(package: str) -> None:
    pins = [line for line in requires("xnncc") or () if line.startswith(f"{package}==")]
    assert pins == [f"{package}=={version(package)}"]


def test_one_tiny_task_can_be_tuned_and_saved(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, (
        f"exit code {done.returncode} (-11 is SIGSEGV)\n{done.stdout[-500:]}{done.stderr[-2000:]}"
    )
    assert "tuned: " in done.stdout
    assert (tmp_path / "database_tuning_record.json").stat().st_size > 0
