"""The token that an agent and its clients share: from the environment, or from a file of the user's."""

from __future__ import annotations

import os
from pathlib import Path

from xnncc.errors import DeviceError

VARIABLE = "XNNCC_AGENT_TOKEN"


def token_file() -> Path:
    """Return ``$XDG_CONFIG_HOME/xnncc/agent-token`` or ``~/.config/xnncc/agent-token``; it may not exist."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "xnncc" / "agent-token"


def agent_token(device: str) -> bytes:
    """Return the token for ``device``: ``$XNNCC_AGENT_TOKEN``, or the content of ``token_file()``.

    Raises: DeviceError when there is neither.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return given.strip().encode()
    path = token_file()
    try:
        return path.read_bytes().strip()
    except OSError:
        next_step = f"Set {VARIABLE} to the content of the agent's --token-file, or copy that file to '{path}'."
        raise DeviceError(f"device '{device}'", "no token for its agent is known", next_step) from None
