#!/usr/bin/env python3
"""What tools/demo shows: EfficientNet-Lite0 built for three platforms, each run on one photo.

tools/classify_demo.py [PHOTO]     (tools/demo does the set-up first)
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from engines import artefact_engine
from judges.vision import class_names, classifier_feeds, top_class
from PIL import Image
from real_models import MODELS, REAL_MODELS
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

TARGETS = ("host", "linux-arm64", "android-arm64")
OUT = Path(__file__).resolve().parent.parent / "build" / "demo"


def _size(size_bytes: int) -> str:
    """KiB, or MiB from one up."""
    return f"{size_bytes / 1024:.0f} KiB" if size_bytes < 1 << 20 else f"{size_bytes / (1 << 20):.1f} MiB"


def _row(target: str, photo: Image.Image, talk: Console) -> tuple[str, ...]:
    """Build for ``target``, classify the photo there; the cells of its line."""
    from xnncc.build import build
    from xnncc.target import load_target

    model = REAL_MODELS["efficientnet-lite0"]
    directory = OUT / f"efficientnet-lite0-{target}"
    with talk.status(f"building for {target}"):
        start = time.monotonic()
        manifest = build(model.path(), target, directory).manifest
        build_s = time.monotonic() - start
    emulated = load_target(target).device != "host"
    with talk.status(f"running on {target}"):
        feeds = classifier_feeds(photo)
        best, sure = top_class(artefact_engine(directory)(feeds)["logits"])
        ms = _median_ms(directory, 1 if emulated else 20)
    library = sum(file["bytes"] for file in manifest["files"] if file["role"] == "library")
    label = f"{class_names(MODELS)[best]} {sure:.2f}"
    sizes = (_size(library), _size(manifest["weights_bytes"]), _size(manifest["arena_bytes"]))
    return target, label, *sizes, f"{build_s:.0f} s", f"{ms:.0f} ms"


def _median_ms(directory: Path, repeat: int) -> float:
    """Median time of one inference on one thread."""
    from xnncc.bench import bench

    return bench(directory, threads=1, repeat=repeat).median_ms


def main(arguments: list[str]) -> int:
    """Command line; returns the exit code."""
    from xnncc.errors import XnnccError

    path = Path(arguments[0]) if arguments else MODELS / "photos" / "chelsea.png"
    talk = Console(stderr=True)
    table = Table("target", "label", title=f"EfficientNet-Lite0 on {path.name}", box=SIMPLE_HEAD, pad_edge=False)
    for head in ("library", "weights", "memory", "build", "one run"):
        table.add_column(head, justify="right")
    try:
        photo = Image.open(path).convert("RGB")
        for target in TARGETS:
            table.add_row(*_row(target, photo, talk))
    except (XnnccError, OSError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    console = Console()
    console.width = max(console.width, 90)  # a line of the table must stay a line
    console.print(table)
    print("linux-arm64 and android-arm64 ran under an emulator: their times say nothing about a phone's.")
    print(f"Libraries, headers and reports: {OUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
