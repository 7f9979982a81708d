"""Load a broker with simulated devices and busy clients, and print what it took as one JSON document.

    tools/load_rack.py [--devices 200] [--clients 20] [--leases 1000] [--seconds 120]

The broker runs in a process of its own. Each client leases a device, measures a small batch on it, gives it back, and
so on at its share of ``--leases`` a minute; now and then it asks for the lists, as the page does. Latency is that of
every request but long polls, from the client's side; memory is the broker's resident size, second by second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx

from xnncc.device.bench import Group
from xnncc.device.rack_wire import batch_document

KEY = "sim9000-arm64-v8a"
_EVERY_LIST = 10  # rounds of a client between two looks at the lists


def serve(state: Path, devices: int) -> None:
    """Be the broker: print the address and an admin token, serve until killed."""
    from functools import partial

    from xnncc.rack.broker import Broker
    from xnncc.rack.phone import Phone
    from xnncc.rack.server import listen
    from xnncc.rack.server import serve as serve_until_signal
    from xnncc.rack.settings import Settings
    from xnncc.rack.simulated import SimulatedPhone

    def open_phone(spec: str, token: bytes, may_reboot: bool, seconds: float) -> Phone:
        return SimulatedPhone(spec.removeprefix("sim:"), seconds)

    opener: Any = partial(open_phone, seconds=0.01)
    broker = Broker(Settings(state, open_phone=opener, reference_of=None, finds_adb=False))
    for number in range(devices):
        broker.add(f"sim:d{number}")
    endpoint = listen("127.0.0.1", 0)
    tokens = [broker.tokens.create(f"client-{n}", "run") for n in range(64)]
    print(json.dumps({"url": endpoint.url, "tokens": tokens}), flush=True)
    serve_until_signal(broker, endpoint)


class Client(threading.Thread):
    """One user. ``latencies``: (what, seconds) of each request; ``inside``: seconds of it inside the broker."""

    def __init__(self, url: str, token: str, period_s: float, offset_s: float, end: float) -> None:
        super().__init__(daemon=True)
        head = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=url, headers=head, trust_env=False, timeout=30.0)
        self.period_s, self.next, self.end = period_s, time.monotonic() + offset_s, end
        self.latencies: list[tuple[str, float]] = []
        self.inside: list[float] = []
        self.leases = self.batches = 0
        self.errors: list[str] = []

    def ask(self, method: str, path: str, body: Any = None, counts: bool = True) -> Any:
        """Return the answer's document; its time is kept when it ``counts``."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        start = time.perf_counter()
        answer = self.http.request(method, path, content=data)
        if counts:
            self.inside.append(float(answer.headers["server-timing"].partition("dur=")[2]) / 1e3)
            self.latencies.append((f"{method} {path.split('/')[2].split('?')[0]}", time.perf_counter() - start))
        if answer.status_code >= 300:
            self.errors.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        return answer.json()

    def run(self) -> None:
        """Work until the end."""
        library = self.ask("POST", "/v1/blobs", os.urandom(20_000))["sha"]
        job = self.ask("POST", "/v1/jobs", {"name": "load", "key": KEY})["job"]
        groups = [Group((0, 1), 4, 0, 4), Group((2, 3), 4, 0, 4)]
        document = batch_document("measure", "android-arm64", {"library": library}, groups, 5)
        count = 0
        while time.monotonic() < self.end:
            time.sleep(max(self.next - time.monotonic(), 0.0))
            self.next += self.period_s
            count += 1
            lease = self.ask("POST", "/v1/leases", {"key": KEY, "seconds": 30.0})
            while lease["state"] != "held":
                lease = self.ask("GET", f"/v1/leases/{lease['lease']}?wait=10", counts=False)
            self.leases += 1
            body = {**document, "token": str(count), "lease": lease["lease"]}
            batch = self.ask("POST", f"/v1/jobs/{job}/batches", body)["batch"]
            after, state = 0, ""
            while state not in ("done", "failed"):
                found = self.ask("GET", f"/v1/batches/{batch}?after={after}&wait=10", counts=False)
                after, state = found["next"], found["state"]
            self.batches += state == "done" and after == 4
            self.ask("PUT", f"/v1/leases/{lease['lease']}", {})
            self.ask("DELETE", f"/v1/leases/{lease['lease']}")
            if count % _EVERY_LIST == 0:
                self.ask("GET", "/v1/devices")
                self.ask("GET", "/v1/jobs")


def resident_kib(pid: int) -> int:
    """Return the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def load(devices: int, clients: int, leases: int, seconds: float) -> dict[str, Any]:
    """Run it; return the figures."""
    with tempfile.TemporaryDirectory(prefix="xnncc-load-") as folder:
        command = [sys.executable, __file__, "--serve", folder, "--devices", str(devices)]
        broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert broker.stdout is not None
            said = json.loads(broker.stdout.readline())
            start, cpu_before = time.monotonic(), cpu_seconds(broker.pid)
            period = clients * 60 / leases
            users = [
                Client(said["url"], said["tokens"][n % 64], period, n * period / clients, start + seconds)
                for n in range(clients)
            ]
            for user in users:
                user.start()
            memory, averages = [], []
            while any(user.is_alive() for user in users) and time.monotonic() < start + seconds + 60:
                time.sleep(1.0)
                memory.append(resident_kib(broker.pid))
                averages.append(os.getloadavg()[0])
            took = time.monotonic() - start
            cpu = cpu_seconds(broker.pid) - cpu_before
        finally:
            broker.kill()
            broker.wait()
    found = figures(users, memory, averages, took)
    return {"devices": devices, "clients": clients, "broker_cores": round(cpu / took, 3), **found}


def figures(users: list[Client], memory: list[int], averages: list[float], took: float) -> dict[str, Any]:
    """Return what the clients saw."""
    every = [seconds for user in users for _, seconds in user.latencies]
    kinds = sorted({what for user in users for what, _ in user.latencies})
    by_kind = {kind: [s for user in users for what, s in user.latencies if what == kind] for kind in kinds}
    half = max(len(memory) // 2, 1)
    errors = [error for user in users for error in user.errors]
    return {
        "seconds": round(took, 1), "leases": sum(u.leases for u in users),
        "leases_per_minute": round(sum(u.leases for u in users) * 60 / took, 1),
        "batches": sum(u.batches for u in users), "requests": len(every), "errors": len(errors),
        "first_error": errors[0] if errors else "", "load_average": round(sum(averages) / max(len(averages), 1), 2),
        "p50_ms": round(1e3 * median(every), 2), "p99_ms": p99(every), "max_ms": round(1e3 * max(every), 2),
        "p99_ms_inside_the_broker": p99([seconds for user in users for seconds in user.inside]),
        "p99_ms_by_request": {kind: p99(one) for kind, one in by_kind.items()},
        "memory_kib": {
            "first": memory[0] if memory else 0, "half": memory[half - 1] if memory else 0,
            "end": memory[-1] if memory else 0, "most": max(memory, default=0),
        },
    }  # fmt: skip


def p99(seconds: list[float]) -> float:
    """Return the 99th percentile in ms."""
    return round(1e3 * (quantiles(seconds, n=100)[98] if len(seconds) > 1 else seconds[0]), 2)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=200)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--leases", type=int, default=1000, help="a minute, all clients together")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.devices)
    else:
        print(json.dumps(load(given.devices, given.clients, given.leases, given.seconds), indent=2))


if __name__ == "__main__":
    main()
