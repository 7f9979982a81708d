"""What happens, told to whoever listens: each listener has a bounded queue, so that a slow one costs nothing.

hub.publish("device", serial="R5CT10", state="busy")      from any thread
async with hub.listen() as listener: event = await listener.next(timeout)
async with hub.watch("batch-id") as happened: ...         for a long poll: set when something of it happens
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

Event = dict[str, Any]
_QUEUE = 256
_MOST_LISTENERS = 200
_TROUBLES = 100
_TROUBLE = ("failed", "quarantined", "offline")


class Listener:
    """One client's queue. What does not fit is dropped, the oldest first, and counted in a "lost" event."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=_QUEUE)
        self._lost = 0
        self._some = asyncio.Event()

    def put(self, event: Event) -> None:
        """Take an event; called in the loop."""
        self._lost += len(self._events) == _QUEUE
        self._events.append(event)
        self._some.set()

    async def next(self, timeout: float) -> Event | None:
        """Return the next event, or None after ``timeout`` seconds."""
        if not self._events:
            self._some.clear()
            try:
                await asyncio.wait_for(self._some.wait(), timeout)
            except asyncio.TimeoutError:
                return None
        if self._lost:
            lost, self._lost = self._lost, 0
            return {"type": "lost", "count": lost, "at": time.time()}
        return self._events.popleft()


class EventHub:
    """Where events come in and go out. ``loop`` is set once the server runs; before that nobody listens."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.troubles: deque[Event] = deque(maxlen=_TROUBLES)  # what went wrong last, for who looks later
        self._listeners: set[Listener] = set()
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self._lock = threading.Lock()

    def publish(self, kind: str, subject: str = "", **facts: Any) -> None:
        """Tell everyone. ``subject``: the id that a long poll waits for."""
        loop = self.loop
        event = {"type": kind, "at": time.time(), **facts}
        if kind in ("problem", "recovery") or facts.get("state") in _TROUBLE:
            self.troubles.append(event)
        with self._lock:
            if loop is None or not (self._listeners or subject in self._waiters):
                return
        try:
            loop.call_soon_threadsafe(self._deliver, subject, event)
        except RuntimeError:  # the loop has just ended
            return

    def _deliver(self, subject: str, event: Event) -> None:
        with self._lock:
            waiting = list(self._waiters.get(subject, ()))
            listening = list(self._listeners)
        for one in waiting:
            one.set()
        for listener in listening:
            listener.put(event)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[Listener | None]:
        """Give a listener, or None when there are too many."""
        listener = Listener()
        with self._lock:
            is_full = len(self._listeners) >= _MOST_LISTENERS
            if not is_full:
                self._listeners.add(listener)
        try:
            yield None if is_full else listener
        finally:
            with self._lock:
                self._listeners.discard(listener)

    @asynccontextmanager
    async def watch(self, subject: str) -> AsyncIterator[asyncio.Event]:
        """Give what is set when something of ``subject`` happens from here on."""
        mine = asyncio.Event()
        with self._lock:
            self._waiters.setdefault(subject, set()).add(mine)
        try:
            yield mine
        finally:
            with self._lock:
                self._waiters[subject].discard(mine)
                if not self._waiters[subject]:
                    del self._waiters[subject]
