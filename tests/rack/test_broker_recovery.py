"""What the broker does when devices fail: ladder, quarantine, gate, cooling; and when the broker itself is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.served_broker import KEY, Served, served, until

from xnncc.device.bench import Fault
from xnncc.device.rack_client import BatchFailed, RackClient
from xnncc.errors import DeviceError
from xnncc.rack.cooling import CoolingLimits


def breaks(times: int, rack: Served, name: str = "phone-1") -> None:
    """Let a phone drop out in the middle of its next ``times`` batches."""
    phone = rack.phones[name]
    left = [times]

    def fail(batch: object, candidate: int) -> Fault | None:
        if left[0] and candidate == 4:
            left[0] -= 1
            phone.is_there = False
            raise DeviceError(f"device 'sim:{name}'", "the cable is out")
        return None

    phone.fails = fail


def test_a_rung_that_helps_brings_the_device_back_and_no_result_is_lost_or_doubled(tmp_path: Path) -> None:
    with served(tmp_path, phones=1) as rack:
        rack.phones["phone-1"].rungs = {"restart-agent": False, "reconnect": True}
        breaks(1, rack)
        batch = rack.admin.submit(rack.admin.create_job("tune", KEY), "1", rack.document(groups=3))
        assert [r.candidate for r in rack.admin.follow(batch)] == list(range(9))
        assert rack.phones["phone-1"].climbed == ["restart-agent", "reconnect"]
        assert rack.device("phone-1")["faults"] == 0, "a batch that is done counts them anew"
        lines = [(line["what"], line["outcome"]) for line in rack.admin.audit(50)]
        assert ("reconnect phone-1", "helped") in lines
        assert any(what == "restart-agent phone-1" and "failed" in outcome for what, outcome in lines)


def test_what_one_device_cannot_do_another_one_does(tmp_path: Path) -> None:
    with served(tmp_path) as rack:
        rack.admin.quarantine("phone-2")
        breaks(1, rack)
        batch = rack.admin.submit(rack.admin.create_job("tune", KEY), "1", rack.document(groups=3))
        until(lambda: rack.device("phone-1")["state"] == "offline", "phone-1 lost")
        rack.admin.release_device("phone-2")
        assert [r.candidate for r in rack.admin.follow(batch)] == list(range(9))
        devices = [one["device"] for one in rack.admin.results(batch)["results"]]
        assert devices == ["phone-1"] * 3 + ["phone-2"] * 6, "a group is of one device"
        rack.phones["phone-1"].is_there = True
        until(lambda: rack.device("phone-1")["state"] == "free", "found again by itself")


def test_faults_in_a_row_quarantine_and_someone_is_told(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = (sys.executable, "-c", f"import sys; open({str(told)!r}, 'a').write('|'.join(sys.argv[1:]))")
    with served(tmp_path, phones=1, faults_until_quarantine=2, attempts=5, probe_s=30.0, webhook=command) as rack:
        rack.phones["phone-1"].rungs = {"reconnect": True}
        breaks(2, rack)
        batch = rack.admin.submit(rack.admin.create_job("tune", KEY), "1", rack.document())
        until(lambda: rack.device("phone-1")["state"] == "quarantined", "quarantined")
        assert "2 infrastructure faults in a row" in rack.device("phone-1")["reason"]
        until(lambda: told.exists() and "phone-1|quarantined|2 infra" in told.read_text(), "someone is told")
        assert rack.admin.results(batch)["state"] == "queued"
        rack.admin.release_device("phone-1")
        assert len(list(rack.admin.follow(batch))) == 6


def test_a_look_that_finds_nothing_wrong_ends_a_quarantine(tmp_path: Path) -> None:
    with served(tmp_path, phones=1, faults_until_quarantine=1) as rack:
        rack.phones["phone-1"].rungs = {"reconnect": True}
        breaks(1, rack)
        batch = rack.admin.submit(rack.admin.create_job("tune", KEY), "1", rack.document())
        assert len(list(rack.admin.follow(batch))) == 6
        lines = [line["what"] for line in rack.admin.audit(50)]
        assert "quarantine phone-1" in lines


def test_an_admins_quarantine_outlives_the_broker_and_no_look_ends_it(tmp_path: Path) -> None:
    with served(tmp_path, phones=1) as rack:
        rack.admin.quarantine("phone-1", "swollen battery")
        time.sleep(0.3)
        assert rack.device("phone-1")["state"] == "quarantined"
    with served_again(tmp_path) as rack:
        time.sleep(0.3)
        device = rack.device("phone-1")
        assert (device["state"], device["quarantined_by"]) == ("quarantined", "admin")
        assert "swollen battery" in device["reason"]


def served_again(state: Path):  # type: ignore[no-untyped-def]
    """Return a broker on a state folder that is there already, its tokens made anew."""
    from xnncc.rack.store import Store

    store = Store(state)
    store.run("DELETE FROM tokens")
    store.close()
    return served(state, phones=0)


def test_a_batch_that_breaks_every_device_is_given_up(tmp_path: Path) -> None:
    with served(tmp_path, phones=3) as rack:
        for name in ("phone-1", "phone-2", "phone-3"):
            rack.phones[name].rungs = {"reconnect": True}
            breaks(99, rack, name)
        batch = rack.admin.submit(rack.admin.create_job("tune", KEY), "1", rack.document())
        with pytest.raises(BatchFailed, match="3 devices or attempts failed with it") as failed:
            list(rack.admin.follow(batch))
        assert failed.value.kind == "infrastructure"
        assert rack.admin.jobs()[0]["batches"]["failed"] == 1


def test_the_gate_holds_up_a_phone_that_is_not_fit_and_opens_by_itself(tmp_path: Path) -> None:
    with served(tmp_path, phones=1) as rack:
        rack.phones["phone-1"].battery_percent = 5.0
        until(lambda: rack.device("phone-1")["state"] == "quarantined", "held up")
        device = rack.device("phone-1")
        assert device["quarantined_by"] == "preflight" and "charge it" in device["reason"]
        batch = rack.admin.submit(rack.admin.create_job("tune", KEY), "1", rack.document())
        assert rack.admin.results(batch, wait=0.3)["state"] == "queued"
        rack.phones["phone-1"].battery_percent = 80.0
        assert len(list(rack.admin.follow(batch))) == 6


def test_a_warm_phone_cools_before_it_measures(tmp_path: Path) -> None:
    with served(tmp_path, phones=1, cooling=CoolingLimits(deadline_s=20, poll_s=0.02)) as rack:
        rack.phones["phone-1"].celsius = 50.0
        until(lambda: rack.device("phone-1")["state"] == "cooling", "cooling")
        assert "50.0 °C" in rack.device("phone-1")["reason"]
        batch = rack.admin.submit(rack.admin.create_job("tune", KEY), "1", rack.document())
        assert rack.admin.results(batch, wait=0.3)["state"] == "queued"
        rack.phones["phone-1"].celsius = 39.0
        assert len(list(rack.admin.follow(batch))) == 6
        assert {r["celsius"] for r in rack.admin.history("phone-1")} >= {50.0, 39.0}


def test_a_phone_that_does_not_cool_is_quarantined_at_the_deadline(tmp_path: Path) -> None:
    with served(tmp_path, phones=1, cooling=CoolingLimits(deadline_s=0.2, poll_s=0.02)) as rack:
        rack.phones["phone-1"].celsius = 50.0
        until(lambda: rack.device("phone-1")["state"] == "quarantined", "quarantined")
        rack.phones["phone-1"].celsius = 30.0
        until(lambda: rack.device("phone-1")["state"] == "free", "free again by itself")


def test_a_wall_clock_that_jumps_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    with served(tmp_path, phones=1) as rack:
        with rack.admin.lease("phone-1", 60.0) as lease:
            for jump in (86400.0, -86400.0 * 365):
                monkeypatch.setattr(time, "time", lambda jump=jump: real() + jump)
                time.sleep(0.4)
                assert rack.device("phone-1")["lease"]["lease"] == lease["lease"]
            batch = rack.admin.submit(rack.admin.create_job("t", KEY), "1", rack.document(), lease["lease"])
            assert len(list(rack.admin.follow(batch))) == 6
        assert 0 <= rack.admin.jobs()[0]["used_s"] < 60


_SERVE = """
import sys
sys.path[:0] = [{tests!r}]
from pathlib import Path
from fakes.served_broker import Phones, QUICK
from xnncc.rack.broker import Broker
from xnncc.rack.server import listen, serve
from xnncc.rack.settings import Settings
broker = Broker(Settings(Path({state!r}), open_phone=Phones(0.02), reference_of=None, finds_adb=False, **QUICK))
if "phone-1" not in broker.workers:
    Path({state!r}, "token").write_text(broker.tokens.create("me", "admin"))
    broker.add("sim:phone-1")
serve(broker, listen("127.0.0.1", int(sys.argv[1])))
"""


def test_a_broker_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    code = _SERVE.format(tests=str(Path(__file__).parent), state=str(tmp_path))
    port = _free_port()

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code, str(port)])

    process = start()
    try:
        until(lambda: (tmp_path / "token").exists() and (tmp_path / "token").read_text() != "", "started", 60)
        token = (tmp_path / "token").read_text()
        with RackClient(f"http://127.0.0.1:{port}", token, patience_s=60) as client:
            job = client.create_job("tune", KEY, token="job")
            groups = [
                {"candidates": list(range(3 * n, 3 * n + 3)), "floats": 1, "out_offset": 0, "out_bytes": 4}
                for n in range(10)
            ]
            document = {
                "kind": "measure", "target": "t", "files": {"library": client.put_blob(b"x")}, "groups": groups,
                "rounds": 3, "threads": 1, "core_mask": 0, "arguments": {"dumps": True},
            }  # fmt: skip
            batch = client.submit(job, "1", document)
            seen, kills = [], 0
            ended: dict[str, object] = {}
            for result in client.follow(batch, ended):
                seen.append(result.candidate)
                if len(seen) in (6, 18) and kills < 2:
                    kills += 1
                    os.kill(process.pid, signal.SIGKILL)
                    process.wait()
                    process = start()
            assert kills == 2
            assert seen == list(range(30)), "nothing is lost, nothing comes twice"
            assert client.submit(client.create_job("tune", KEY, token="job"), "1", document) == batch
            assert client.get_blob(ended["files"]["outputs.bin"]) == bytes(40), "outputs from before the kill too"  # type: ignore[index]
            assert client.results(batch)["attempts"] == 0, "the broker's end is no fault of the batch"
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    import socket

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_a_network_cut_is_waited_for(tmp_path: Path) -> None:
    from fakes.faults import FaultyWire

    with served(tmp_path, phones=1, seconds=0.05) as rack:
        wire = FaultyWire(int(rack.url.rpartition(":")[2]))
        try:
            with RackClient(f"http://127.0.0.1:{wire.port}", rack.tokens["run"], patience_s=30) as client:
                batch = client.submit(client.create_job("tune", KEY), "1", rack.document(groups=4))
                seen = []
                for result in client.follow(batch):
                    seen.append(result.candidate)
                    if len(seen) == 3:
                        wire.cut()
                        import threading

                        threading.Timer(1.0, wire.mend).start()
                assert seen == list(range(12))
        finally:
            wire.close()


def test_a_mistake_of_ours_costs_one_device_not_the_rack(tmp_path: Path) -> None:
    with served(tmp_path) as rack:

        def bug(batch: object, candidate: int) -> Fault | None:
            raise KeyError("oops")

        rack.phones["phone-1"].fails = bug
        with rack.admin.lease("phone-1") as lease:
            batch = rack.admin.submit(rack.admin.create_job("t", KEY), "1", rack.document(), lease["lease"])
            until(lambda: rack.device("phone-1")["state"] == "quarantined", "quarantined")
            assert "xnncc made a mistake" in rack.device("phone-1")["reason"]
            assert rack.admin.results(batch)["state"] == "queued"
        other = rack.admin.submit(rack.admin.create_job("t2", KEY), "1", rack.document())
        assert len(list(rack.admin.follow(other))) == 6
