#!/usr/bin/env python3
"""Fuzz the three readers of our own: Caffe (prototxt and caffemodel), TensorFlow (frozen GraphDef), TFLite.

    tools/fuzz_readers.py                          20,000 damaged files for each reader
    tools/fuzz_readers.py caffe --files 1000       one reader
    tools/fuzz_readers.py --import --files 500     the whole import of what is still readable (no numbers compared)

The inputs are made from the files of the tests: bytes and numbers changed, parts removed, doubled, moved, taken from
another file, words of the format put in. Every file must be read, or refused with one of xnncc's own errors in one
sentence, within ``--seconds`` and ``--memory-mib`` more than the start took. Exit code 1 and the file kept in this
folder when one is not. The same --seed makes the same files; --first repeats one.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / "tests" / "frontends" / kind) for kind in ("caffe", "tensorflow", "tflite"))]

from xnncc.errors import XnnccError  # noqa: E402  (the checkout's own, installed or not)

Files = dict[str, bytes]  # by suffix: a Caffe network has two files
MAX_SENTENCE = 4000  # a refusal names every layer that is at fault

_NUMBERS = (0, 1, 2, 127, 128, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
_WORDS = (
    b"-1", b"0", b"99999999999", b"{", b"}", b'"', b":", b"dim: 4", b"nan", b"inf", b"layer {", b"layers {", b"1e400",
    b"\\", b"top: 'out'", b"bottom: 'data'", b"[", b">", b"<", b"#", b"bottom: 'out'", b"input: 'data'", b"a {" * 100,
    b"MAX", b"phase: TRAIN", b"x:0", b"^x", b"While", b"PartitionedCall", b"\xff" * 10, b"\x80" * 9 + b"\x01",
    b"\n" * 4, b"\x0a\x00", b"-0x7fffffff", "名".encode(), b"\0" * 8,
)  # fmt: skip


def _caffe_samples() -> list[Files]:
    from caffe_cases import CASES
    from caffe_files import caffemodel

    layouts = [{}, {"packed": False}, {"legacy": True}, {"v1": True}, {"double": True}]
    return [
        {".prototxt": case.text.encode(), ".caffemodel": caffemodel(case.blobs or {"none": []}, **layouts[i % 5])}
        for i, case in enumerate(CASES.values())
    ]


def _tensorflow_samples() -> list[Files]:
    from stored_cases import network, operator_cases

    cases = [*operator_cases().values(), network("fake_quantised"), network("recurrent_loop")]
    return [{".pb": case.graph} for case in cases]


def _tflite_samples() -> list[Files]:
    from tflite_cases import CASES

    return [{".tflite": case()[0]} for case in CASES.values()]


def _read_caffe(path: Path) -> object:
    from xnncc.frontends.caffe.read import read_net

    return read_net(path)


def _read_tensorflow(path: Path) -> object:
    from xnncc.frontends.tensorflow.read import parse_graph_def, read_bytes

    return parse_graph_def(read_bytes(path), path)


def _read_tflite(path: Path) -> object:
    from xnncc.frontends.tflite.read import read_tflite

    return read_tflite(path)


def import_whole(path: Path) -> object:
    """Read and convert, compare no numbers."""
    from xnncc.frontends import load_model

    return load_model(path, check=False)


@dataclass(frozen=True)
class Reader:
    """A reader of ours and the good files that damage starts from; the first suffix is the file that is opened."""

    samples: Callable[[], list[Files]]
    read: Callable[[Path], object]


READERS = {
    "caffe": Reader(_caffe_samples, _read_caffe),
    "tensorflow": Reader(_tensorflow_samples, _read_tensorflow),
    "tflite": Reader(_tflite_samples, _read_tflite),
}


@dataclass
class Outcome:
    """What happened to ``read + refused + len(findings)`` files; ``findings`` are (number, what, files)."""

    read: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    findings: list[tuple[int, str, Files]] = field(default_factory=list)


class TooSlow(BaseException):
    """A file took longer than it may; no handler of ours catches it."""


def damaged(data: bytes, other: bytes, rng: random.Random) -> bytes:
    """Return ``data`` with one to eight hurts; ``other`` is a file of the same kind to take parts from."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(out) + 1)
        end = min(at + rng.choice((1, 1, 2, 4, 8, 12, 64)), len(out))
        kind = rng.randrange(9)
        if kind == 0 and at < len(out):
            out[at] = rng.randrange(256)
        elif kind == 1 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del out[at:end]
        elif kind == 3:
            out[at:at] = out[at:end]
        elif kind == 4:
            word = rng.choice(_WORDS)
            out[at : end if rng.random() < 0.5 else at] = word
        elif kind == 5:
            width = rng.choice((1, 2, 4, 8))
            at -= at % width
            out[at : at + width] = (rng.choice(_NUMBERS) % 256**width).to_bytes(width, "little")
        elif kind == 6 and other:
            start = rng.randrange(len(other))
            out[at:end] = other[start : start + rng.randrange(1, 200)]
        elif kind == 7 and rng.random() < 0.2:
            del out[at:]
        elif kind == 8:
            out[at:end] = bytes(rng.randrange(256) for _ in range(end - at))
    return bytes(out)


def fuzz(
    name: str,
    count: int,
    folder: Path,
    *,
    seed: int = 1,
    first: int = 0,
    whole: bool = False,
    seconds: float = 5.0,
    memory_mib: int = 2048,
) -> Outcome:
    """Damage ``count`` files of reader ``name`` and open each in ``folder``; ``whole`` imports them."""
    reader = READERS[name]
    samples, read = reader.samples(), import_whole if whole else reader.read
    read(_written(samples[0], folder))  # what the libraries need for themselves is taken before the limits
    outcome = Outcome()
    with limited_memory(memory_mib):
        for number in range(first, first + count):
            rng = random.Random(f"{name} {seed} {number}")
            files = dict(rng.choice(samples))
            suffix = rng.choice(list(files))
            files[suffix] = damaged(files[suffix], rng.choice(samples)[suffix], rng)
            start = time.monotonic()
            what = opened(read, _written(files, folder), seconds, outcome)
            outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - start)
            if what:
                outcome.findings.append((number, what, files))
    return outcome


@contextmanager
def limited_memory(mib: int) -> Iterator[None]:
    """Let this process take no more than ``mib`` MiB of addresses beyond what it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + mib * 2**20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _written(files: Files, folder: Path) -> Path:
    for suffix, data in files.items():
        (folder / f"net{suffix}").write_bytes(data)
    return folder / f"net{next(iter(files))}"


def opened(read: Callable[[Path], object], path: Path, seconds: float, outcome: Outcome) -> str:
    """Open one file and return what is wrong with the way it ended."""
    before = signal.signal(signal.SIGALRM, _too_slow)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with np.errstate(all="ignore"):
            read(path)
        outcome.read += 1
    except XnnccError as error:
        outcome.refused += 1
        text = str(error)
        if "\n" in text or len(text) > MAX_SENTENCE:
            return f"a refusal of {len(text)} characters in {len(text.splitlines())} lines: {text[:300]!r}"
    except TooSlow:
        return f"not done after {seconds:g} s"
    except BaseException as error:  # anything at all that is not ours is what this program looks for
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return ""


def _too_slow(*_: Any) -> None:
    raise TooSlow


def main() -> int:
    """Fuzz the named readers and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", help=f"which: {', '.join(READERS)} (default: all)")
    parser.add_argument("--files", type=int, default=20_000, help="how many for each reader (default: 20000)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one (default: 0)")
    parser.add_argument("--import", action="store_true", dest="whole", help="read and convert, not only read")
    parser.add_argument("--seconds", type=float, default=5.0, help="limit for one file (default: 5)")
    parser.add_argument("--memory-mib", type=int, default=2048, help="limit above the start's memory (default: 2048)")
    options = parser.parse_args()
    if unknown := sorted(set(options.readers) - set(READERS)):
        parser.error(f"no reader is called {', '.join(unknown)}; there are {', '.join(READERS)}")
    found = 0
    for name in options.readers or READERS:
        with tempfile.TemporaryDirectory() as folder:
            start = time.monotonic()
            outcome = fuzz(
                name, options.files, Path(folder), seed=options.seed, first=options.first, whole=options.whole,
                seconds=options.seconds, memory_mib=options.memory_mib,
            )  # fmt: skip
            rate = options.files / (time.monotonic() - start)
        for number, what, files in outcome.findings:
            for suffix, data in files.items():
                Path(f"fuzz-{name}-{number}{suffix}").write_bytes(data)
            print(f"{name}: number {number} (fuzz-{name}-{number}.*): {what}")
        found += len(outcome.findings)
        print(
            f"{name}: {options.files} files, {outcome.read} read, {outcome.refused} refused, "
            f"{len(outcome.findings)} findings, slowest {outcome.slowest_s:.2f} s, {rate:.0f} a second",
            flush=True,
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
