"""What every request passes first: who is it, is it too fast, and afterwards a line in the audit.

An ASGI layer around the application, so that nothing behind it can be reached without it. The token comes in
``Authorization: Bearer``; WebSockets prove themselves in their first message (api_events.py). Only the page and the
health are shown to strangers.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from xnncc.rack.broker import Broker

RATE, BURST = 200.0, 400.0  # requests a second of one token; of one stranger a tenth
_MOST_BUCKETS = 4096
_OPEN = ("/", "/v1/health")
_OPEN_FOLDER = "/web/"

Scope = dict[str, Any]
Message = dict[str, Any]


class Guard:
    """The layer. ``app``: what is behind it."""

    def __init__(self, app: Any, broker: Broker) -> None:
        self.app, self.broker = app, broker
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Callable[[], Awaitable[Message]], send: Any) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        host = (scope.get("client") or ("?", 0))[0]
        if scope["type"] == "websocket":
            if self._is_slow_enough(f"ws {host}", RATE / 10, BURST / 10):
                await self.app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1013})
            return
        method, path = scope["method"], scope["path"]
        who = self._who(scope)
        scope.setdefault("state", {})["who"] = who
        is_fast = (
            self._is_slow_enough(who.name, RATE, BURST) if who else self._is_slow_enough(host, RATE / 10, BURST / 10)
        )
        what = f"{method} {path}"
        if not is_fast:
            await _answer(send, 429, "too many requests", "", "Wait a second.", [(b"retry-after", b"1")])
            return
        is_open = method in ("GET", "HEAD") and (path in _OPEN or path.startswith(_OPEN_FOLDER))
        if who is None and not is_open:
            self.broker.audit.deny(host, what, "no valid token")
            step = "Set XNNCC_RACK_TOKEN; an admin makes tokens with `xnncc rack token create NAME --role run`."
            await _answer(
                send, 401, "the rack", "the token is missing or wrong", step, [(b"www-authenticate", b"Bearer")]
            )
            return
        status, started = 500, time.perf_counter()

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                took = f"app;dur={1e3 * (time.perf_counter() - started):.3f}".encode()
                message = {**message, "headers": [*message["headers"], (b"server-timing", took)]}
            await send(message)

        try:
            await self.app(scope, receive, note)
        finally:
            if who is not None and status == 403:
                self.broker.audit.deny(who.name, what, "403")
            elif who is not None and method not in ("GET", "HEAD"):
                self.broker.audit.note(who.name, what, str(status))

    def _who(self, scope: Scope) -> Any:
        for name, value in scope["headers"]:
            if name == b"authorization" and value[:7].lower() == b"bearer ":
                return self.broker.tokens.who(value[7:].decode("latin-1").strip())
        return None

    def _is_slow_enough(self, name: str, rate: float, burst: float) -> bool:
        """Take one from the bucket of ``name``; False when it is empty."""
        now = self.broker.clock()
        left, at = self._buckets.pop(name, (burst, now))
        left = min(burst, left + (now - at) * rate)
        self._buckets[name] = (max(left - 1, 0.0), now)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return left >= 1


async def _answer(send: Any, status: int, what: str, why: str, step: str, headers: list[tuple[bytes, bytes]]) -> None:
    body = json.dumps({"error": {"kind": "Refused", "what": what, "why": why, "next": step}}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
