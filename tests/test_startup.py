"""Starting xnncc costs next to nothing: the heavy packages are loaded by the command that needs them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = ("tvm", "tvm_ffi", "onnx", "onnxruntime", "numpy", "rich", "jinja2")
BUDGET_SECONDS = 0.5  # of `xnncc --help`, from the issue; measured 0.2 s on an idle core


def _modules_after(code: str) -> set[str]:
    probe = f"import sys\n{code}\nprint(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import xnncc; xnncc.__version__",
        "import xnncc.errors, xnncc.inputs, xnncc.compare, xnncc.verify, xnncc.bench, xnncc.report",
        "from xnncc.cli.main import app\ntry: app(['--help'])\nexcept SystemExit: pass",
        "from xnncc.cli.main import app\ntry: app(['build', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_heavy_packages_are_not_loaded(code: str) -> None:
    assert not _modules_after(code) & set(HEAVY)


def test_help_takes_at_most_half_a_second() -> None:
    """CPU seconds of the process: on a busy machine the wall clock measures the neighbours."""
    times = []
    for _ in range(3):
        command = [sys.executable, "-m", "xnncc.cli.main", "--help"]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        times.append(usage.ru_utime + usage.ru_stime)
    assert min(times) <= BUDGET_SECONDS


def test_verbs_stay_functions_after_their_modules_are_imported() -> None:
    import importlib

    import xnncc

    importlib.import_module("xnncc.verify")
    assert callable(xnncc.verify)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = xnncc.nothing
