#!/usr/bin/env python3
"""LeNet and LeNet-300-100: Deep Compression as published, and the whole squeeze, on the same base networks.

    tools/squeeze_lenet.py                                        everything, three seeds: about two core-hours
    tools/squeeze_lenet.py --network lenet --recipe max --seed 0  one row

Trains the base network (55,000 images), compresses it, chooses by 5,000 validation images, writes the .xq file, reads
it back and looks at the 10,000 test images once. Bytes are those of the whole file. Stopped and started again it goes
on where it was. Needs the extra ``train`` (PyTorch) and tools/fetch_models.py mnist.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from lenet.base import NETWORKS, train, write_onnx
from lenet.data import test, train_and_validation
from lenet.judge import accuracy
from lenet.recipes import candidates

ROOT = Path(__file__).resolve().parent.parent
LIMIT_POINTS = 0.1  # of accuracy that a file may lose on the validation images
RECIPES = ("deep-compression", "max")


def base(network: str, seed: int, work: Path) -> Path:
    """Return the base network's ONNX file, trained when it is not there."""
    path = work / "base" / f"{network}_{seed}.onnx"
    if not path.exists():
        write_onnx(network, train(network, seed, train_and_validation()[0]), path)
    return path


def squeeze(network: str, recipe: str, seed: int, work: Path, results: Path) -> dict[str, Any]:
    """Make one .xq file and return its row of the table."""
    from xnncc.compress.result import Data, Samples, Squeezed
    from xnncc.frontends import load_model
    from xnncc.squeeze.file import recorded, to_bytes
    from xnncc.transform.simplify import simplify

    original = recorded(simplify(load_model(base(network, seed, work), check=False).mod))
    training, validation = train_and_validation()
    samples = Samples({"image": training.images}, training.labels)
    data = Data(calib=samples[:256], train=samples, original=original)
    before = accuracy(original, validation)
    found = []
    folder = work / "journal" / f"{network}_{seed}_{recipe}"
    for word, state in candidates(network, recipe, Squeezed(original), data, seed, folder, _say):
        facts = {"source": f"{network}_{seed}.onnx", "recipe": recipe}
        lost = before - accuracy(state.mod, validation)
        found.append((to_bytes(state, ["logits"], facts), lost, word))
        print(
            f"{network} {recipe} seed {seed}, {word}: {len(found[-1][0])} bytes, validation {-lost:+.2f} points",
            flush=True,
        )
    fitting = [one for one in found if one[1] <= LIMIT_POINTS] or [min(found, key=lambda one: one[1])]
    content, lost, word = min(fitting, key=lambda one: len(one[0]))
    results.mkdir(parents=True, exist_ok=True)
    path = results / f"{network}-{recipe}-seed{seed}.xq"
    path.write_bytes(content)
    parameters = sum(shape[0] * (1 + int(_product(shape[1:]))) for shape in NETWORKS[network][0].values())
    return {
        "network": network,
        "recipe": recipe,
        "seed": seed,
        "chosen": word,
        "bytes": len(content),
        "ratio": round(4 * parameters / len(content), 1),
        "validation_lost": round(lost, 2),
        "base_test": round(accuracy(original, test()), 2),
        "test": round(accuracy(load_model(path).mod, test()), 2),
    }


def _product(sizes: tuple[int, ...]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _say(text: str, done: int, total: int) -> None:
    if done % 500 == 0 or done == total:
        print(f"  {text} {done}/{total}", file=sys.stderr, flush=True)


def record(row: dict[str, Any], store: Path) -> list[dict[str, Any]]:
    """Write ``row`` among those in ``store``, in the place of its like; returns all. Other runs may add theirs."""
    rows = json.loads(store.read_text()) if store.exists() else []
    rows = sorted([r for r in rows if _key(r) != _key(row)] + [row], key=_key)
    store.write_text(json.dumps(rows, indent=1) + "\n")
    return rows


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[k] for k in ("network", "recipe", "seed"))


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows and their means as a Markdown table."""
    lines = ["| network | recipe | seed | bytes | ratio | test | base |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        cells = ("network", "recipe", "seed", "bytes", "ratio", "test", "base_test")
        lines.append("| " + " | ".join(str(row[cell]) for cell in cells) + " |")
    for network, recipe in dict.fromkeys((row["network"], row["recipe"]) for row in rows):
        same = [row for row in rows if (row["network"], row["recipe"]) == (network, recipe)]
        if len(same) > 1:
            ratio, own, was = (sum(r[k] for r in same) / len(same) for k in ("ratio", "test", "base_test"))
            lines.append(f"| {network} | {recipe} | mean of {len(same)} | | {ratio:.1f} | {own:.2f} | {was:.2f} |")
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", choices=tuple(NETWORKS), action="append", help="default: both")
    parser.add_argument("--recipe", choices=RECIPES, action="append", help="default: both")
    parser.add_argument("--seed", type=int, action="append", help="default: 0, 1 and 2")
    parser.add_argument("--threads", type=int, default=1, help="cores for PyTorch (default: 1)")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "lenet", help="base networks and checkpoints")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results", help="folder of the .xq files")
    options = parser.parse_args(argv)
    import torch

    torch.set_num_threads(options.threads)
    rows: list[dict[str, Any]] = []
    for network in options.network or NETWORKS:
        for recipe in options.recipe or RECIPES:
            for seed in options.seed or (0, 1, 2):
                rows = record(squeeze(network, recipe, seed, options.work, options.out), options.out / "lenet.json")
    print(table(rows))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("squeeze_lenet: stopped; started again it goes on from the last checkpoint.", file=sys.stderr)
        sys.exit(130)
