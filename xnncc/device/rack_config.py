"""Where the rack is and who we are there: arguments, then environment, then ``rack.toml``, then the rack of this user.

    $XNNCC_RACK  http://127.0.0.1:8470      $XNNCC_RACK_TOKEN  xr_...      $XNNCC_RACK_CA  its certificate (PEM)
    $XDG_CONFIG_HOME/xnncc/rack.toml (~/.config/xnncc/rack.toml): url, token, ca

A broker that this user has started leaves its address and a token in its state folder, which only the user can read.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xnncc.errors import BadInput

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOCAL_FILE = "local.json"  # in the state folder: url, token, ca
_BIGGEST_BYTES = 1 << 16


@dataclass(frozen=True)
class RackConfig:
    """``ca``: the certificate to trust, None for those of the system."""

    url: str
    token: str
    ca: Path | None = None


def state_folder() -> Path:
    """Return the broker's default state folder: ``$XDG_DATA_HOME/xnncc/rack`` or ``~/.local/share/xnncc/rack``."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "xnncc" / "rack"


def rack_config(url: str | None = None, token: str | None = None, ca: Path | None = None) -> RackConfig:
    """Raises: BadInput when nothing says where the rack is, or no token is known."""
    file = _of_file()
    given = url or os.environ.get("XNNCC_RACK") or file.get("url", "")
    local = _of_local()
    if not given and not local:
        step = "Start one with `xnncc rack serve`, or give --rack URL or XNNCC_RACK."
        raise BadInput("rack", "nothing says where it is", step)
    found = (given or local["url"]).rstrip("/")
    if not found.startswith(("http://", "https://")):
        raise BadInput(f"--rack '{found}'", "it is no address", "Write it like http://127.0.0.1:8470.")
    mine = local if local.get("url") == found else {}
    secret = token or os.environ.get("XNNCC_RACK_TOKEN") or file.get("token") or mine.get("token", "")
    if not secret:
        step = "Set XNNCC_RACK_TOKEN; an admin makes tokens with `xnncc rack token create NAME --role run`."
        raise BadInput(f"rack {found}", "no token for it is known", step)
    if not secret.isascii() or not secret.isprintable():
        raise BadInput("XNNCC_RACK_TOKEN", "a token is made of letters, digits, '-' and '_'", "Copy it anew.")
    path = os.environ.get("XNNCC_RACK_CA") or file.get("ca") or mine.get("ca")
    return RackConfig(found, secret.strip(), ca or (Path(path) if path else None))


def _of_file() -> dict[str, str]:
    """Raises: BadInput."""
    base = os.environ.get("XDG_CONFIG_HOME")
    path = (Path(base) if base else Path.home() / ".config") / "xnncc" / "rack.toml"
    if not path.is_file():
        return {}
    try:
        found = tomllib.loads(path.read_bytes()[:_BIGGEST_BYTES].decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"'{path}'", str(error), 'Write TOML: url = "http://127.0.0.1:8470"') from None
    return _words(found)


def _of_local() -> dict[str, str]:
    path = state_folder() / LOCAL_FILE
    try:
        found = json.loads(path.read_bytes()[:_BIGGEST_BYTES])
    except (OSError, ValueError):
        return {}
    return _words(found) if isinstance(found, dict) and isinstance(found.get("url"), str) else {}


def _words(found: dict[str, Any]) -> dict[str, str]:
    return {name: value for name, value in found.items() if isinstance(value, str)}
