"""A bench of many: ``rack:KEY``, every device of that key that the rack has to spare, in parallel.

The groups of one call become batches, two for each device; a batch stays on one device, so that its times can be
compared. What the broker has stored is never measured twice. Infrastructure faults are the broker's to mend: it moves a
batch to another device. What even so could not be measured is left out, with a warning, and says nothing of a kernel.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress

from xnncc.device.bench import Bench, Dump, Fault, Group, Library, Measurement
from xnncc.device.rack_client import BatchFailed, RackClient, RackRefusal
from xnncc.device.rack_devices import GONE_S, PATIENCE_S, Presence, find_devices, read_wish
from xnncc.device.rack_wire import batch_document, read_result
from xnncc.errors import DeviceError
from xnncc.target import Target

BATCHES_A_DEVICE = 2  # so that a slow one takes fewer
MOST_BATCHES = 32  # at once: a thread each waits for its results
AGAIN = 2  # times that the rest of a batch is submitted anew after the rack gave it up
_WAIT_S = 10.0
DUMPS = "outputs.bin"

_Found = Measurement | Fault | DeviceError | None  # None: a batch has ended


class RackBench(Bench):
    """The devices of a wish (rack_devices.py). ``run_seconds``: processor time of one run that is taken for a hang."""

    name = "rack"
    is_elsewhere = True
    run_seconds = 10.0

    def __init__(self, target: Target, wish: str, gone_s: float = GONE_S) -> None:
        """Raises: DeviceError, BadInput."""
        wanted = read_wish(wish)
        self.client = RackClient(patience_s=PATIENCE_S)
        self.target, self.key, self.gone_s = target, wanted.key, gone_s
        self._closed = threading.Event()
        self._is_asked = False  # the broker has batches of ours that have not ended
        self.warnings: list[str] = []  # why something could not be measured
        try:
            self.devices = find_devices(self.client, self.key, target)
            name = f"tune for {target.name}"
            self.job = self.client.create_job(name, self.key, wanted.priority, wanted.weight)
        except BaseException:
            self.client.close()
            raise

    def measure(
        self, library: Library, groups: Sequence[Group], rounds: int, threads: int = 1, dump: Dump | None = None
    ) -> Iterator[Measurement | Fault]:
        """See Bench; the results of several devices come as they are known, each group as a whole.

        Raises: DeviceError when nothing could be measured, the broker is away or no device is left.
        """
        shares = [list(groups)] if dump is not None else self._shares(groups)
        found: queue.Queue[_Found] = queue.Queue()
        stop = threading.Event()
        common = (library, rounds, threads, dump, found, stop)
        workers = [threading.Thread(target=self._batch, args=(share, *common), daemon=True) for share in shares]
        presence = Presence(self.client, self.key, self.gone_s)
        self._is_asked = True
        for worker in workers:
            worker.start()
        try:
            yield from self._results(found, len(workers), presence)
            self._is_asked = False
        finally:
            stop.set()

    def _results(self, found: queue.Queue[_Found], running: int, presence: Presence) -> Iterator[Measurement | Fault]:
        count, errors = 0, []
        while running:
            try:
                one = found.get(timeout=1.0)
            except queue.Empty:
                presence.check()
                continue
            if isinstance(one, DeviceError):
                errors.append(one)
            elif one is None:
                running -= 1
            else:
                count += 1
                yield one
        if errors and not count:
            raise errors[0]
        self.warnings += [f"not measured: {error}" for error in errors]

    def _shares(self, groups: Sequence[Group]) -> list[list[Group]]:
        """Return the groups in as many shares as are useful; one that comes several times is in one share."""
        distinct = list(dict.fromkeys(groups))
        count = min(len(distinct), BATCHES_A_DEVICE * len(self.devices), MOST_BATCHES)
        owner = {group: n % count for n, group in enumerate(distinct)}
        shares: list[list[Group]] = [[] for _ in range(count)]
        for group in groups:
            shares[owner[group]].append(group)
        return shares

    def _batch(
        self,
        groups: list[Group],
        library: Library,
        rounds: int,
        threads: int,
        dump: Dump | None,
        found: queue.Queue[_Found],
        stop: threading.Event,
    ) -> None:
        """Have ``groups`` measured; everything that comes of it goes to ``found``, None at the end."""
        left, tries = groups, 0
        try:
            while left and not stop.is_set():
                done = 0
                try:
                    for one in self._follow(self._submit(library, left, rounds, threads, dump), dump, stop):
                        found.put(one)
                        done += 1
                    left = []
                except BatchFailed as error:
                    left = _groups_left(left, done)
                    tries += 1
                    if error.kind != "infrastructure" or tries > AGAIN:
                        raise
        except DeviceError as error:
            found.put(error)
        except RuntimeError:  # of a client that was closed meanwhile
            if not self._closed.is_set():
                raise
        finally:
            found.put(None)

    def _submit(self, library: Library, groups: Sequence[Group], rounds: int, threads: int, dump: Dump | None) -> str:
        """Return the id of a new batch; its files go to the broker first where it has not got them."""
        arguments = {"graph_symbol": library.graph_symbol, "dumps": dump is not None, "run_seconds": self.run_seconds}
        token = secrets.token_hex(16)
        for is_last in (False, True):
            files = {"library": self.client.put_blob(library.library), "package": self.client.put_blob(library.package)}
            document = batch_document("measure", self.target.name, files, groups, rounds, threads, arguments=arguments)
            try:
                return self.client.submit(self.job, token, document)
            except RackRefusal as error:
                if error.status != 409 or is_last:  # 409: the broker made room meanwhile
                    raise
        raise AssertionError("the second submission returns or raises")

    def _follow(self, batch: str, dump: Dump | None, stop: threading.Event) -> Iterator[Measurement | Fault]:
        after = 0
        while not stop.is_set() and not self._closed.is_set():
            document = self.client.results(batch, after, wait=_WAIT_S)
            for one in document["results"]:
                yield read_result(one)
            after = int(document["next"])
            if document["results"]:
                continue
            if document["state"] == "failed":
                error = document["error"] or {}
                words = [str(error.get(name, "")) for name in ("what", "why", "next")]
                raise BatchFailed(*words, kind=str(error.get("kind", "")))
            if document["state"] == "done":
                if dump is not None:
                    dump.data += self.client.get_blob(str(document["files"][DUMPS]))
                return
        raise BatchFailed(f"device 'rack:{self.key}'", "the run was ended", kind="cancelled")

    @property
    def description(self) -> str:
        """See Bench."""
        return str(self.devices[0]["soc"])

    def show(self, text: str, done: int, total: int, best_us: float, left_s: float) -> None:
        """See Bench; for the rack's page."""
        best = {"best": round(best_us, 1), "unit": "us"} if best_us else {}
        with suppress(DeviceError):  # a page that shows too little stops nobody
            self.client.progress(self.job, text=text[:300], done=done, total=total, left_s=round(left_s, 1), **best)

    def close(self) -> None:
        """See Bench. What still waits at the broker is cancelled."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._is_asked:
            with suppress(DeviceError):
                self.client.cancel_job(self.job)
        self.client.close()


def _groups_left(groups: Sequence[Group], results: int) -> list[Group]:
    """Return the groups that ``results`` results, whole groups from the front, leave."""
    left = list(groups)
    while left and results >= len(left[0].candidates):
        results -= len(left[0].candidates)
        left.pop(0)
    return left
