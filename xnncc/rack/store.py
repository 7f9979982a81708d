"""The broker's memory: one SQLite file in its state folder, that a kill -9 at any moment leaves readable.

    store = Store(folder);  with store.transaction(): store.run("INSERT ...", ...)

Write-ahead logging: what was committed survives the end of the process. Everything in it is written by the broker
alone; only tokens are also written by `xnncc rack token` from another process. Times in it are for people: nothing is
computed from the wall clock, which may jump.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xnncc.errors import OutputError

_VERSION = 1
_SCHEMA = """
CREATE TABLE devices (serial TEXT PRIMARY KEY, spec TEXT NOT NULL, name TEXT NOT NULL, secret BLOB NOT NULL,
    may_reboot INTEGER NOT NULL, is_steady INTEGER NOT NULL, description TEXT NOT NULL,
    quarantine TEXT NOT NULL DEFAULT '', quarantine_by TEXT NOT NULL DEFAULT '',
    faults INTEGER NOT NULL DEFAULT 0, baselines TEXT NOT NULL DEFAULT '{}');
CREATE TABLE ignored (spec TEXT PRIMARY KEY);
CREATE TABLE jobs (n INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, token TEXT NOT NULL, owner TEXT NOT NULL,
    name TEXT NOT NULL, key TEXT NOT NULL, priority INTEGER NOT NULL, weight REAL NOT NULL, max_seconds REAL,
    max_devices INTEGER, used_s REAL NOT NULL DEFAULT 0, virtual REAL NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0, created REAL NOT NULL, progress TEXT NOT NULL DEFAULT '{}',
    UNIQUE (owner, token));
CREATE TABLE batches (n INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, job TEXT NOT NULL, token TEXT NOT NULL,
    state TEXT NOT NULL, spec TEXT NOT NULL, lease TEXT NOT NULL DEFAULT '', device TEXT NOT NULL DEFAULT '',
    avoid TEXT NOT NULL DEFAULT '', attempts INTEGER NOT NULL DEFAULT 0, groups_done INTEGER NOT NULL DEFAULT 0,
    facts TEXT NOT NULL DEFAULT '{}',
    error TEXT NOT NULL DEFAULT '', files TEXT NOT NULL DEFAULT '{}', created REAL NOT NULL, ended REAL,
    UNIQUE (job, token));
CREATE INDEX batches_waiting ON batches (job, state, n);
CREATE INDEX batches_state ON batches (state, n);
CREATE TABLE results (batch TEXT NOT NULL, n INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (batch, n))
    WITHOUT ROWID;
CREATE TABLE leases (id TEXT PRIMARY KEY, owner TEXT NOT NULL, token TEXT NOT NULL, key TEXT NOT NULL,
    seconds REAL NOT NULL, device TEXT NOT NULL, UNIQUE (owner, token));
CREATE TABLE blobs (sha TEXT PRIMARY KEY, bytes INTEGER NOT NULL, used INTEGER NOT NULL);
CREATE INDEX blobs_used ON blobs (used);
CREATE TABLE blob_uses (sha TEXT NOT NULL, batch TEXT NOT NULL, PRIMARY KEY (sha, batch)) WITHOUT ROWID;
CREATE INDEX blob_uses_batch ON blob_uses (batch);
CREATE TABLE tokens (name TEXT PRIMARY KEY, role TEXT NOT NULL, hash BLOB NOT NULL, created REAL NOT NULL);
CREATE TABLE audit (n INTEGER PRIMARY KEY, at REAL NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL,
    outcome TEXT NOT NULL);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
"""


class Store:
    """The tables. Any thread may use it; ``lock`` is held for as long as a transaction lasts."""

    def __init__(self, folder: Path) -> None:
        """Raises: OutputError when the folder cannot be written or the file is of a newer xnncc."""
        self.path = folder / "rack.db"
        self.lock = threading.RLock()
        self._depth = 0
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = sqlite3.connect(self.path, timeout=10.0, isolation_level=None, check_same_thread=False)
            self.path.chmod(0o600)  # it holds the agents' tokens
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            why = str(getattr(error, "strerror", "") or error).lower()
            raise OutputError(f"'{self.path}'", why, "Choose another folder with --state DIR.") from error

    def _prepare(self) -> None:
        self._db.row_factory = sqlite3.Row
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=OFF", "cache_size=-512"):
            self._db.execute(f"PRAGMA {pragma}")
        with self.transaction():
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                why = f"its version is {version} and this xnncc knows up to {_VERSION}"
                raise OutputError(f"'{self.path}'", why, "Use the xnncc that wrote it, or another --state DIR.")
            if version == 0:
                for statement in _statements(_SCHEMA):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version={_VERSION}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Do all of it or nothing; may be nested, the outermost one commits."""
        with self.lock:
            if self._depth:
                yield
                return
            self._db.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            else:
                self._db.execute("COMMIT")
            finally:
                self._depth = 0

    def run(self, sql: str, *values: Any) -> int:
        """Do one statement; return how many rows it changed."""
        with self.lock:
            return self._db.execute(sql, values).rowcount

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        """Return all rows."""
        with self.lock:
            return self._db.execute(sql, values).fetchall()

    def row(self, sql: str, *values: Any) -> sqlite3.Row | None:
        """Return the first row, or None."""
        with self.lock:
            found: sqlite3.Row | None = self._db.execute(sql, values).fetchone()
            return found

    def version(self) -> int:
        """Return a number that changes when another process has written."""
        with self.lock:
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            self._db.close()


def _statements(script: str) -> list[str]:
    """Return the statements of a script; the ends of triggers are no statement of their own."""
    found, text = [], ""
    for piece in script.split(";"):
        text += piece + ";"
        if sqlite3.complete_statement(text):
            found.append(text)
            text = ""
    return found
