"""WS /v1/events: what happens, as it happens.

The first message of the client is ``{"token": "..."}``, within five seconds: a token in an address would end in logs.
Then come events: ``{"type": "device" | "reading" | "batch" | "job" | "progress" | "lease" | "recovery" | "problem",
"at": seconds, ...}``, ``{"type": "lost", "count": n}`` when the client was too slow, and ``{"type": "alive"}``.
"""

from __future__ import annotations

import asyncio
import json

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from xnncc.rack.broker import Broker

_FIRST_S, _ALIVE_S = 5.0, 20.0
_DENIED, _FULL = 4401, 4429


def event_routes(broker: Broker) -> APIRouter:
    """Return the route."""
    routes = APIRouter()

    @routes.websocket("/v1/events")
    async def events(socket: WebSocket) -> None:
        await socket.accept()
        if not await _proves_itself(socket):
            broker.audit.deny(socket.client.host if socket.client else "?", "WS /v1/events", "no valid token")
            await socket.close(_DENIED, "the token is missing or wrong")
            return
        async with broker.hub.listen() as listener:
            if listener is None:
                await socket.close(_FULL, "too many listeners")
                return
            ended = asyncio.create_task(_until_closed(socket))
            try:
                await socket.send_json({"type": "hello"})
                while not ended.done():
                    event = await listener.next(_ALIVE_S)
                    await socket.send_json(event or {"type": "alive"})
            except (WebSocketDisconnect, RuntimeError):
                return
            finally:
                ended.cancel()

    async def _proves_itself(socket: WebSocket) -> bool:
        try:
            text = await asyncio.wait_for(socket.receive_text(), _FIRST_S)
            first = json.loads(text[:1000])
        except (asyncio.TimeoutError, ValueError, KeyError, RecursionError, WebSocketDisconnect):
            return False
        token = first.get("token") if isinstance(first, dict) else None
        return isinstance(token, str) and broker.tokens.who(token) is not None

    async def _until_closed(socket: WebSocket) -> None:
        try:
            while True:
                await socket.receive_text()
        except (WebSocketDisconnect, RuntimeError, KeyError):
            return

    return routes
