"""Who may do what: tokens with a role each, of which only hashes are kept.

    text = tokens.create("ci", "run")  -> "xr_..." shown once;  tokens.who(text) -> Who("ci", "run")

A token is 32 random bytes, so one SHA-256 keeps it as safe as it is; all hashes are compared, in constant time.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from dataclasses import dataclass
from hashlib import sha256

from xnncc.errors import BadInput
from xnncc.rack.store import Store

ROLES = ("view", "run", "admin")  # each may do what the ones before it may
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_MOST = 1000


@dataclass(frozen=True)
class Who:
    """The bearer of a token."""

    name: str
    role: str

    def may(self, role: str) -> bool:
        """Whether it may do what ``role`` may."""
        return ROLES.index(self.role) >= ROLES.index(role)


class Tokens:
    """The tokens of one rack. What another process adds or removes counts at once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._hashes: list[tuple[bytes, Who]] = []
        self._version = -1
        self._load()

    def create(self, name: str, role: str) -> str:
        """Return a new token; it cannot be shown again. Raises: BadInput."""
        if not _NAME.fullmatch(name):
            raise BadInput(f"token name '{name}'", "expected letters, digits, '.', '_', '@' or '-', 1 to 64 of them")
        if role not in ROLES:
            raise BadInput(f"role '{role}'", "", f"Known: {', '.join(ROLES)}.")
        text = "xr_" + secrets.token_urlsafe(32)
        with self.store.transaction():
            if self.store.row("SELECT 1 FROM tokens WHERE name=?", name):
                raise BadInput(f"token '{name}'", "there is one of that name", "Revoke it first, or take another name.")
            if len(self.list()) >= _MOST:
                raise BadInput(f"token '{name}'", f"there are {_MOST} already", "Revoke those that nobody uses.")
            self.store.run(
                "INSERT INTO tokens (name, role, hash, created) VALUES (?,?,?,?)", name, role, _hash(text), time.time()
            )
        self._load()
        return text

    def revoke(self, name: str) -> None:
        """Raises: BadInput when there is none of that name."""
        if not self.store.run("DELETE FROM tokens WHERE name=?", name):
            raise BadInput(f"token '{name}'", "there is none of that name", "See `xnncc rack token list`.")
        self._load()

    def list(self) -> list[dict[str, object]]:
        """Return name, role and time of each."""
        return [dict(row) for row in self.store.rows("SELECT name, role, created FROM tokens ORDER BY name")]

    def who(self, text: str) -> Who | None:
        """Return whose token it is, or None."""
        if self.store.version() != self._version:
            self._load()
        given, found = _hash(text[:256]), None
        for known, who in self._hashes:
            if hmac.compare_digest(known, given):
                found = who
        return found

    def _load(self) -> None:
        self._version = self.store.version()
        rows = self.store.rows("SELECT name, role, hash FROM tokens")
        self._hashes = [(bytes(row["hash"]), Who(row["name"], row["role"])) for row in rows]


def _hash(text: str) -> bytes:
    return sha256(text.encode("utf-8", "replace")).digest()
