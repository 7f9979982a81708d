"""A small run of tools/fuzz_readers.py: damaged files are read, or refused in one sentence of ours; nothing else."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from fuzz_readers import READERS, Outcome, damaged, fuzz, limited_memory, opened

from xnncc.errors import XnnccError


@pytest.mark.parametrize("name", READERS)
def test_no_damaged_file_does_harm_to_a_reader(name: str, tmp_path: Path) -> None:
    outcome = fuzz(name, 1000, tmp_path)
    assert outcome.findings == []
    assert outcome.read > 50 and outcome.refused > 500, "both ends are met"


@pytest.mark.parametrize("name", READERS)
def test_no_damaged_file_does_harm_to_an_import(name: str, tmp_path: Path) -> None:
    outcome = fuzz(name, 100, tmp_path, seed=2, whole=True)
    assert outcome.findings == []


def _slow(path: Path) -> None:
    while True:
        path.stat()


def _two_lines(path: Path) -> None:
    raise XnnccError("first\nsecond")


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda path: [][1], "IndexError: list index out of range"),
        (lambda path: bytearray(2**33), "MemoryError"),
        (_slow, "not done after 0.05 s"),
        (_two_lines, "a refusal of 13 characters in 2 lines"),
    ],
)
def test_what_a_reader_must_not_do_is_found(read: Callable[[Path], object], what: str, tmp_path: Path) -> None:
    with limited_memory(1024):
        assert opened(read, tmp_path, 0.05, Outcome()).startswith(what)


def test_the_same_seed_makes_the_same_damage() -> None:
    first, second = (damaged(b"network" * 50, b"other" * 50, random.Random(3)) for _ in range(2))
    assert first == second != b"network" * 50
