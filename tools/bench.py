#!/usr/bin/env python3
"""How fast xnncc's code is beside its peers, on this machine: the same networks, in turns, in one run.

    tools/bench.py                                   the benchmark networks, one thread, every installed peer
    tools/bench.py mobilenet_v2 blazeface --threads 2 --json out.json
    tools/bench.py --all --write avx512              all networks, and the README's table of that name anew
    tools/bench.py --busy 2                          with two busy loops beside it
    tools/bench.py --list                            networks and peers

Networks are those of tools/bench_models.py (written on the way) and tools/real_models.py (fetched before). onnxruntime
is always there; openvino, ncnn (with pnnx) and mnn take part when they are installed in this environment, or in
that of --peer-python (pnnx brings 5 GB of torch). A ratio is the median over the rounds of the peer's time over ours:
above 1, xnncc is faster. Peak memory is that of the whole process, Python and its libraries included for every engine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_models import BENCH_MODELS, DEFAULT_OUT, write
from peers import PEERS, Contender, PeerError, busy, installed, race, ratio, save_feeds
from real_models import MODELS, REAL_MODELS

Shapes = dict[str, tuple[int, ...]]
REAL = ("efficientnet-lite0", "ppocr-rec", "ppocr-det", "blazeface", "silero-vad")  # of the README's table
README = Path(__file__).resolve().parent.parent / "README.md"


def static_copy(model: Path, feeds: dict[str, np.ndarray], out: Path) -> Path:
    """The model with the shapes of ``feeds`` written into its inputs: some peers take no free dimensions."""
    import onnx

    proto = onnx.load(model)
    for value in proto.graph.input:
        if value.name in feeds:
            shape = value.type.tensor_type.shape
            del shape.dim[:]
            for size in feeds[value.name].shape:
                shape.dim.add().dim_value = size
    del proto.graph.value_info[:]  # of the free shapes
    onnx.save(proto, out)
    return out


def _network(name: str) -> tuple[Path, Shapes, dict[str, np.ndarray]]:
    """Model file, ``--shape`` values, and inputs: real data for real networks, random numbers for the others."""
    if name in REAL_MODELS:
        real = REAL_MODELS[name]
        return real.path(), real.shapes, real.sample(MODELS)
    import onnx

    path = write(name)
    value = onnx.load(path).graph.input[0]
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    return path, {}, {value.name: np.random.default_rng(0).standard_normal(shape).astype(np.float32)}


def measure(name: str, peers: list[str], options: argparse.Namespace) -> dict:
    """Build one network and race it; a peer that cannot run it is named with its reason."""
    from xnncc.build import build

    model, shapes, feeds = _network(name)
    out = DEFAULT_OUT / f"{name}-{options.target}"
    started = time.perf_counter()
    build(model, options.target, out, shapes=shapes or None, samples=feeds, verify=False)
    build_s = time.perf_counter() - started
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="xnncc-bench-") as work, contextlib.ExitStack() as stack:
        feed_file = Path(work) / "feeds.npz"
        save_feeds(feeds, feed_file)
        fixed = static_copy(model, feeds, Path(work) / "static.onnx")
        contenders = {"xnncc": stack.enter_context(Contender("xnncc", out, feed_file, options.threads))}
        for peer in peers:
            try:
                contender = stack.enter_context(Contender(peer, fixed, feed_file, options.threads, options.peer_python))
            except PeerError as error:
                failed[peer] = str(error)
                continue
            if abs(contender.rms / contenders["xnncc"].rms - 1) < 0.01:
                contenders[peer] = contender
            else:
                failed[peer] = f"{peer}: other outputs: RMS {contender.rms:.4g}, not {contenders['xnncc'].rms:.4g}"
        with busy(options.busy):
            bursts = race(contenders, options.rounds)
        peaks = {engine: round(contender.peak_mib(), 1) for engine, contender in contenders.items()}
    ratios = {
        of: {peer: round(ratio(bursts, peer, of=of), 3) for peer in bursts if peer != "xnncc"}
        for of in ("median", "least", "cpu")
    }
    return {
        "network": name,
        "threads": options.threads,
        "busy": options.busy,
        "rounds": options.rounds,
        "build_s": round(build_s, 1),
        "median_ms": {engine: round(statistics.median(b.median for b in row), 4) for engine, row in bursts.items()},
        "peak_mib": peaks,
        "peer_over_xnncc": ratios["median"],
        "peer_over_xnncc_least": ratios["least"],
        "peer_over_xnncc_cpu": ratios["cpu"],
        "failed": failed,
    }


def _row(result: dict, peers: list[str]) -> str:
    """One line of the table."""
    cells = [f"{result['network']:<20}", f"{result['median_ms']['xnncc']:>9.3f}"]
    for peer in peers:
        if peer in result["median_ms"]:
            cells.append(f"{result['median_ms'][peer]:>10.3f} {result['peer_over_xnncc'][peer]:>5.2f}x")
        else:
            cells.append(f"{'failed':>17}")
    return " ".join(cells)


def _notes(result: dict) -> str:
    """What the table has no room for."""
    least, cpu = (min(result[f"peer_over_xnncc_{of}"].values(), default=math.nan) for of in ("least", "cpu"))
    peaks = ", ".join(f"{engine} {mib:.0f}" for engine, mib in result["peak_mib"].items())
    said = f"built in {result['build_s']} s; best peer by least time {least:.2f}x, by processor time {cpu:.2f}x"
    return f"  {result['network']}: {said}; peak MiB: {peaks}"


def summary(results: list[dict]) -> str:
    """The best peer's time over ours: geometric mean and the lowest."""
    best = {r["network"]: min(r["peer_over_xnncc"].values()) for r in results if r["peer_over_xnncc"]}
    if not best:
        return "no peer ran"
    mean = math.exp(statistics.mean(math.log(one) for one in best.values()))
    lowest = min(best, key=lambda name: best[name])
    return f"best peer over xnncc: geometric mean {mean:.2f}, lowest {best[lowest]:.2f} ({lowest})"


def markdown(results: list[dict], peers: list[str]) -> str:
    """The README's table: milliseconds, and in brackets the peer's time over ours."""
    lines = ["| network | xnncc | " + " | ".join(peers) + " |", "|---|" + "---:|" * (1 + len(peers))]
    for r in results:
        cells = [r["network"], f"{r['median_ms']['xnncc']:.2f}"]
        for peer in peers:
            ran = peer in r["median_ms"]
            cells.append(f"{r['median_ms'][peer]:.2f} ({r['peer_over_xnncc'][peer]:.2f}x)" if ran else "fails")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", summary(results).capitalize() + f"; {time.strftime('%Y-%m-%d')}, {_machine()}."])


def _machine() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name = text.partition("model name")[2].partition("\n")[0].strip("\t :")
    return f"{name}, {text.count('processor')} cores"


def with_table(text: str, name: str, table: str) -> str:
    """Return ``text`` with what stands between the comments ``bench NAME`` and ``/bench`` replaced.

    Raises:
        ValueError: there is no such place.
    """
    begin, end = f"<!-- bench {name} -->\n", "<!-- /bench -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"no place for the table: the file has no line '{begin.strip()}' with an end")
    return f"{before}{begin}{table}\n{end}{after}"


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NETWORK", help="default: the benchmark networks")
    parser.add_argument("--threads", type=int, default=1, help="threads for every engine (default: 1)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of the race (default: 9)")
    parser.add_argument("--peers", default="", help="comma-separated (default: all that are installed)")
    parser.add_argument("--peer-python", default=sys.executable, metavar="EXE", help="Python that has the peers")
    parser.add_argument("--target", default="host", help="host, or linux-x86-64 for the AVX2 floor (default: host)")
    parser.add_argument("--all", action="store_true", help="the eleven networks of the README")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="busy loops beside it (default: none)")
    parser.add_argument(
        "--write", metavar="NAME", help="put the table into the README, between its bench NAME comments"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there")
    parser.add_argument("--list", action="store_true", help="networks and peers")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    from xnncc.errors import XnnccError

    options = _options(argv)
    known = [*BENCH_MODELS, *REAL_MODELS]
    if options.write:  # an unknown name is said now, not after the race
        with_table(README.read_text(encoding="utf-8"), options.write, "")
    peers = options.peers.split(",") if options.peers else installed(options.peer_python)
    if options.list:
        print(f"networks: {', '.join(known)}\npeers: {', '.join(PEERS)}; installed: {', '.join(peers)}")
        return 0
    for word, choices in [*((n, known) for n in options.names), *((p, list(PEERS)) for p in peers)]:
        if word not in choices:
            print(f"bench: unknown '{word}'. Known: {', '.join(choices)}.", file=sys.stderr)
            return 1
    print(f"{'network':<20} {'xnncc ms':>9} " + " ".join(f"{peer + ' ms, ratio':>17}" for peer in peers))
    results, failures = [], 0
    for name in options.names or ([*BENCH_MODELS, *REAL] if options.all else BENCH_MODELS):
        try:
            results.append(measure(name, peers, options))
        except (XnnccError, PeerError) as error:
            print(f"bench: {name}: {error}", file=sys.stderr)
            failures += 1
            continue
        print(_row(results[-1], peers), flush=True)
        print(_notes(results[-1]), file=sys.stderr, flush=True)
        for reason in results[-1]["failed"].values():
            print(f"bench: {name}: {reason}", file=sys.stderr)
    print(summary(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if options.write:
        text = with_table(README.read_text(encoding="utf-8"), options.write, markdown(results, peers))
        README.write_text(text, encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
