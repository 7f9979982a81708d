"""Tuning through the rack while things break: it goes on, and what it keeps is what an undisturbed run keeps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.known_phone import KEY
from fakes.tuned_rack import SPEC, TRIALS, Rack, entries_of, records_of, share_work, small_model

from xnncc.device.bench import Fault, Measurement
from xnncc.device.rack_client import RackClient
from xnncc.errors import DeviceError
from xnncc.tune import tune
from xnncc.tune.candidates import Workshop

HERE = Path(__file__).parent
Undisturbed = tuple[list[Any], list[Any]]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as patch:
        share_work(patch, folder)
        yield folder


@pytest.fixture(scope="module")
def model(shared: Path) -> Path:
    return small_model(shared)


@pytest.fixture(scope="module")
def undisturbed(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """What a run keeps in which nothing happens: its records and its journal."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch, Rack(folder, "p1", "p2").serving(patch):
        outcome = tune(model, "host", devices=[SPEC], trials=TRIALS, output=folder)
    assert outcome.records and not {kind for kind in outcome.faults if kind}
    return records_of(folder), entries_of(folder)


@pytest.fixture
def rack(tmp_path: Path) -> Rack:
    return Rack(tmp_path, "p1", "p2")


@pytest.fixture
def run(rack: Rack, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return ``run(**options)``: serve the rack, tune, return the outcome."""

    def tuned(**options: Any) -> Any:
        with rack.serving(monkeypatch):
            return tune(model, "host", devices=[SPEC], output=tmp_path / "kept", **{"trials": TRIALS, **options})

    return tuned


def as_undisturbed(tmp_path: Path, undisturbed: Undisturbed) -> None:
    records, entries = undisturbed
    assert records_of(tmp_path / "kept") == records
    assert set(entries_of(tmp_path / "kept")) == set(entries)


def after(count: int, act: Callable[[], None]) -> Callable[[Measurement | Fault], None]:
    """Return what calls ``act`` before the ``count``-th result."""
    seen: list[int] = []

    def before(result: Measurement | Fault) -> None:
        seen.append(result.candidate)
        if len(seen) == count:
            act()

    return before


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("crash", "*(volatile int *)8 = 1; return 0;"),
        ("hang", "for (;;) __asm__ volatile(\"\"); return 0;"),
        ("wrong", "return 0;"),
    ],
    ids=["kernel segfault", "kernel hang", "wrong result"],
)  # fmt: skip
def test_a_bad_kernel_costs_itself_alone(
    kind: str, body: str, rack: Rack, run: Callable[..., Any], tmp_path: Path, undisturbed: Undisturbed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from dataclasses import replace

    from xnncc.codegen.compile import compile_file
    from xnncc.tune import candidates
    from xnncc.tune.candidates import PREFIX, Compiled

    shared: Any = candidates.Workshop

    def compile_or_break(self: Workshop, wanted: Any) -> Any:
        honest = shared.compile(self, wanted)
        for (key, index), compiled in honest.items():
            if index == 1 and isinstance(compiled, Compiled):
                name = compiled.path.stem
                source = self.folder / f"bad-{name}.c"
                source.write_text(f"int {PREFIX}{name}(void);\nint {PREFIX}{name}(void) {{ {body} }}\n")
                compile_file(self.target, source, self.folder / f"{name}.o", [])
                self.done[key, index] = replace(compiled, path=self.folder / f"{name}.o")
        return {at: self.done[at] for at in honest}

    class Sabotaged(shared):  # type: ignore[misc]
        compile = compile_or_break

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.done = dict(self.done)

    monkeypatch.setattr(candidates, "Workshop", Sabotaged)
    outcome = run()
    assert {k for k in outcome.faults if k} == {kind}
    records, entries = undisturbed
    bad = [e for e in entries_of(tmp_path / "kept") if e[3]]
    assert len(bad) == outcome.faults[kind] == len({e[0] for e in bad}) >= 2
    good = [e for e in entries_of(tmp_path / "kept") if not e[3]]
    assert {(e[0], e[1]) for e in good} >= {(e[0], e[1]) for e in entries} - {(e[0], e[1]) for e in bad}
    assert {(r[0], r[1]) for r in records_of(tmp_path / "kept")}.isdisjoint({(e[0], e[1]) for e in bad})
    assert {r[0] for r in records_of(tmp_path / "kept")} == {r[0] for r in records}


def test_phone_killed(rack: Rack, run: Callable[..., Any], tmp_path: Path, undisturbed: Undisturbed) -> None:
    def die() -> None:
        rack.phones["p1"].is_there = False

    rack.phones["p1"].before = after(2, die)
    outcome = run()
    as_undisturbed(tmp_path, undisturbed)
    assert not {kind for kind in outcome.faults if kind}
    assert not rack.phones["p1"].is_there and rack.phones["p1"].measured == 1


def test_phone_unplugged_and_back(
    rack: Rack, run: Callable[..., Any], tmp_path: Path, undisturbed: Undisturbed
) -> None:
    phone = rack.phones.pop("p1")
    rack.phones = {"p1": phone}  # the only one: without it nothing goes on

    def unplug() -> None:
        phone.is_there = False
        threading.Timer(0.6, lambda: setattr(phone, "is_there", True)).start()

    phone.before = after(3, unplug)
    run()
    as_undisturbed(tmp_path, undisturbed)
    assert phone.is_there


def test_all_phones_gone_is_said(
    rack: Rack, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xnncc.device.bench_rack.RackBench.__init__.__defaults__", (1.0,))
    for phone in rack.phones.values():
        phone.before = after(2, lambda phone=phone: setattr(phone, "is_there", False))  # type: ignore[misc]
    with pytest.raises(
        DeviceError, match=r"none of its devices can be used: p1 is offline .*What was measured is kept"
    ):
        run()
    assert all(not entry[3] for entry in entries_of(tmp_path / "kept"))


def test_network_cut(rack: Rack, run: Callable[..., Any], tmp_path: Path, undisturbed: Undisturbed) -> None:
    seconds = float(os.environ.get("XNNCC_CUT_SECONDS", "1"))

    def cut() -> None:
        rack.wire.cut()
        threading.Timer(seconds, rack.wire.mend).start()

    rack.phones["p1"].before = after(1, cut)
    run()
    as_undisturbed(tmp_path, undisturbed)


def test_clock_jump(
    rack: Rack, run: Callable[..., Any], tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = time.time
    jumps = iter([86400.0, -7 * 86400.0])

    def jump() -> None:
        seconds = next(jumps)
        monkeypatch.setattr(time, "time", lambda: honest() + seconds)

    rack.phones["p1"].before = after(1, jump)
    rack.phones["p2"].before = after(3, jump)
    run()
    as_undisturbed(tmp_path, undisturbed)


def test_torn_journal(run: Callable[..., Any], tmp_path: Path, undisturbed: Undisturbed) -> None:
    run(trials=4)
    journal = tmp_path / "kept" / "journal" / "net.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    kept = tmp_path / "kept" / "conv2d.jsonl"
    kept.write_bytes((kept.read_bytes() if kept.exists() else b"") + b'{"kernel": "conv2d.1 fl')
    outcome = run()
    assert sum("the last line was cut off" in warning for warning in outcome.warnings) == 2
    records, _ = undisturbed
    assert {r[0] for r in records_of(tmp_path / "kept")} == {r[0] for r in records}
    assert not any(entry[3] for entry in entries_of(tmp_path / "kept"))


def test_token_wrong(rack: Rack, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rack.serving(monkeypatch) as client:
        monkeypatch.setenv("XNNCC_RACK_TOKEN", "xr_of-another-rack")
        with pytest.raises(DeviceError, match="the token is missing or wrong"):
            tune(model, "host", devices=[SPEC], trials=TRIALS, output=tmp_path / "kept")
        assert client.jobs() == []
        assert any(line["outcome"] == "no valid token" for line in client.audit())
    assert not (tmp_path / "kept").exists()


def test_key_of_no_device(rack: Rack, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rack.serving(monkeypatch), pytest.raises(DeviceError, match=f"did you mean '{KEY}'"):
        tune(model, "host", devices=["rack:known-x86-64"], trials=TRIALS, output=tmp_path / "kept")


def test_client_killed_and_restarted(
    rack: Rack, model: Path, tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import sys; from xnncc.tune import tune; "
        "tune(sys.argv[1], 'host', devices=[sys.argv[2]], trials=int(sys.argv[3]), output=sys.argv[4])"
    )
    reached = threading.Event()
    with rack.serving(monkeypatch):
        for phone in rack.phones.values():
            phone.before = after(4, reached.set)
        arguments = [str(model), SPEC, str(TRIALS), str(tmp_path / "kept")]
        client = subprocess.Popen([sys.executable, "-c", script, *arguments], stderr=subprocess.DEVNULL)
        journal = tmp_path / "kept" / "journal" / "net.jsonl"
        assert reached.wait(120)
        end = time.monotonic() + 60
        while not (journal.is_file() and journal.read_bytes()) and time.monotonic() < end:
            time.sleep(0.01)
        client.send_signal(signal.SIGKILL)
        client.wait()
        kept = entries_of(tmp_path / "kept")
        assert kept, "what came before the end is in the journal"
        outcome = tune(model, "host", devices=[SPEC], trials=TRIALS, output=tmp_path / "kept")
    assert outcome.resumed == len(kept)
    records, _ = undisturbed
    assert {r[0] for r in records_of(tmp_path / "kept")} == {r[0] for r in records}


def test_broker_killed_and_restarted(
    model: Path, tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches that were running go on where their results end, under the same address."""
    broker = _start_broker(tmp_path)
    url, token = broker.stdout.readline().split()  # type: ignore[union-attr]
    monkeypatch.setenv("XNNCC_RACK", url)
    monkeypatch.setenv("XNNCC_RACK_TOKEN", token)
    killed: list[subprocess.Popen[str]] = []

    def kill_once() -> None:
        with RackClient(url, token) as client:
            while not any(job["batches"]["running"] for job in client.jobs()):
                time.sleep(0.02)
        broker.send_signal(signal.SIGKILL)
        broker.wait()
        killed.append(_start_broker(tmp_path, url.rpartition(":")[2]))

    thread = threading.Thread(target=kill_once)
    thread.start()
    try:
        tune(model, "host", devices=[SPEC], trials=TRIALS, output=tmp_path / "kept")
        thread.join()
    finally:
        for one in (broker, *killed):
            one.kill()
            one.wait()
    assert killed
    as_undisturbed(tmp_path, undisturbed)


def _start_broker(folder: Path, port: str = "0") -> subprocess.Popen[str]:
    argv = [sys.executable, str(HERE / "fakes" / "serve_known.py"), str(folder), port, "p1", "p2"]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
