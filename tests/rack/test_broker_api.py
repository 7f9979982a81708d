"""The broker's HTTP interface: who may do what, what is refused, and that every request has bounds."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
from fakes.served_broker import KEY, Served, served, until
from websockets.sync.client import connect

from xnncc.device.bench import Fault, Measurement
from xnncc.device.rack_client import BatchFailed, RackClient, RackRefusal
from xnncc.errors import BadInput, DeviceError


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("rack")) as found:
        yield found


def raw(rack: Served, role: str = "admin") -> httpx.Client:
    """Return a client that can say anything."""
    return httpx.Client(base_url=rack.url, headers={"Authorization": f"Bearer {rack.tokens[role]}"}, trust_env=False)


def test_measures_a_batch_and_keeps_each_result(rack: Served) -> None:
    with rack.client("run") as client:
        job = client.create_job("tune", KEY)
        batch = client.submit(job, "1", rack.document(arguments={"dumps": True}))
        ended: dict[str, object] = {}
        results = list(client.follow(batch, ended))
        assert [r.candidate for r in results if isinstance(r, Measurement) and len(r.ns) == 5] == [0, 1, 2, 3, 4, 5]
        assert [r.candidate for r in client.follow(batch)] == [0, 1, 2, 3, 4, 5], "they can be read again"
        assert ended["state"] == "done" and ended["device"] in ("phone-1", "phone-2")
        assert set(ended["facts"]) == {"before", "after"}  # type: ignore[call-overload]
        assert client.get_blob(ended["files"]["outputs.bin"]) == bytes(8)  # type: ignore[index]
        assert client.job(job)["batches"] == {"queued": 0, "running": 0, "done": 1, "failed": 0}


def test_a_kernel_fault_is_a_result(rack: Served) -> None:
    def crash(batch: object, candidate: int) -> Fault | None:
        return Fault(1, "crash", "SIGSEGV") if candidate == 1 else None

    for phone in rack.phones.all.values():
        phone.fails = crash
    try:
        with rack.client("run") as client:
            batch = client.submit(client.create_job("tune", KEY), "1", rack.document(groups=1))
            assert Fault(1, "crash", "SIGSEGV") in list(client.follow(batch))
    finally:
        for phone in rack.phones.all.values():
            phone.fails = lambda batch, candidate: None


def test_a_batch_that_no_device_takes_fails_with_its_reason(rack: Served) -> None:
    with rack.client("run") as client:
        batch = client.submit(client.create_job("run", KEY), "1", rack.document(groups=0, kind="run"))
        with pytest.raises(BatchFailed, match="a simulated phone runs none") as failed:
            list(client.follow(batch))
        assert failed.value.kind == "job"
    assert all(device["faults"] == 0 for device in rack.admin.devices())


@pytest.mark.parametrize(
    ("role", "method", "path", "status"),
    [
        ("view", "GET", "/v1/devices", 200),
        ("view", "GET", "/v1/errors", 200),
        ("view", "POST", "/v1/jobs", 403),
        ("view", "POST", "/v1/blobs", 403),
        ("view", "POST", "/v1/leases", 403),
        ("run", "POST", "/v1/devices", 403),
        ("run", "DELETE", "/v1/devices/phone-1", 403),
        ("run", "POST", "/v1/devices/phone-1/quarantine", 403),
        ("run", "GET", "/v1/audit", 403),
        ("run", "GET", "/v1/tokens", 403),
        ("admin", "GET", "/v1/audit", 200),
        ("admin", "GET", "/v1/nothing", 404),
        ("admin", "GET", "/v1/jobs/nothing", 404),
        ("admin", "GET", "/v1/batches/nothing", 404),
        ("admin", "GET", "/v1/blobs/..%2f..%2frack.db", 404),
        ("admin", "GET", "/v1/blobs/rack.db", 422),
        ("admin", "GET", "/v1/batches/nothing?wait=1e9", 422),
    ],
)
def test_roles_and_paths(rack: Served, role: str, method: str, path: str, status: int) -> None:
    with raw(rack, role) as client:
        answer = client.request(method, path)
    assert answer.status_code == status
    if status != 200:
        assert set(answer.json()["error"]) == {"kind", "what", "why", "next"}


def test_strangers_see_the_page_and_nothing_else(rack: Served) -> None:
    with httpx.Client(base_url=rack.url, trust_env=False) as client:
        assert client.get("/").status_code == 200
        assert client.get("/v1/health").json() == {"ok": True}
        for path in ("/v1/devices", "/v1/jobs", "/v1/audit", "/docs", "/openapi.json", "/v1/blobs/" + "0" * 64):
            assert client.get(path).status_code == 401, path
        assert client.post("/", content=b"x").status_code == 401
        wrong = {"Authorization": f"Bearer {rack.tokens['run'][:-1]}"}
        assert client.get("/v1/devices", headers=wrong).status_code == 401
    with RackClient(rack.url, "xr_wrong") as client, pytest.raises(RackRefusal, match="token is missing or wrong"):
        client.devices()


def test_only_hashes_of_tokens_are_kept(rack: Served) -> None:
    kept = b"".join(path.read_bytes() for path in rack.broker.settings.state.glob("rack.db*"))
    for token in rack.tokens.values():
        assert token.encode() not in kept
        assert sha256(token.encode()).digest() in kept


def test_a_revoked_token_is_worth_nothing_at_once(rack: Served) -> None:
    token = rack.broker.tokens.create("leaver", "run")
    with RackClient(rack.url, token) as client:
        client.devices()
        other = sqlite3.connect(rack.broker.store.path)  # as `xnncc rack token revoke` from another process
        with other:
            other.execute("DELETE FROM tokens WHERE name='leaver'")
        other.close()
        with pytest.raises(RackRefusal):
            client.devices()


def test_what_was_done_is_audited_for_ever(rack: Served) -> None:
    with rack.client("run") as client:
        client.create_job("audited", KEY)
    with httpx.Client(base_url=rack.url, trust_env=False) as stranger:
        stranger.delete("/v1/devices/phone-1")
    lines = rack.admin.audit(10)
    assert any((line["who"], line["what"], line["outcome"]) == ("run", "POST /v1/jobs", "201") for line in lines)
    assert any((line["who"], line["outcome"]) == ("127.0.0.1", "no valid token") for line in lines)
    for change in ("DELETE FROM audit", "UPDATE audit SET who='nobody'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            rack.broker.store.run(change)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/jobs", b"{", 422),
        ("/v1/jobs", b"[" * 100_000, 413),
        ("/v1/jobs", b"[" * 50_000, 422),
        ("/v1/jobs", b"{}", 422),
        ("/v1/jobs", json.dumps({"name": "x", "key": KEY, "weight": 0}).encode(), 422),
        ("/v1/jobs", b'{"name": "x", "key": "k", "weight": NaN}', 422),
        ("/v1/jobs", json.dumps({"name": "x", "key": KEY, "surprise": 1}).encode(), 422),
        ("/v1/jobs", json.dumps({"name": "x" * 70_000, "key": KEY}).encode(), 413),
        ("/v1/leases", json.dumps({"key": KEY, "seconds": 1e9}).encode(), 422),
        ("/v1/devices", json.dumps({"spec": "sim:../../x"}).encode(), 422),
    ],
)
def test_bodies_have_bounds(rack: Served, path: str, body: bytes, status: int) -> None:
    with raw(rack) as client:
        answer = client.post(path, content=body)
    assert answer.status_code == status
    assert answer.json()["error"]["what"]


def test_a_batch_needs_its_files(rack: Served) -> None:
    with rack.client("run") as client:
        job = client.create_job("tune", KEY)
        with pytest.raises(RackRefusal, match="POST them to /v1/blobs first") as refused:
            client.submit(job, "1", rack.document(files={"library": "0" * 64}))
        assert refused.value.status == 409


def test_jobs_of_others_are_left_alone(rack: Served) -> None:
    job = rack.admin.create_job("mine", KEY)
    with rack.client("run") as client:
        for act in (lambda: client.cancel_job(job), lambda: client.submit(job, "1", rack.document())):
            with pytest.raises(RackRefusal, match="it is of 'admin'"):
                act()
    rack.admin.cancel_job(job)
    assert rack.admin.job(job)["state"] == "cancelled"


def test_leases_over_http(rack: Served) -> None:
    with rack.client("run") as client:
        with client.lease("phone-1", 5.0) as lease:
            assert lease["device"] == "phone-1"
            device = rack.device("phone-1")
            assert device["state"] == "busy" and device["lease"]["owner"] == "run"
            with pytest.raises(DeviceError, match="none was free within 0 s"), client.lease("phone-1", wait_s=0.2):
                pass
            job = client.create_job("leased", KEY)
            batch = client.submit(job, "1", rack.document(groups=1), lease["lease"])
            assert len(list(client.follow(batch))) == 3
            assert client.results(batch)["device"] == "phone-1"
        assert rack.device("phone-1")["lease"] is None


def test_the_client_says_where_to_look_when_nothing_answers() -> None:
    where = r"cannot be reached .* `xnncc rack serve`"
    with RackClient("http://127.0.0.1:9", "xr_x", patience_s=0.1) as client, pytest.raises(DeviceError, match=where):
        client.devices()
    with pytest.raises(BadInput, match="it is no address"):
        RackClient("rack.lab:8470", "xr_x")


def test_events_come_to_who_proves_itself(rack: Served) -> None:
    address = rack.url.replace("http", "ws") + "/v1/events"
    with connect(address) as socket:
        socket.send(json.dumps({"token": rack.tokens["view"]}))
        assert json.loads(socket.recv(5))["type"] == "hello"
        rack.admin.quarantine("phone-2", "looked at")
        seen = {}
        while seen.get("state") != "quarantined":
            seen = json.loads(socket.recv(5))
        assert seen["serial"] == "phone-2" and "looked at" in seen["reason"]
    rack.admin.release_device("phone-2")
    until(lambda: rack.device("phone-2")["state"] == "free", "released")
    for first in ("{}", "[", '{"token": "xr_wrong"}', "[" * 900):
        with connect(address) as socket:
            socket.send(first)
            with pytest.raises(Exception, match="4401"):
                socket.recv(5)


def test_a_slow_listener_loses_events_and_is_told(rack: Served) -> None:
    import asyncio

    from xnncc.rack.events import Listener

    async def listen() -> list[dict[str, object] | None]:
        listener = Listener()
        for number in range(300):
            listener.put({"type": "reading", "n": number})
        return [await listener.next(0.1) for _ in range(3)]

    lost, first, second = asyncio.run(listen())
    assert lost is not None and (lost["type"], lost["count"]) == ("lost", 44)
    assert first == {"type": "reading", "n": 44} and second == {"type": "reading", "n": 45}


def test_too_many_requests_are_held_up(rack: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xnncc.rack.guard.BURST", 30.0)
    monkeypatch.setattr("xnncc.rack.guard.RATE", 1.0)
    token = rack.broker.tokens.create("hasty", "view")
    with httpx.Client(base_url=rack.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False) as client:
        statuses = [client.get("/v1/health").status_code for _ in range(40)]
    assert statuses[:30] == [200] * 30 and statuses[-1] == 429


def test_blobs_are_dropped_oldest_first_and_never_one_that_waits(tmp_path: Path) -> None:
    with served(tmp_path, phones=1, blob_bytes=3000) as rack:
        rack.admin.quarantine("phone-1")
        needed = rack.admin.put_blob(b"n" * 1000)
        job = rack.admin.create_job("tune", KEY)
        rack.admin.submit(job, "1", rack.document(files={"library": needed}))
        first = rack.admin.put_blob(b"1" * 900)
        second = rack.admin.put_blob(b"2" * 900)
        assert rack.broker.blobs.has(first)  # used just now: the second one is older
        third = rack.admin.put_blob(b"3" * 900)
        assert [rack.broker.blobs.has(sha) for sha in (needed, first, second, third)] == [True, True, False, True]
        with pytest.raises(RackRefusal, match="are all needed"):
            rack.admin.put_blob(b"4" * 2500)
        assert sum(1 for path in (tmp_path / "blobs" / "new").iterdir()) == 0
