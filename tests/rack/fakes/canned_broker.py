"""A broker that only knows what it was told: the routes that the rack's page asks, with answers out of ``said``."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse

from xnncc.rack.web import FILES, HEADERS

TOKENS = {"xr_view": "view", "xr_admin": "admin"}
EVIL = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
NOW = time.time() // 600 * 600  # what readings are in tests does not depend on the clock


def device(number: int, state: str, reason: str = "", **more: Any) -> dict[str, Any]:
    """Return a device as the broker says it."""
    return {
        "serial": f"R5CT1000{number}", "name": f"pixel-{number}", "key": "sm8550-arm64-v8a", "soc": "sm8550",
        "spec": f"adb:R5CT1000{number}", "abi": "arm64-v8a", "system": "Android 15", "core_khz": [3_200_000],
        "state": state, "reason": reason, "since": NOW, "batch": "", "lease": None, "faults": 0, "quarantined_by": "",
        "may_reboot": False, "is_steady": True, "reading": {**reading(NOW), "celsius": 36.5 + number}, **more,
    }  # fmt: skip


def reading(at: float) -> dict[str, Any]:
    """Return what a device says of itself at a moment: it warms and cools within ten minutes."""
    phase = at % 600 / 600
    return {
        "at": at, "celsius": 38 + 6 * math.sin(2 * math.pi * phase), "battery_percent": 96.0, "battery_celsius": 30.0,
        "khz": 2_390_000 if phase > 0.8 else 3_190_000, "load": 0.4, "throttled": False,
    }  # fmt: skip


def job(number: int, state: str, queued: int = 0, running: int = 0, **more: Any) -> dict[str, Any]:
    """Return a job as the broker says it."""
    return {
        "job": f"j{number}", "name": f"tune squeezenet1_1 ({number})", "owner": "ci", "key": "sm8550-arm64-v8a",
        "state": state, "priority": 0, "weight": 1.0, "max_seconds": None, "max_devices": None, "used_s": 512.0,
        "batches": {"queued": queued, "running": running, "done": 12, "failed": 0}, "created": NOW - number,
        "devices": 3, "left_s": 300.0, "progress": {}, **more,
    }  # fmt: skip


def rack() -> dict[str, Any]:
    """Return a rack in which something of everything happens."""
    curve = [[NOW - 240 + 10 * n, round(6000 + 2500 * math.exp(-n / 6), 3)] for n in range(24)]
    progress = {
        "done": 128,
        "total": 200,
        "best": 6054.1,
        "unit": "us",
        "left_s": 4500.0,
        "curve": curve,
        "text": "measuring",
    }
    lost = "3 infrastructure faults in a row: adb says 'device offline'; check its cable"
    return {
        "devices": [
            device(1, "busy", "batch 7 of tune squeezenet1_1"), device(2, "cooling", "47.5 °C, waits for 40 °C, 2 min"),
            device(3, "quarantined", lost, faults=3), device(4, "offline", "gone since 14:03", reading=None),
            device(5, "free"), device(6, "free", name=EVIL, reason=EVIL),
        ],
        "jobs": [
            job(1, "running", queued=5, running=1, progress=progress), job(2, "queued", queued=8, priority=5),
            job(3, "idle", progress={**progress, "done": 200}), job(4, "cancelled", name=EVIL, owner=EVIL),
        ],
        "errors": [
            {"type": "device", "at": NOW, "serial": "R5CT10003", "state": "quarantined", "reason": lost},
            {"type": "problem", "at": NOW, "serial": EVIL, "words": EVIL},
        ],
        "audit": [{"at": NOW, "who": "ops", "what": "POST /v1/devices/R5CT10003/quarantine", "outcome": "200"}] * 3,
        "readings": [reading(NOW - 7200 + 60 * n) for n in range(120)],
    }  # fmt: skip


class CannedBroker:
    """Serves ``said`` while it is open (``with``), on a free port."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.said, self.asked = said, 0
        self.sockets: set[WebSocket] = set()
        self.takes_sockets = True
        self._app = FastAPI(lifespan=self._live)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        self._routes()
        self._server = uvicorn.Server(
            uvicorn.Config(self._app, log_level="error", ws_max_size=1 << 16, timeout_graceful_shutdown=1)
        )
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)

    @asynccontextmanager
    async def _live(self, app: FastAPI) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        yield

    def _routes(self) -> None:
        @self._app.websocket("/v1/events")
        async def events(websocket: WebSocket) -> None:
            await websocket.accept()
            try:
                role = TOKENS.get((await websocket.receive_json())["token"])
                if role is None or not self.takes_sockets:
                    await websocket.close(4401 if role is None else 1013)
                    return
                self.sockets.add(websocket)
                await websocket.send_json({"type": "hello"})
                await websocket.receive_text()
            except WebSocketDisconnect:
                pass
            finally:
                self.sockets.discard(websocket)

        @self._app.get("/{path:path}")
        async def everything(path: str, request: Request) -> Response:
            if f"/{path}" in FILES:
                file, kind = FILES[f"/{path}"]
                return Response(file.read_bytes(), media_type=kind, headers=HEADERS)
            role = TOKENS.get(request.headers.get("authorization", "").removeprefix("Bearer "))
            if role is None:
                return JSONResponse({"error": "who?"}, 401)
            if path == "v1/audit" and role != "admin":
                return JSONResponse({"error": "not yours"}, 403)
            if path.endswith("/history"):
                return JSONResponse({"readings": self.said["readings"]})
            name = path.rpartition("/")[2]
            if name in ("devices", "jobs", "errors", "audit"):
                self.asked += name == "devices"
                return JSONResponse({name: self.said[name]})
            return JSONResponse({"error": "not found"}, 404)

    def tell(self, event: dict[str, Any]) -> None:
        """Send an event to every page that listens."""
        self._in_loop(lambda websocket: websocket.send_json(event))

    def hang_up(self) -> None:
        """End every WebSocket."""
        self._in_loop(lambda websocket: websocket.close(1012))

    def _in_loop(self, act: Any) -> None:
        async def all_of_them() -> None:
            for websocket in list(self.sockets):
                await act(websocket)

        asyncio.run_coroutine_threadsafe(all_of_them(), self._loop).result(10)

    def __enter__(self) -> CannedBroker:
        self._thread.start()
        end = time.monotonic() + 30
        while not self._server.started and time.monotonic() < end:
            time.sleep(0.02)
        assert self._server.started
        return self

    def __exit__(self, *ignored: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
