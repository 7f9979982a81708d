"""Where the broker listens, and with what: loopback by default, elsewhere only with TLS, one broker a state folder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.served_broker import Phones

from xnncc.device.rack_client import RackClient
from xnncc.errors import BadInput, DeviceError, OutputError
from xnncc.rack.broker import Broker
from xnncc.rack.server import listen, running
from xnncc.rack.settings import Settings


def test_only_loopback_without_tls() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "rack.lab"):
        with pytest.raises(BadInput, match="is not loopback"):
            listen(host, 0)
    for host in ("127.0.0.1", "localhost"):
        endpoint = listen(host, 0)
        assert endpoint.socket.getsockname()[0] == "127.0.0.1"
        endpoint.socket.close()


def test_half_a_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="belong together"):
        listen("0.0.0.0", 0, cert=tmp_path / "cert.pem")
    with pytest.raises(BadInput, match="there is no such file"):
        listen("0.0.0.0", 0, tmp_path / "cert.pem", tmp_path / "key.pem")


def test_a_port_that_is_taken_is_said() -> None:
    first = listen("127.0.0.1", 0)
    with pytest.raises(OutputError, match="Take another --port"):
        listen("127.0.0.1", first.socket.getsockname()[1])
    first.socket.close()


def test_tls_for_others(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing: apt-get install openssl")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    more = ["-keyout", str(key), "-out", str(cert), "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *more], check=True, capture_output=True, timeout=60)
    broker = Broker(Settings(tmp_path / "state", open_phone=Phones(), reference_of=None, finds_adb=False))
    token = broker.tokens.create("me", "view")
    with running(broker, listen("127.0.0.1", 0, cert, key)) as url:
        assert url.startswith("https://")
        with RackClient(url, token, 5.0, ca=cert) as client:
            assert client.devices() == []
        with RackClient(url, token, 5.0) as client, pytest.raises(DeviceError, match="is not trusted"):
            client.devices()


def test_one_broker_a_state_folder(tmp_path: Path) -> None:
    first = Broker(Settings(tmp_path, finds_adb=False))
    with pytest.raises(OutputError, match="another broker uses it"):
        Broker(Settings(tmp_path, finds_adb=False))
    first.stop()
    Broker(Settings(tmp_path, finds_adb=False)).stop()


def test_a_state_of_a_newer_xnncc_is_left_alone(tmp_path: Path) -> None:
    broker = Broker(Settings(tmp_path, finds_adb=False))
    broker.store.run("PRAGMA user_version=99")
    broker.stop()
    with pytest.raises(OutputError, match="its version is 99"):
        Broker(Settings(tmp_path, finds_adb=False))


def test_what_is_kept_is_for_this_user_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    Broker(Settings(state, finds_adb=False)).stop()
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "rack.db").stat().st_mode) == 0o600


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    environment.pop("XNNCC_RACK", None)

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-m", "xnncc.cli.main", "rack", *words]
        return subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120, check=False)

    program = [sys.executable, "-m", "xnncc.cli.main", "rack", "serve", "--port", "0", "--simulate", "2"]
    process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        assert url.startswith("http://127.0.0.1:")
        end = time.monotonic() + 60
        free = 0
        while free < 2 and time.monotonic() < end:
            listed = json.loads(command("list", "--json").stdout)
            free = sum(device["state"] == "free" for device in listed["devices"])
        assert free == 2 and listed["rack"] == url
        token = command("token", "add", "ci", "--role", "view", "-q").stdout.strip()
        with RackClient(url, token) as client:
            assert len(client.devices()) == 2
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert "queued again" in process.stderr.read()  # type: ignore[union-attr]
    finally:
        process.kill()
        process.wait()


def test_a_small_load_loses_no_lease(tmp_path: Path) -> None:
    tool = Path(__file__).parents[2] / "tools" / "load_rack.py"
    words = ["--devices", "12", "--clients", "4", "--leases", "400", "--seconds", "4"]
    ended = subprocess.run([sys.executable, str(tool), *words], capture_output=True, text=True, timeout=180, check=True)
    found = json.loads(ended.stdout)
    assert found["errors"] == 0, found["first_error"]
    assert found["leases"] == found["batches"] >= 4
    assert set(found["memory_kib"]) == {"first", "half", "end", "most"}
