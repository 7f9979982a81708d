#!/usr/bin/env python3
"""Run ONNX's own backend tests through the whole line, import to C runtime, and write down how each case ends.

    tools/onnx_conformance.py                          every case; writes docs/onnx-conformance.json and .md
    tools/onnx_conformance.py --only 'node/test_conv*' some; prints them, writes nothing
    tools/onnx_conformance.py --rerun wrong            again what was wrong in the written list, and update it

A case passes (its own tolerances), is refused by name, or is wrong: other numbers, a crash, an error of ours. Cases run
in worker processes that are started again when one crashes. Exit code 1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from onnx_cases import PASS, REFUSED, WRONG, Outcome, all_cases, run_case

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "onnx-conformance.json"
SUMMARY = ROOT / "docs" / "onnx-conformance.md"
TIMEOUT_S = 3600  # of wall time: a shared machine may stand still for minutes
Key = tuple[str, str]


def serve() -> None:
    """A worker: keys on stdin, outcomes on the stream that stdout was."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints must not get between the answers
    cases = all_cases()
    for line in sys.stdin:
        outcome = run_case(cases[tuple(json.loads(line))])  # type: ignore[index]
        answers.write(json.dumps(outcome.as_dict()) + "\n")
        answers.flush()


class Worker:
    """A child process that runs cases one after the other."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def run(self, key: Key) -> Outcome:
        """Return how a case ends; a crash and an endless case are wrong."""
        child = self._child = self._child or self._start()
        assert child.stdin is not None and child.stdout is not None
        timer = threading.Timer(TIMEOUT_S, child.kill)
        timer.start()
        try:
            child.stdin.write(json.dumps(key) + "\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        timed_out = not timer.is_alive()
        timer.cancel()
        if answer:
            return Outcome(**json.loads(answer))
        code = child.wait()
        self._child = None
        return Outcome(*key, WRONG, f"no end after {TIMEOUT_S} s" if timed_out else f"crash (exit code {code})")

    def stop(self) -> None:
        """End the child."""
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()
            self._child.wait()

    @staticmethod
    def _start() -> subprocess.Popen[str]:
        argv = ["nice", "-n", "19", sys.executable, __file__, "--worker"]
        pipe = subprocess.PIPE
        return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)


def run_all(keys: list[Key], workers: int, say: bool) -> dict[Key, Outcome]:
    """Return the outcome of every case."""
    todo: queue.SimpleQueue[Key] = queue.SimpleQueue()
    for key in keys:
        todo.put(key)
    done: dict[Key, Outcome] = {}

    def work() -> None:
        worker = Worker()
        while True:
            try:
                key = todo.get_nowait()
            except queue.Empty:
                break
            outcome = done[key] = worker.run(key)
            if say or outcome.result == WRONG:
                text = outcome.words or outcome.reason
                _say(f"{outcome.result:8} {'/'.join(key)}  {text}")
            if len(done) % 100 == 0:
                _say(f"-- {len(done)} of {len(keys)}")
        worker.stop()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def _say(line: str) -> None:
    """Print a line in one piece: several threads talk."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read_list(path: Path = LIST) -> dict[Key, Outcome]:
    """Return the written list."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return {(entry["kind"], entry["name"]): Outcome(**entry) for entry in document["cases"]}


def write_list(outcomes: dict[Key, Outcome]) -> None:
    """Write the list and its summary, in the order of ``all_cases``."""
    import onnx

    ordered = [outcomes[key] for key in all_cases() if key in outcomes]
    lines = ",\n".join("  " + json.dumps(outcome.as_dict(), ensure_ascii=False) for outcome in ordered)
    LIST.write_text(f'{{"onnx": "{onnx.__version__}", "cases": [\n{lines}\n]}}\n', encoding="utf-8")
    SUMMARY.write_text(summary(ordered, onnx.__version__), encoding="utf-8")


def summary(outcomes: list[Outcome], version: str) -> str:
    """Return the page that people read."""
    kinds = list(dict.fromkeys(outcome.kind for outcome in outcomes))
    counts = Counter((outcome.kind, outcome.result) for outcome in outcomes)
    lines = [
        "# ONNX conformance",
        "",
        f"The backend tests that come with onnx {version}, each through the whole line: import, build for the host,",
        "C runtime. Written by `tools/onnx_conformance.py`; `onnx-conformance.json` has every case with its outcome.",
        "",
        f"A library has fixed sizes. In {_fixed(outcomes)} of the passing cases an input decides a size (axes, ends of",
        "a slice, a target shape): its value is given at build time, as `--fix NAME=VALUES` does.",
        "The list names these inputs (`fixed`). All other cases take every input at run time.",
        "",
        "A case *passes* within its own tolerances, is *refused* with a sentence that says why, or is *wrong*.",
        "",
        "| tests | cases | pass | refused | wrong |",
        "|---|---:|---:|---:|---:|",
    ]
    for kind in kinds:
        row = [counts[kind, result] for result in (PASS, REFUSED, WRONG)]
        lines.append(f"| {kind} | {sum(row)} | {row[0]} | {row[1]} | {row[2]} |")
    totals = [sum(counts[kind, result] for kind in kinds) for result in (PASS, REFUSED, WRONG)]
    lines.append(f"| all | {sum(totals)} | {totals[0]} | {totals[1]} | {totals[2]} |")
    lines += ["", "## Why cases are refused", "", "| reason | cases |", "|---|---:|"]
    reasons = Counter(outcome.reason for outcome in outcomes if outcome.result == REFUSED)
    lines += [f"| {reason} | {count} |" for reason, count in sorted(reasons.items(), key=lambda r: (-r[1], r[0]))]
    wrong = [outcome for outcome in outcomes if outcome.result == WRONG]
    if wrong:
        lines += ["", "## Wrong", ""]
        lines += [f"- `{outcome.kind}/{outcome.name}`: {outcome.reason}" for outcome in wrong]
    return "\n".join(lines) + "\n"


def _fixed(outcomes: list[Outcome]) -> int:
    return sum(outcome.result == PASS and bool(outcome.fixed) for outcome in outcomes)


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="KIND/NAME", help="pattern of cases to run")
    parser.add_argument("--rerun", choices=(REFUSED, WRONG, "both"), help="run again what ended so in the list")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        serve()
        return 0
    keys, known = list(all_cases()), {}
    if options.rerun:
        known = read_list()
        ends = (REFUSED, WRONG) if options.rerun == "both" else (options.rerun,)
        keys = [key for key in keys if key not in known or known[key].result in ends]
    if options.only:
        keys = [key for key in keys if any(fnmatch.fnmatch("/".join(key), pattern) for pattern in options.only)]
    done = run_all(keys, options.workers, say=bool(options.only))
    if not options.only or options.rerun:
        write_list({**known, **done})
    counts = Counter(outcome.result for outcome in done.values())
    print(f"{counts[PASS]} pass, {counts[REFUSED]} refused, {counts[WRONG]} wrong")
    return 1 if counts[WRONG] else 0


if __name__ == "__main__":
    sys.exit(main())
