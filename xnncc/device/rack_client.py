"""The client of a rack's broker, for whoever measures through it (it stands here, since ``device`` is below ``rack``).

    with RackClient() as rack:                         $XNNCC_RACK, $XNNCC_RACK_TOKEN, or rack.toml; see rack_config.py
        job = rack.create_job("tune squeezenet", key="sm8550-arm64-v8a")
        library = rack.put_blob(Path("lib.so"))
        batch = rack.submit(job, "batch-1", batch_document("measure", target, {"library": library, ...}, groups, 9))
        for result in rack.follow(batch): ...            Measurement | Fault, as they come

Every request may be sent again: what has a token (job, batch, lease) is done once however often it is asked for. A cut
network, or a broker that restarts, is waited for ``patience_s``.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

from xnncc.device.bench import Fault, Measurement
from xnncc.device.rack_config import RackConfig, rack_config
from xnncc.device.rack_wire import read_result
from xnncc.errors import BadInput, BatchFailed, DeviceError, RackRefusal

PATIENCE_S = 30.0
_ANSWER_S = 30.0  # of one request, beyond what it was told to wait
_AGAIN = (429, 502, 503, 504)


class RackClient:
    """One broker. Any thread may use it."""

    def __init__(
        self, url: str | None = None, token: str | None = None, patience_s: float = PATIENCE_S, ca: Path | None = None
    ) -> None:
        """Raises: BadInput when neither arguments, environment nor file say where the rack is."""
        self.config: RackConfig = rack_config(url, token, ca)
        self.patience_s = patience_s
        verify: Any = True
        if self.config.ca is not None:
            import ssl

            try:
                verify = ssl.create_default_context(cafile=str(self.config.ca))
            except OSError as error:
                raise BadInput(f"'{self.config.ca}'", f"it is no certificate ({error})", "Give a PEM file.") from None
        self._http = httpx.Client(
            base_url=self.config.url, headers={"Authorization": f"Bearer {self.config.token}"}, verify=verify,
            timeout=httpx.Timeout(_ANSWER_S, connect=5.0),
            trust_env=False,
        )  # fmt: skip

    def __enter__(self) -> RackClient:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    # Devices.

    def health(self) -> dict[str, Any]:
        """Return how the broker is."""
        return self._json("GET", "/v1/health")

    def devices(self) -> list[dict[str, Any]]:
        """Return every device: serial, name, key, state, reason, ..."""
        return list(self._json("GET", "/v1/devices")["devices"])

    def problem(self) -> str:
        """Return why the broker cannot ask adb, or nothing."""
        return str(self._json("GET", "/v1/devices")["problem"])

    def add_device(
        self, spec: str, token: str = "", name: str = "", may_reboot: bool = False, is_steady: bool = True
    ) -> dict[str, Any]:
        """Add ``adb:SERIAL`` or ``tcp:HOST:PORT``; return the device."""
        body = {"spec": spec, "token": token, "name": name, "may_reboot": may_reboot, "is_steady": is_steady}
        return self._json("POST", "/v1/devices", body, wait=120.0)

    def remove_device(self, serial: str) -> None:
        """Forget a device."""
        self._json("DELETE", f"/v1/devices/{_quoted(serial)}")

    def quarantine(self, serial: str, reason: str = "") -> dict[str, Any]:
        """Let nobody use a device."""
        return self._json("POST", f"/v1/devices/{_quoted(serial)}/quarantine", {"reason": reason})

    def release_device(self, serial: str) -> dict[str, Any]:
        """End a quarantine."""
        return self._json("POST", f"/v1/devices/{_quoted(serial)}/release", {})

    def history(self, serial: str, after: float = 0.0) -> list[dict[str, Any]]:
        """Return the readings of a device."""
        return list(self._json("GET", f"/v1/devices/{_quoted(serial)}/history?after={after}")["readings"])

    # Files.

    def put_blob(self, content: Path | bytes) -> str:
        """Send a file that the broker has not; return its SHA-256."""
        data = content.read_bytes() if isinstance(content, Path) else content
        sha = sha256(data).hexdigest()
        if self._request("HEAD", f"/v1/blobs/{sha}", allowed=(404,)).status_code == 404:
            self._request("POST", "/v1/blobs", data, wait=300.0)
        return sha

    def get_blob(self, sha: str) -> bytes:
        """Return the bytes of an output. Raises: DeviceError when they are other bytes."""
        data = self._request("GET", f"/v1/blobs/{sha}", wait=300.0).content
        if sha256(data).hexdigest() != sha:
            raise DeviceError(f"rack {self.config.url}", "it sent other bytes than it promised", "Ask again.")
        return data

    # Jobs.

    def create_job(
        self,
        name: str,
        key: str,
        priority: int = 0,
        weight: float = 1.0,
        max_seconds: float | None = None,
        max_devices: int | None = None,
        token: str = "",
    ) -> str:
        """Return the id of a job for devices of ``key``. The same ``token`` gives the same job again."""
        body = {
            "name": name[:200], "key": key, "priority": priority, "weight": weight, "max_seconds": max_seconds,
            "max_devices": max_devices, "token": token or secrets.token_hex(16),
        }  # fmt: skip
        return str(self._json("POST", "/v1/jobs", body)["job"])

    def jobs(self) -> list[dict[str, Any]]:
        """Return the newest jobs."""
        return list(self._json("GET", "/v1/jobs")["jobs"])

    def job(self, job: str) -> dict[str, Any]:
        """Return one job."""
        return self._json("GET", f"/v1/jobs/{_quoted(job)}")

    def cancel_job(self, job: str) -> None:
        """Cancel what a job has queued, and stop what runs."""
        self._json("DELETE", f"/v1/jobs/{_quoted(job)}")

    def progress(self, job: str, **values: object) -> None:
        """Tell how far a job is, for its page: text, done, total, best (smaller is better), unit, left_s."""
        self._json("PUT", f"/v1/jobs/{_quoted(job)}/progress", values)

    def submit(self, job: str, token: str, batch: Mapping[str, Any], lease: str = "") -> str:
        """Return the id of a batch (rack_wire.batch_document). The same ``token`` of a job gives the same batch again.

        Raises: RackRefusal of status 409 when a file of it is not, or no longer, at the broker: put_blob it again.
        """
        body = {**batch, "token": token, "lease": lease}
        return str(self._json("POST", f"/v1/jobs/{_quoted(job)}/batches", body)["batch"])

    def results(self, batch: str, after: int = 0, wait: float = 0.0) -> dict[str, Any]:
        """Return a batch's document with its results behind number ``after``; waits for something new ``wait`` s."""
        return self._json("GET", f"/v1/batches/{_quoted(batch)}?after={after}&wait={wait}", wait=wait)

    def follow(self, batch: str, ended: dict[str, Any] | None = None) -> Iterator[Measurement | Fault]:
        """Yield the results of a batch as they come, until it is done; then ``ended`` has its last document.

        Raises: BatchFailed, DeviceError.
        """
        after = 0
        while True:
            document = self.results(batch, after, wait=20.0)
            for one in document["results"]:
                yield read_result(one)
            after = int(document["next"])
            if document["results"]:
                continue  # there may be more
            if document["state"] == "failed":
                error = document["error"] or {}
                words = [str(error.get(name, "")) for name in ("what", "why", "next")]
                raise BatchFailed(*words, kind=str(error.get("kind", "")))
            if document["state"] == "done":
                if ended is not None:
                    ended.update(document)
                return

    # Leases.

    @contextmanager
    def lease(self, key: str, seconds: float = 60.0, wait_s: float = 600.0) -> Iterator[dict[str, Any]]:
        """Hold a device of ``key``; the lease ({lease, device, ...}) is renewed as long as the block runs.

        Raises: DeviceError when none was free within ``wait_s``.
        """
        body = {"key": key, "seconds": seconds, "token": secrets.token_hex(16)}
        lease = self._json("POST", "/v1/leases", body)
        done = threading.Event()
        renewing: threading.Thread | None = None
        try:
            deadline = time.monotonic() + wait_s
            while lease["state"] != "held":
                left = deadline - time.monotonic()
                if left <= 0:
                    why = f"none was free within {wait_s:.0f} s"
                    raise DeviceError(f"device 'rack:{key}'", why, "See `xnncc rack list`.")
                lease = self._json("GET", f"/v1/leases/{lease['lease']}?wait={min(left, 20.0)}", wait=20.0)
            renewing = threading.Thread(target=self._renew, args=(lease["lease"], seconds, done), daemon=True)
            renewing.start()
            yield lease
        finally:
            done.set()
            if renewing is not None:
                renewing.join()
            with suppress(DeviceError):
                self._json("DELETE", f"/v1/leases/{lease['lease']}")

    def _renew(self, lease: str, seconds: float, done: threading.Event) -> None:
        while not done.wait(seconds / 3):
            with suppress(DeviceError):  # who uses the lease will hear that it has ended
                self._json("PUT", f"/v1/leases/{lease}", {})

    # Tokens and audit.

    def tokens(self) -> list[dict[str, Any]]:
        """Return name and role of every token."""
        return list(self._json("GET", "/v1/tokens")["tokens"])

    def audit(self, count: int = 100) -> list[dict[str, Any]]:
        """Return the newest lines of the audit."""
        return list(self._json("GET", f"/v1/audit?count={count}")["audit"])

    # Requests.

    def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None, wait: float = 0.0) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        answer = self._request(method, path, data, wait=wait)
        try:
            document = answer.json()
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise DeviceError(f"rack {self.config.url}", "what answers there is no rack", "Is the address right?")
        return document

    def _request(
        self, method: str, path: str, data: bytes | None = None, allowed: tuple[int, ...] = (), wait: float = 0.0
    ) -> httpx.Response:
        """Return the answer. A cut network is waited for. Raises: DeviceError."""
        deadline, pause = time.monotonic() + self.patience_s, 0.1
        timeout = httpx.Timeout(_ANSWER_S + wait, connect=5.0)
        while True:
            why = ""
            try:
                answer = self._http.request(method, path, content=data, timeout=timeout)
                if answer.status_code not in _AGAIN:
                    break
                why = f"it answers {answer.status_code}"
            except httpx.InvalidURL as error:
                raise BadInput(
                    f"--rack '{self.config.url}'", str(error), "Write it like http://127.0.0.1:8470."
                ) from None
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
                if "CERTIFICATE_VERIFY_FAILED" in why:
                    step = "Set XNNCC_RACK_CA to the certificate of the rack, or of who signed it."
                    raise DeviceError(f"rack {self.config.url}", "its certificate is not trusted", step) from None
            if time.monotonic() + pause > deadline:
                step = "Is it running? Start one with `xnncc rack serve`, or give --rack URL."
                raise DeviceError(f"rack {self.config.url}", f"it cannot be reached ({why.lower()})", step)
            time.sleep(pause)
            pause = min(2 * pause, 2.0)
        if answer.is_success or answer.status_code in allowed:
            return answer
        raise _refusal(answer)


def _refusal(answer: httpx.Response) -> RackRefusal:
    try:
        error = answer.json()["error"]
        words = [str(error.get(name, ""))[:1000] for name in ("what", "why", "next")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        words = [f"rack {answer.request.url.host}", f"it answers {answer.status_code}", "Is the address right?"]
    return RackRefusal(*words, status=answer.status_code)


def _quoted(word: str) -> str:
    from urllib.parse import quote

    return quote(word, safe="")
