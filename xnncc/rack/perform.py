"""One batch on one device: its results stored group by group as they come, its outputs kept as blobs.

    facts, files = perform(work, phone, ...)      raises DeviceError (the device's fault), JobFailed (the batch's own)

A batch that was interrupted goes on behind the groups that are stored.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from xnncc.device.bench import Fault, Group, Measurement
from xnncc.errors import XnnccError
from xnncc.rack.blobs import Blobs
from xnncc.rack.jobs import Work
from xnncc.rack.phone import Batch, JobFailed, Phone

_MOST_FACTS = 4 << 20  # characters of JSON
OUTPUT = "out.bin"  # what a network wrote
DUMPS = "outputs.bin"  # what the first candidate of each group wrote

Keep = Callable[[Sequence[Measurement | Fault], int], None]


class Stopped(XnnccError):
    """The batch must not go on, through no fault of the device. ``kind``: see Jobs.fail."""

    def __init__(self, kind: str, error: XnnccError) -> None:
        super().__init__(error.what, error.why, error.next)
        self.kind = kind


def perform(
    work: Work, phone: Phone, blobs: Blobs, keep: Keep, check: Callable[[], None]
) -> tuple[dict[str, object], dict[str, str]]:
    """Do the batch; return its facts, and its files as name -> SHA-256.

    ``keep(results, groups_done)`` stores; ``check()`` raises what stops the batch, and is called between results.
    Raises: DeviceError, JobFailed, OutputError.
    """
    paths = _paths(work.batch, blobs)
    if work.batch.kind == "measure":
        return _measure(work, phone, paths, blobs, keep, check)
    with tempfile.TemporaryDirectory(prefix="xnncc-rack-") as folder:
        facts = phone.run(work.batch, paths, Path(folder))
        check()
        written = Path(folder) / OUTPUT
        files = {OUTPUT: blobs.put(written.read_bytes())} if written.is_file() else {}
    return _bounded(facts), files


def _measure(
    work: Work, phone: Phone, paths: Mapping[str, Path], blobs: Blobs, keep: Keep, check: Callable[[], None]
) -> tuple[dict[str, object], dict[str, str]]:
    dumps = bool(work.batch.arguments.get("dumps"))
    done, left = work.batch.groups[: work.groups_done], work.batch.groups[work.groups_done :]
    outputs = _dumps_again(work.batch, done, phone, paths) if dumps and done else b""
    if left:
        for results, count in _by_group(phone.measure(replace(work.batch, groups=left), paths), left, check):
            keep(results, len(done) + count)
        outputs += phone.outputs
    return _bounded(phone.facts), {DUMPS: blobs.put(outputs)} if dumps else {}


def _by_group(
    results: Iterator[Measurement | Fault], groups: Sequence[Group], check: Callable[[], None]
) -> Iterator[tuple[list[Measurement | Fault], int]]:
    """Yield the results of each group once it is whole, with the number of groups so far; at the end what is left."""
    waiting: list[Measurement | Fault] = []
    count = 0
    for result in results:
        check()
        waiting.append(result)
        while count < len(groups) and set(groups[count].candidates) <= {one.candidate for one in waiting}:
            mine: list[Measurement | Fault] = []
            for candidate in groups[count].candidates:
                found = next(one for one in waiting if one.candidate == candidate)
                waiting.remove(found)
                mine.append(found)
            count += 1
            yield mine, count
    yield waiting, len(groups)


def _dumps_again(batch: Batch, done: Sequence[Group], phone: Phone, paths: Mapping[str, Path]) -> bytes:
    """Return what the first candidates of groups write whose times are stored, but whose outputs were lost."""
    firsts = tuple(replace(group, candidates=group.candidates[:1]) for group in done)
    for _ in phone.measure(replace(batch, groups=firsts, rounds=0), paths):
        pass
    return phone.outputs


def _paths(batch: Batch, blobs: Blobs) -> dict[str, Path]:
    """Raises: JobFailed when one of its files is gone."""
    paths = {}
    for name, sha in batch.files.items():
        path = blobs.path(sha)
        if path is None:
            raise JobFailed(f"file '{name}' of the batch", "it is not in the rack's store any more", "Submit it again.")
        paths[sha] = path
    return paths


def _bounded(facts: Mapping[str, object]) -> dict[str, object]:
    """Raises: JobFailed when a device says more than anyone would keep."""
    if len(json.dumps(facts, default=str)) > _MOST_FACTS:
        raise JobFailed("batch", f"what the device said of it has more than {_MOST_FACTS} characters")
    return json.loads(json.dumps(facts, default=str))  # type: ignore[no-any-return]
