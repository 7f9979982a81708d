"""The fixtures that other tests trust: they must fail when they should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parent / "conftest.py"

ILL_FORMED = """
import tvm
from tvm import relax

def test_pass_that_breaks_the_module():
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    free = relax.Var("free", relax.TensorType((4,), "float32"))

    @tvm.transform.module_pass(opt_level=0, name="Break")
    class Break:
        def transform_module(self, mod, ctx):
            return tvm.IRModule({"main": relax.Function([x], free, relax.TensorType((4,), "float32"))})

    good = relax.Function([x], x, relax.TensorType((4,), "float32"))
    Break()(tvm.IRModule({"main": good}))
"""


def _run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in ``folder``, which gets this project's conftest.py."""
    (folder / "conftest.py").write_text(CONFTEST.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env={**os.environ})


def test_ir_check_catches_a_pass_that_leaves_a_free_variable(tmp_path: Path) -> None:
    (tmp_path / "transform").mkdir()
    (tmp_path / "transform" / "test_broken.py").write_text(ILL_FORMED, encoding="utf-8")
    done = _run_pytest(tmp_path)
    assert done.returncode == 1
    assert "pass Break left IR that is not well formed" in done.stdout


@pytest.mark.parametrize(("stored", "code"), [("same\n", 0), ("other\n", 1), (None, 1)])
def test_golden_passes_only_on_equal_text(tmp_path: Path, stored: str | None, code: int) -> None:
    (tmp_path / "golden").mkdir()
    if stored is not None:
        (tmp_path / "golden" / "a.txt").write_text(stored, encoding="utf-8")
    (tmp_path / "test_g.py").write_text("def test_g(golden):\n    golden('a.txt', 'same\\n')\n", encoding="utf-8")
    assert _run_pytest(tmp_path).returncode == code


def test_bless_rewrites_the_golden_file(tmp_path: Path) -> None:
    (tmp_path / "test_g.py").write_text("def test_g(golden):\n    golden('a.txt', 'new\\n')\n", encoding="utf-8")
    assert _run_pytest(tmp_path, "--bless").returncode == 0
    assert (tmp_path / "golden" / "a.txt").read_text(encoding="utf-8") == "new\n"
