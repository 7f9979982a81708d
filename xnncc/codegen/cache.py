"""A folder of the user's cache for what is built once per machine: runtime objects, stub libraries, tools.

An entry's name is the hash of everything that went into it, so it never grows stale; it is built aside and renamed into
place, so two builds at the same time are safe and an interrupted one leaves nothing half-written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from xnncc.errors import OutputError


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/xnncc`` or ``~/.cache/xnncc``; it may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "xnncc"


def content_key(parts: Iterable[str | Path]) -> str:
    """Return 20 hexadecimal digits over strings and the contents (not the paths) of files, in order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:20]


def cached(kind: str, key: str, make: Callable[[Path], None]) -> Path:
    """Return the folder ``<cache>/<kind>/<key>``; ``make`` fills it when it is not there yet.

    Raises: OutputError when the cache cannot be written, and whatever ``make`` raises.
    """
    final = cache_folder() / kind / key
    if final.is_dir():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{key}-", dir=final.parent))
    except OSError as error:
        why = error.strerror or str(error)
        raise OutputError(f"cache '{final.parent}'", why, "Set XDG_CACHE_HOME to a folder you may write.") from None
    try:
        make(aside)
        aside.chmod(0o755)
        try:
            aside.rename(final)
        except OSError:
            if not final.is_dir():  # otherwise another process was first, and its content is the same
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return final
