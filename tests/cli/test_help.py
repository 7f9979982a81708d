"""Help is a contract that scripts and people read: its text is kept."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

COMMANDS = ["build", "verify", "compress", "run", "bench", "tune", "inspect", "targets", "doctor"]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_text(command: str, xnncc: Callable, golden: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ended = xnncc(*command.split(), "--help")
    assert ended.code == 0
    assert ended.stderr == ""
    golden(f"help/{command or 'xnncc'}.txt", ended.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_every_flag_its_default(command: str, xnncc: Callable) -> None:
    text = xnncc(command, "--help").stdout
    assert f"Example: xnncc {command}" in text
    options = text.partition("Options:\n")[2].partition("Example: ")[0]
    for flag in re.split(r"\n(?=  -)", options):
        if "--help" not in flag:
            assert re.search(r"[Dd]efault|\[required\]|Repeatable", flag), flag


@pytest.mark.parametrize("command", COMMANDS)
def test_json_and_quiet_are_everywhere(command: str, xnncc: Callable) -> None:
    text = xnncc(command, "--help").stdout
    assert "--json" in text
    assert "-q, --quiet" in text


def test_version(xnncc: Callable) -> None:
    import xnncc as package

    assert xnncc("--version").stdout == f"xnncc {package.__version__}\n"
