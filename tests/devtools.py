"""A page in headless Chromium, driven over its own debugging pipe: its size, its keys, its script, its picture.

with open_tab(address, width=360) as tab: tab.until("document.title"); tab.picture()
"""

from __future__ import annotations

import base64
import json
import os
import select
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chromium import need_chromium

from xnncc.device.browser import Browser

_ANSWER_S = 60.0
_KEYS = {"Tab": 9, "Enter": 13}


class Tab:
    """One page; ``write`` and ``read`` are the ends of the browser's pipe."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._pending, self._count, self._session = write, read, b"", 0, ""
        self.problems: list[str] = []  # what the page's console complained of

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to one command of the DevTools protocol."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _ANSWER_S
        while True:
            answer = self._next(end)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._note(answer)

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._pending:
            assert select.select([self._read], [], [], max(end - time.monotonic(), 0))[0], "the browser is silent"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser ended"
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\0")
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(event["params"]["exceptionDetails"])[:400])
        entry = event.get("params", {}).get("entry", {})
        if event.get("method") == "Log.entryAdded" and entry.get("source") in ("security", "javascript"):
            self.problems.append(str(entry.get("text")))

    def begin(self, address: str, width: int, height: int, is_dark: bool) -> None:
        """Open ``address`` in a window of that size."""
        (page,) = [t for t in self.command("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        attached = self.command("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.command(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.command("Page.navigate", url=address)

    def evaluate(self, script: str) -> Any:
        """Return what an expression is in the page."""
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, script: str, seconds: float = 60.0) -> Any:
        """Return the first value of an expression that is true; while the page loads, one may fail."""
        end = time.monotonic() + seconds
        while True:
            answer = self.command("Runtime.evaluate", expression=script, returnByValue=True)
            value = None if "exceptionDetails" in answer else answer["result"].get("value")
            if value:
                return value
            assert time.monotonic() < end, f"{script} never came: {self.evaluate('document.body.innerText')}"
            time.sleep(0.05)

    def type(self, words: str) -> None:
        """Type into what has the focus."""
        self.command("Input.insertText", text=words)

    def press(self, key: str) -> None:
        """Press a key."""
        code = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
        if key == "Enter":
            code["text"] = "\r"
        self.command("Input.dispatchKeyEvent", type="keyDown", **code)
        self.command("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def picture(self) -> bytes:
        """Return the whole page as PNG."""
        return base64.b64decode(self.command("Page.captureScreenshot", captureBeyondViewport=True)["data"])


@contextmanager
def open_tab(address: str, width: int = 1200, height: int = 900, is_dark: bool = False) -> Iterator[Tab]:
    """Give a page of ``address`` in a browser of its own. Skips when there is no browser."""
    program = need_chromium()
    there, write = os.pipe()
    read, back = os.pipe()
    with tempfile.TemporaryDirectory(prefix="xnncc-", ignore_cleanup_errors=True) as scratch:
        # The browser reads commands from 3 and answers on 4; a shell puts the pipes there.
        starter = Path(scratch) / "chromium.sh"
        pipes = f"/proc/{os.getpid()}/fd"
        starter.write_text(
            f'#!/bin/sh\nexec "{program}" --remote-debugging-pipe "$@" 3<{pipes}/{there} 4>{pipes}/{back}\n'
        )
        starter.chmod(0o755)
        try:
            with Browser(str(starter), Path(scratch), "about:blank"):
                tab = Tab(write, read)
                tab.begin(address, width, height, is_dark)
                yield tab
        finally:
            for end in (there, write, read, back):
                os.close(end)
