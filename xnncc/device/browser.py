"""WebAssembly artefacts in headless Chromium: a page imports the artefact's ES module, as an app's own page would."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from xnncc.codegen.emulators import find_browser
from xnncc.device.artefact import library_file, module_file, package_file
from xnncc.device.page_server import GONE, PageServer
from xnncc.device.runner import RunnerDevice, runner_failed
from xnncc.errors import DeviceError
from xnncc.target import load_target

_HERE = Path(__file__).resolve().parent
_START_S, _RUN_S = 60.0, 600.0  # how long the page may take to come, and to answer
_SLICE_S = 0.1
_OTHERWISE = "Node needs less: --device emulator."
_FLAGS = (
    "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic",
    "--no-sandbox",  # root and most containers cannot have one; it loads our own page only
    "--disable-dev-shm-usage",  # containers give /dev/shm 64 MB, less than a page with a large network takes
)  # fmt: skip


class BrowserDevice(RunnerDevice):
    """Chromium 91 or later, for its WebAssembly SIMD; a fresh one for every call. One thread, whatever is asked for."""

    name = "browser"

    def __init__(self, manifest: dict[str, Any]) -> None:
        super().__init__(manifest)
        name = str(manifest["target"])
        if load_target(name).toolchain.kind != "wasm":
            raise DeviceError(f"target '{name}' in a browser", "it is not WebAssembly", "Build for web-wasm.")
        browser = find_browser()
        if browser.missing:
            raise DeviceError("device 'browser'", f"{browser.missing} is missing", f"Install it: {browser.install}")
        self.program = browser.found

    def call(self, folder: Path, arguments: list[str], inputs: bytes, regions: str | None) -> tuple[str, bytes]:
        """See RunnerDevice."""
        mode, _threads, sizes, *more = arguments
        module = module_file(folder, self.manifest)
        job = {
            "mode": mode, "module": f"./artefact/{quote(module.name)}", "regions": regions or "",
            "variant": int(sizes.partition("@")[0]),
            "repeat": int(more[0]) if mode == "time" else 0, "perOp": mode == "time" and more[1] == "1",
        }  # fmt: skip
        artefact = (module, library_file(folder, self.manifest), package_file(folder, self.manifest))
        files: dict[str, bytes | Path] = {
            **{name: _HERE / name for name in ("run_browser.html", "run_network.mjs")},
            **{f"artefact/{file.name}": file for file in artefact},
            "job.json": json.dumps(job).encode(),
            "inputs.bin": inputs,
        }
        what = f"'{folder}' in {Path(self.program).name}"
        with (
            PageServer(files, ("outputs", "done", "failed")) as server,
            tempfile.TemporaryDirectory(prefix="xnncc-", ignore_cleanup_errors=True) as scratch,
            Browser(self.program, Path(scratch), f"{server.address}run_browser.html") as browser,
        ):
            return self._hear(what, server, browser)

    def _hear(self, what: str, server: PageServer, browser: Browser) -> tuple[str, bytes]:
        """Return the text and the bytes that the page answers with."""
        outputs, waited_s = b"", 0.0  # in slices and not by the clock: a machine that sleeps for a while loses nothing
        while True:
            try:
                name, body = server.heard.get(timeout=_SLICE_S)
            except queue.Empty:
                waited_s += _SLICE_S
                _check_patience(what, server, browser, waited_s)
                continue
            if name == "outputs":
                outputs = body
            elif name == "done":
                return body.decode(), outputs
            elif name == "failed":
                raise runner_failed(what, body.decode())
            elif name == GONE:
                _check_patience(what, server, browser, waited_s)  # was it the whole browser?
                raise DeviceError(what, "the page crashed", f"It may need more memory than there is. {_OTHERWISE}")


def _check_patience(what: str, server: PageServer, browser: Browser, waited_s: float) -> None:
    """Raise DeviceError when there is nothing to wait for any more."""
    if (ended := browser.ended()) is not None:
        raise DeviceError(what, ended, "Try it by hand, or install it again: apt-get install chromium")
    if not server.has_begun and waited_s > _START_S:  # not opened, or crashed before its script could say so
        raise DeviceError(what, f"the page did not begin within {waited_s:.0f} s", _OTHERWISE)
    if waited_s > _RUN_S:
        raise DeviceError(what, f"the page did not answer within {waited_s:.0f} s", _OTHERWISE)


class Browser:
    """A browser without a window that opens one page, ended with all its processes when the ``with`` ends.

    ``scratch`` is a folder of the caller's for its profile and its log.
    """

    def __init__(self, program: str, scratch: Path, address: str) -> None:
        self._log = scratch / "browser.log"
        self._argv = [program, *_FLAGS, f"--user-data-dir={scratch / 'profile'}", address]
        self._environment = {**os.environ, "HOME": str(scratch)}  # it leaves caches and crash reports there

    def __enter__(self) -> Browser:
        with self._log.open("wb") as log:
            try:
                self._process = subprocess.Popen(
                    self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment,
                    start_new_session=True,
                )  # fmt: skip
            except OSError as error:
                why = f"it cannot be started: {error.strerror}"
                raise DeviceError(f"'{self._argv[0]}'", why, "Install it again: apt-get install chromium") from None
        return self

    def __exit__(self, *ignored: object) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):  # all of them have ended
                os.killpg(self._process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)

    def ended(self) -> str | None:
        """Return how the browser ended and its last words, or None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        fatal = [line for line in lines if "FATAL" in line] or lines
        how = f"the browser ended with exit code {code}" if code >= 0 else f"the browser was ended by signal {-code}"
        return f"{how}: {fatal[-1]}" if fatal else how
