"""What every test has: golden files (``--bless`` rewrites them) and a check of the IR around every pass."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
# Tests of these folders run TVM passes: there the check is always on. Elsewhere it is on once something loaded TVM.
IR_FOLDERS = ("frontends", "transform", "compress", "kernels", "schedule", "codegen", "ir")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="rewrite the golden files with what the tests see now")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return ``golden(name, text)``: fails when ``text`` is not what ``tests/golden/<name>`` holds."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--bless"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        expected = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text != expected:
            lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), f"golden/{name}", "now", lineterm="")
            pytest.fail(
                "\n".join([*lines, "If the new text is right: pytest --bless, then read the diff."]), pytrace=False
            )

    return check


@pytest.fixture(autouse=True)
def _well_formed_ir(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check the module after every pass, in every PassContext that the test or the code under test makes."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    if folder not in IR_FOLDERS and "tvm" not in sys.modules:
        yield
        return
    import tvm
    from tvm import relax
    from tvm.ir.transform import PassContext

    @tvm.ir.instrument.pass_instrument
    class WellFormed:
        """Fails the test when a pass leaves a Relax module that is not well formed."""

        def run_after_pass(self, mod: tvm.IRModule, info: tvm.ir.transform.PassInfo) -> None:
            has_graph = any(isinstance(function, relax.Function) for function in mod.functions.values())
            if has_graph and info.name not in ("Normalize", "NormalizeGlobalVar", "ResolveGlobals"):
                assert relax.analysis.check_well_formed(mod), f"pass {info.name} left IR that is not well formed"

    plain = PassContext.__init__

    def checked(self, opt_level=2, required_pass=None, disabled_pass=None, instruments=None, config=None):
        plain(self, opt_level, required_pass, disabled_pass, [*(instruments or ()), WellFormed()], config)

    monkeypatch.setattr(PassContext, "__init__", checked)
    with PassContext(opt_level=3):
        yield
