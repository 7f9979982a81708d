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


_LABEL_MAP_BYTES = 184  # of the packed assets; the model is the rest


def _ssd_mobilenetv2(folder: Path) -> bytes:
    """TFLite file out of MediaPipe's packed assets."""
    return (folder / "objectron_solution_packed_assets.data").read_bytes()[_LABEL_MAP_BYTES:]


_MAKERS = {
    "efficientnet-lite0.onnx": _efficientnet_lite0,
    "ssd_mobilenetv2_oidv4_fp16.tflite": _ssd_mobilenetv2,
}


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
