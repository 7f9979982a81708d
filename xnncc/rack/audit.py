"""What was done, by whom, when and with what outcome: a table that is only ever appended to.

The database itself refuses to change or delete a line. Refusals of strangers are written down too, but no more than
``_DENIALS_A_MINUTE``, then only counted: nobody fills the disk by knocking.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from xnncc.rack.store import Store

_DENIALS_A_MINUTE = 60
_LONGEST = 300


class Audit:
    """The log. ``clock``: seconds that never go back."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.store, self._clock = store, clock
        self._minute, self._denials = -1, 0

    def note(self, who: str, what: str, outcome: str = "done") -> None:
        """Append a line."""
        self.store.run(
            "INSERT INTO audit (at, who, what, outcome) VALUES (?,?,?,?)",
            time.time(), who[:_LONGEST], what[:_LONGEST], outcome[:_LONGEST],
        )  # fmt: skip

    def deny(self, who: str, what: str, why: str) -> None:
        """Append a refusal; beyond a rate only their number, once a minute."""
        with self.store.lock:
            minute = int(self._clock() // 60)
            if minute != self._minute:
                more = self._denials - _DENIALS_A_MINUTE
                if more > 0:
                    self.note("-", "refusals", f"{more} more in that minute")
                self._minute, self._denials = minute, 0
            self._denials += 1
            if self._denials <= _DENIALS_A_MINUTE:
                self.note(who, what, why)

    def last(self, count: int) -> list[dict[str, object]]:
        """Return the newest lines, the newest first."""
        return [
            dict(r) for r in self.store.rows("SELECT at, who, what, outcome FROM audit ORDER BY n DESC LIMIT ?", count)
        ]
