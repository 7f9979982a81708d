#!/usr/bin/env python3
"""Neuron pruning alone: half of LeNet's multiply-adds and 30 % of EfficientNet-Lite0's cut, then built and timed.

    tools/squeeze_neurons.py lenet                    # needs a base network of tools/squeeze_lenet.py
    tools/squeeze_neurons.py efficientnet-lite0

Cuts with unlabelled calibration samples, corrects what stays by least squares, writes the .xq, builds both networks for
this machine, and times them by turns, so that load from outside meets both. The times are the least of all runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 8  # of timing each network
# share of the multiply-adds that go, what sizes are multiples of (the lanes), samples that calibrate and that judge
CASES: dict[str, dict[str, Any]] = {
    "lenet": {"cut": 0.5, "multiple": 4, "calib": 256, "judge": 1000},
    "efficientnet-lite0": {"cut": 0.3, "multiple": 8, "calib": 64, "judge": 100},
}


def samples(name: str) -> tuple[str, np.ndarray, np.ndarray]:
    """Return the input's name, calibration and judging samples [M, C, H, W], no sample in both."""
    case = CASES[name]
    if name == "lenet":
        from lenet.data import train_and_validation

        training, validation = train_and_validation()
        return "image", training.images[: case["calib"]], validation.images[: case["judge"]]
    from squeeze_efficientnet import crops

    both = crops(case["calib"] + case["judge"], np.random.default_rng(5))
    return "input", both[: case["calib"]], both[case["calib"] :]


def cut(name: str, model: Path, path: Path) -> dict[str, Any]:
    """Write the smaller network to ``path``; return its multiply-adds and how often it agrees with the original."""
    from xnncc.compress import prune_neurons
    from xnncc.compress.result import Data, Samples, Squeezed, StepConfig
    from xnncc.frontends import load_model
    from xnncc.frontends.evaluate import evaluate
    from xnncc.squeeze.file import recorded, to_bytes
    from xnncc.transform.simplify import simplify

    case, (feed, calib, judge) = CASES[name], samples(name)
    imported = load_model(model, check=False)
    original = recorded(simplify(imported.mod))
    params = {**prune_neurons.DEFAULTS, "cut": case["cut"], "multiple": case["multiple"], "samples": case["calib"]}
    data = Data(calib=Samples({feed: calib}), original=original)
    found = prune_neurons.prune_neurons(Squeezed(original), StepConfig(params), data, 0, _say)
    path.write_bytes(to_bytes(found, [info.name for info in imported.outputs]))
    best = [[int(np.argmax(evaluate(mod, [one[None]])[0][0])) for one in judge] for mod in (original, found.mod)]
    before, after = found.report.facts["MACs before"], found.report.facts["MACs after"]
    return {"macs_before": before, "macs_after": after, "agreement": float(np.mean(np.equal(*best)))}


def times(models: list[Path]) -> list[float]:
    """Return the least time of an inference of each network in ms, one thread, built for this machine."""
    from xnncc import build
    from xnncc.bench import bench

    with tempfile.TemporaryDirectory() as folder:
        built = [build(model, "host", Path(folder) / f"{i}").directory for i, model in enumerate(models)]
        rounds = [[bench(directory, repeat=50).min_ms for directory in built] for _ in range(ROUNDS)]
    return [min(column) for column in zip(*rounds, strict=True)]


def _say(text: str, done: int, total: int) -> None:
    print(f"  {text} {done}/{total}", file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Command line; returns 0 when the built network is faster by 0.8 of the ratio of multiply-adds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=tuple(CASES))
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "lenet", help="folder of squeeze_lenet.py")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "neurons", help="folder of the .xq file")
    parser.add_argument("--again", action="store_true", help="only build and time what was cut before")
    options = parser.parse_args(argv)
    lenet = options.work / "base" / "lenet_0.onnx"
    model = lenet if options.name == "lenet" else ROOT / "models" / options.name / f"{options.name}.onnx"
    if not model.exists():
        make = "squeeze_lenet.py" if options.name == "lenet" else f"fetch_models.py {options.name} photos"
        print(f"squeeze_neurons: {model} is not there. Make it with: tools/{make}", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    path, facts = options.out / f"{options.name}-cut.xq", options.out / f"{options.name}.json"
    if not (options.again and path.exists() and facts.exists()):
        facts.write_text(json.dumps(cut(options.name, model, path)) + "\n")
    row = json.loads(facts.read_text())
    whole, small = times([model, path])
    ratio, speed = row["macs_before"] / row["macs_after"], whole / small
    print(f"{options.name}: {row['macs_before']:,} -> {row['macs_after']:,} MACs ({ratio:.2f}x), ", end="")
    print(f"{whole:.3f} -> {small:.3f} ms ({speed:.2f}x), same best class on {100 * row['agreement']:.1f} %")
    return 0 if speed >= 0.8 * ratio else 1


if __name__ == "__main__":
    sys.exit(main())
