"""Files that are made of fetched ones: the catalogue's ``makes`` -> a function."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from fetch.catalogue import Entry


def _efficientnet_lite0(folder: Path) -> bytes:
    """ONNX file of the trained EfficientNet-Lite0."""
    from fetch.efficientnet_lite0 import build

    return build(folder / "efficientnet-lite0-57934424.pth").SerializeToString(deterministic=True)


_MAKERS = {"efficientnet-lite0.onnx": _efficientnet_lite0}


def derive(entry: Entry, root: Path, again: bool) -> bool:
    """Make ``entry.makes`` under ``root`` if it is not there (or ``again``); returns whether it was made."""
    target = root / entry.name / entry.makes
    if not entry.makes or (target.is_file() and not again):
        return False
    content = _MAKERS[entry.makes](target.parent)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".part-", delete=False) as part:
        part.write(content)
    os.chmod(part.name, 0o644)
    os.replace(part.name, target)
    return True
