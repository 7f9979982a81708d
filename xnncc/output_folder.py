"""The folder of an artefact: written aside, renamed when it is whole, so that nothing half-written is ever seen."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

from .errors import OutputError


def folder_aside(final: Path) -> Path:
    """Return a new folder beside ``final``, on the same file system so that it can be renamed."""
    if final.exists() and not final.is_dir():
        raise OutputError(f"{final}", "this is a file, not a folder", "Choose another folder with -o.")
    if final.is_dir() and any(final.iterdir()) and not (final / "manifest.json").exists():
        raise OutputError(
            f"{final}", "the folder is not empty and was not made by xnncc", "Choose another folder with -o."
        )
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    except OSError as error:
        raise output_error(final, error) from error


def output_error(final: Path, error: OSError) -> OutputError:
    """Return the sentence for what the system said about the folder ``final``."""
    if error.errno == errno.ENOSPC:
        return OutputError(f"{final}", "the disk is full", "Free space there, or choose another folder with -o.")
    why = str(error.strerror or error).lower()
    return OutputError(f"{final}", why, "Choose a folder that you may write to with -o.")


def replace_folder(aside: Path, final: Path) -> None:
    """Give the finished folder ``aside`` its name; an old one is gone only when the new one is there."""
    aside.chmod(0o755)
    if final.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{final.name}-old-", dir=final.parent))
        os.rename(final, old / "old")
        os.rename(aside, final)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.rename(aside, final)
