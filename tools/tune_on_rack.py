"""Tune a network's heaviest layers on a rack of emulated phones, end to end, and print what it took as JSON.

    python tools/tune_on_rack.py [--trials 200] [--layers 10] [--cut 30]

Four emulated arm64 phones, two of them over the real adb client, one broker, one `tune`. The records build a library
that is verified under the emulator. Emulated times say nothing of a phone; the overhead is that of the rack.
``--cut``: the network between client and broker is cut for so many seconds in the middle.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "rack")]

from fakes.emulated_phone import SOC, EmulatedAndroid, EmulatedBoard  # noqa: E402
from fakes.faults import FaultyWire  # noqa: E402

from xnncc.build import build  # noqa: E402
from xnncc.device.rack_client import RackClient  # noqa: E402
from xnncc.rack.broker import Broker  # noqa: E402
from xnncc.rack.server import listen, running  # noqa: E402
from xnncc.rack.settings import Settings  # noqa: E402
from xnncc.tune import tune  # noqa: E402
from xnncc.verify import verify  # noqa: E402

TARGET, KEY = "android-arm64", f"{SOC}-arm64-v8a"


def main() -> None:
    """Do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=ROOT / "build" / "bench" / "squeezenet1_1.onnx")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--boards", type=int, default=2)
    parser.add_argument("--androids", type=int, default=2)
    parser.add_argument("--cut", type=float, default=0.0, metavar="SECONDS")
    options = parser.parse_args()
    if not options.model.is_file():
        parser.error(f"'{options.model}' is not there: make it with `python tools/bench_models.py`")
    with tempfile.TemporaryDirectory(prefix="xnncc-rack-") as scratch, adb_server(Path(scratch)):
        print(json.dumps(run(options, Path(scratch)), indent=1))


def run(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Return the figures of one run."""
    phones: list[Any] = []
    broker = Broker(Settings(state=scratch / "state", finds_adb=False))
    try:
        for number in range(options.boards + options.androids):
            name = f"phone-{number + 1}"
            is_board = number < options.boards
            folder = scratch / name
            phones.append(EmulatedBoard(folder, name, TARGET) if is_board else EmulatedAndroid(folder, name))
        with running(broker, listen("127.0.0.1", 0)) as url:
            wire = FaultyWire(int(url.rpartition(":")[2]))
            os.environ["XNNCC_RACK"] = f"http://127.0.0.1:{wire.port}"
            os.environ["XNNCC_RACK_TOKEN"] = broker.tokens.create("tool", "admin")
            with RackClient() as client:
                for phone in phones:
                    client.add_device(phone.spec, getattr(phone, "token", b"").decode(), is_steady=False)
            return tuned(options, scratch, broker, wire)
    finally:
        for phone in phones:
            phone.close()


def tuned(options: argparse.Namespace, scratch: Path, broker: Broker, wire: FaultyWire) -> dict[str, Any]:
    """Tune, build, verify; return the figures."""
    begun: list[float] = []
    cut: list[float] = []

    def say(text: str, done: int, total: int) -> None:
        print(f"{text} ({done} of {total})", file=sys.stderr, flush=True)
        if text.startswith("measuring") and not begun:
            begun.append(time.monotonic())
        if options.cut and done and not cut:
            cut.append(time.monotonic())
            wire.cut()
            threading.Timer(options.cut, wire.mend).start()

    records = scratch / "records"
    outcome = tune(
        options.model, TARGET, devices=[f"rack:{KEY}"], trials=options.trials, seconds=36000, layers=options.layers,
        output=records, progress=say,
    )  # fmt: skip
    wall = time.monotonic() - begun[0]
    kernels, count, by_device = kernel_seconds(broker)
    used = sum(job.used_s for job in broker.jobs.all.values())
    build(options.model, TARGET, scratch / "built", records=records, verify=False)
    verified = verify(options.model, scratch / "built", device="emulator")
    phones = options.boards + options.androids
    return {
        "model": options.model.stem, "phones": phones, "trials": outcome.trials, "measurements": count,
        "by_device": by_device, "seconds": round(wall, 1), "kernel_seconds": round(kernels, 1),
        "device_seconds": round(used, 1),
        "overhead_s_a_trial_and_phone": round((phones * wall - kernels) / count, 3),
        "overhead_s_a_trial_in_batches": round((used - kernels) / count, 3),
        "faults": {kind: n for kind, n in outcome.faults.items() if kind}, "records": len(outcome.records),
        "gain": round(outcome.gain, 3), "warnings": outcome.warnings,
        "verified": verified.passed, "verify": verified.summary,
    }  # fmt: skip


def kernel_seconds(broker: Broker) -> tuple[float, int, dict[str, int]]:
    """Return the seconds that kernels ran on all phones, a warm-up each included, the measurements, and whose."""
    total, count, by_device = 0.0, 0, {}
    for row in broker.store.rows("SELECT body FROM results"):
        result = json.loads(row["body"])
        by_device[result["device"]] = by_device.get(result["device"], 0) + 1
        count += 1
        ns = result.get("ns") or [0]
        total += sum(ns) * (1 + 1 / len(ns)) / 1e9
    return total, count, by_device


@contextmanager
def adb_server(scratch: Path) -> Iterator[None]:
    """Let adb use a server of our own, which is ended at the end."""
    if shutil.which("adb") is None:
        raise SystemExit("adb is missing: apt-get install adb")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    os.environ |= {"ANDROID_ADB_SERVER_PORT": str(port), "ADB_MDNS": "0"}
    environment = {**os.environ, "HOME": str(scratch), "TMPDIR": str(scratch)}
    null = subprocess.DEVNULL
    subprocess.run(["adb", "start-server"], check=True, stdout=null, stderr=null, env=environment)
    try:
        yield
    finally:
        subprocess.run(["adb", "kill-server"], check=False, stdout=null, stderr=null, env=environment)


if __name__ == "__main__":
    main()
