"""A broker of known phones as a process: ``serve_known.py FOLDER PORT NAME...`` prints its URL and a token."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]


def main() -> None:
    """Serve until it is killed."""
    from fakes.tuned_rack import Rack

    folder, port, *names = sys.argv[1:]
    rack = Rack(Path(folder), *names)
    kept = Path(folder) / "token"
    rack.token = kept.read_text() if kept.is_file() else ""
    for phone in rack.phones.values():
        phone.before = lambda result: time.sleep(0.05)  # there is time to kill it
    with pytest.MonkeyPatch.context() as patch, rack.serving(patch, int(port)):
        kept.write_text(rack.token)
        print(rack.url, rack.token, flush=True)
        time.sleep(600)


if __name__ == "__main__":
    main()
