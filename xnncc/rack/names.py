"""Names of devices and chips that can stand in a key, a path, a page and a command line."""

from __future__ import annotations

import re

_LONGEST = 64
_NOTHING = ("unknown", "null", "none", "0", "0123456789ABCDEF")  # how vendors say nothing


def plain_name(text: str) -> str:
    """Return ``text`` with only letters, digits, dots, underscores and single dashes; "" where it says nothing."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:_LONGEST]
    return "" if name.casefold() in (word.casefold() for word in _NOTHING) else name
