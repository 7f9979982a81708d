"""The voice of the commands: stdout for the result, stderr for the talk."""

from __future__ import annotations

import sys

import pytest

from xnncc.cli.output import Output


def test_json_only_keeps_stdout_for_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(json_only=True)
    out.result("text")
    out.table(("a",), [(1,)])
    out.document({"b": 1, "a": "é"})
    assert capsys.readouterr().out == '{\n  "a": "é",\n  "b": 1\n}\n'


def test_quiet_drops_the_talk_and_keeps_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(quiet=True)
    out.say("talk")
    out.next("xnncc")
    out.warn("NaN in 'w'")
    out.result("result")
    captured = capsys.readouterr()
    assert captured.err == "warning: NaN in 'w'\n"
    assert captured.out == "result\n"


def test_table_aligns_and_leaves_no_trailing_blanks(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table(("name", ">size"), [("a", 1), ("[b]longer[/b]", 22)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name            size"
    assert lines[2:] == ["a                  1", "[b]longer[/b]     22"]


def test_wide_tables_are_not_folded_where_no_person_reads(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table(("a", "b"), [("x" * 150, "y" * 150)])
    assert "x" * 150 + "   " + "y" * 150 in capsys.readouterr().out


def test_progress_in_a_log_speaks_after_a_second_and_once_a_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.5, 1.5, 1.6, 2.0])
    monkeypatch.setattr("xnncc.cli.output.time.monotonic", lambda: next(clock))
    with Output().progress("building m.onnx") as progress:
        for text in ("importing", "compiling", "compiling", "linking"):
            progress(text, 1, 2)
    assert capsys.readouterr().err.splitlines() == [
        "[  1.5 s] building m.onnx: compiling",
        "[  2.0 s] building m.onnx: linking",
    ]


def test_progress_bar_on_a_terminal_leaves_nothing_behind(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        """Collects what a terminal would show."""

        encoding = "utf-8"
        text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            self.text += text
            return len(text)

        def flush(self) -> None:
            pass

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("xnncc.cli.output._QUIET_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    import time

    with Output().progress("building") as progress:
        time.sleep(0.3)  # the timer's thread has to start the bar
        progress("compiling kernels", 3, 7)
        time.sleep(0.3)
    assert "building: compiling kernels" in screen.text
    assert screen.text.endswith("\x1b[2K") or "\x1b[?25h" in screen.text  # line erased, cursor back
