"""Names that must survive a C compiler, a linker and a file system."""

from __future__ import annotations

import re


def c_identifier(stem: str) -> str:
    """Return ``stem`` as a C identifier: every other character becomes ``_``; a leading digit gets ``m`` before it.

    >>> c_identifier("mobilenet-v2.1")
    'mobilenet_v2_1'
    """
    ident = re.sub(r"[^0-9A-Za-z_]", "_", stem) or "m"
    return f"m{ident}" if ident[0].isdigit() else ident


def graph_symbol(stem: str) -> str:
    """Return the one symbol of a model that its user needs."""
    return f"xnn_{c_identifier(stem)}_graph"
