"""Files of the rack by the SHA-256 of their bytes: libraries and packages that come in, outputs that go out.

    with blobs.incoming() as new: new.write(data);  sha = new.keep()
    blobs.path(sha) -> Path, or None

At most ``cap_bytes`` are kept: what was used longest ago goes first, but nothing that a waiting batch needs. A path is
made from a checked hash alone, never from anything else that a client sends.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from xnncc.errors import BadInput, OutputError
from xnncc.rack.store import Store

_SHA = re.compile(r"[0-9a-f]{64}")
MOST_BLOB_BYTES = 1 << 30


class StoreFull(OutputError):
    """There is no room for one more blob: everything that is kept is needed by batches that wait."""


class Incoming:
    """A blob that is being written."""

    def __init__(self, blobs: Blobs, path: Path) -> None:
        self._blobs, self._path = blobs, path
        self._file = path.open("xb")
        self._hash = sha256()
        self.bytes = 0

    def write(self, data: bytes) -> None:
        """Take more bytes. Raises: BadInput beyond the limit of one blob."""
        self.bytes += len(data)
        if self.bytes > MOST_BLOB_BYTES:
            raise BadInput("blob", f"it has more than {MOST_BLOB_BYTES} bytes", "Send a smaller file.")
        self._hash.update(data)
        self._file.write(data)

    def keep(self) -> str:
        """Return the SHA-256, the blob being whole. Raises: StoreFull."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._blobs._take(self._hash.hexdigest(), self._path, self.bytes)

    def drop(self) -> None:
        """Close and forget what was written; nothing happens to one that is kept."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class Blobs:
    """The blobs in ``folder``."""

    def __init__(self, store: Store, folder: Path, cap_bytes: int) -> None:
        self.store, self.folder, self.cap_bytes = store, folder, cap_bytes
        self._new = folder / "new"
        self._new.mkdir(parents=True, exist_ok=True)
        for left in self._new.iterdir():  # of a broker that was killed
            left.unlink()
        row = store.row("SELECT COALESCE(SUM(bytes), 0) AS bytes, COALESCE(MAX(used), 0) AS used FROM blobs")
        assert row is not None
        self.bytes, self._used = int(row["bytes"]), int(row["used"])

    @contextmanager
    def incoming(self) -> Iterator[Incoming]:
        """Give a blob to write to; without ``keep()`` nothing of it stays."""
        new = Incoming(self, self._new / secrets.token_hex(12))
        try:
            yield new
        finally:
            new.drop()

    def put(self, data: bytes) -> str:
        """Keep ``data``; return its SHA-256. Raises: StoreFull."""
        with self.incoming() as new:
            new.write(data)
            return new.keep()

    def has(self, sha: str) -> bool:
        """Whether it is there; a look counts as a use."""
        return self.path(sha) is not None

    def path(self, sha: str) -> Path | None:
        """Return the file of a blob, or None. Raises: BadInput for what is no SHA-256."""
        path = self._path(sha)
        with self.store.transaction():
            if not self.store.run("UPDATE blobs SET used=? WHERE sha=?", self._next(), sha):
                return None
            if path.is_file():
                return path
            self._forget(sha)
            return None

    def pin(self, batch: str, shas: set[str]) -> None:
        """Keep these for as long as ``batch`` waits or runs."""
        for sha in shas:
            self.store.run("INSERT OR IGNORE INTO blob_uses (sha, batch) VALUES (?,?)", sha, batch)

    def unpin(self, batch: str) -> None:
        """Let go of what ``batch`` needed."""
        self.store.run("DELETE FROM blob_uses WHERE batch=?", batch)

    def _take(self, sha: str, new: Path, size: int) -> str:
        with self.store.transaction():
            if self.path(sha) is not None:
                return sha
            self._make_room(size)
            path = self._path(sha)
            path.parent.mkdir(exist_ok=True)
            new.replace(path)
            self.store.run("INSERT INTO blobs (sha, bytes, used) VALUES (?,?,?)", sha, size, self._next())
            self.bytes += size
        return sha

    def _make_room(self, size: int) -> None:
        """Raises: StoreFull."""
        while self.bytes + size > self.cap_bytes:
            oldest = self.store.rows(
                "SELECT sha FROM blobs WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.sha = blobs.sha) "
                "ORDER BY used LIMIT 32"
            )
            if not oldest:
                why = f"its {self.cap_bytes >> 20} MiB are all needed by batches that wait"
                raise StoreFull("the rack's blob store", why, "Wait, or serve with a larger --blob-mib.")
            for row in oldest:
                if self.bytes + size > self.cap_bytes:
                    self._path(row["sha"]).unlink(missing_ok=True)
                    self._forget(row["sha"])

    def _forget(self, sha: str) -> None:
        row = self.store.row("SELECT bytes FROM blobs WHERE sha=?", sha)
        if row is not None:
            self.bytes -= int(row["bytes"])
            self.store.run("DELETE FROM blobs WHERE sha=?", sha)

    def _path(self, sha: str) -> Path:
        if not _SHA.fullmatch(sha):
            raise BadInput(f"blob '{sha[:70]}'", "that is no SHA-256", "Give 64 hexadecimal digits, lower case.")
        return self.folder / sha[:2] / sha

    def _next(self) -> int:
        self._used += 1
        return self._used
