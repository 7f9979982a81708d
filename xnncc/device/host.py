"""This machine. The artefact runs in a child process, so that a kernel that crashes is an error and not the end.

The child is this file run as a module: a JSON request on stdin, arrays in files, the answer in a file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xnncc import errors
from xnncc.device.artefact import (
    Device,
    Ops,
    Timings,
    check_inputs,
    crash_error,
    split_regions,
    split_steps,
    timings_of_ops,
    variant_for,
)
from xnncc.device.network import Network, check_host, load
from xnncc.errors import XnnccError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["HostDevice", "Network", "load"]


class HostDevice(Device):
    """Runs artefacts of this machine's own kind."""

    name = "host"

    def __init__(self, manifest: dict[str, Any]) -> None:
        check_host(manifest)
        super().__init__(manifest)

    def run(self, folder: Path, inputs: Sequence[np.ndarray], threads: int = 1) -> list[np.ndarray]:
        """See Device."""
        return self.run_stream(folder, [inputs], threads)[0]

    def run_stream(
        self, folder: Path, steps: Sequence[Sequence[np.ndarray]], threads: int = 1
    ) -> list[list[np.ndarray]]:
        """See Device."""
        _, data = self._child(folder, steps, {"do": "run", "threads": threads})
        return split_steps(variant_for(self.manifest, steps[0]), data, len(steps))

    def time(
        self, folder: Path, inputs: Sequence[np.ndarray], threads: int = 1, repeat: int = 20, per_op: bool = False
    ) -> Timings:
        """See Device."""
        request = {"do": "time", "threads": threads, "repeat": repeat, "per_op": per_op}
        samples, _ = self._child(folder, [inputs], request)
        return timings_of_ops(samples) if per_op else Timings(samples)

    def trace(self, folder: Path, inputs: Sequence[np.ndarray], ops: Ops) -> Iterator[tuple[int, list[np.ndarray]]]:
        """See Device."""
        regions = [{"index": op["index"], "outputs": op["outputs"]} for op in ops]
        _, data = self._child(folder, [inputs], {"do": "trace", "threads": 1, "ops": regions})
        yield from split_regions(ops, data)

    def _child(self, folder: Path, steps: Sequence[Sequence[Any]], request: dict[str, Any]) -> tuple[Any, bytes]:
        """Return the child's JSON answer and the bytes that it wrote."""
        arrays = [check_inputs(self.manifest, inputs) for inputs in steps]
        variant = variant_for(self.manifest, steps[0])["variant"]
        with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
            for step, inputs in enumerate(arrays):
                for i, array in enumerate(inputs):
                    array.tofile(Path(scratch) / f"{step}.{i}.bin")
            request = {**request, "folder": str(folder), "scratch": scratch, "variant": variant, "steps": len(steps)}
            argv = [sys.executable, "-m", "xnncc.device.host"]
            done = subprocess.run(argv, input=json.dumps(request), capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise crash_error(f"'{folder}' on the host", done.returncode, str(self.manifest["target"]))
            answer = json.loads(done.stdout)
            if "error" in answer:
                kind, *parts = answer["error"]
                raise getattr(errors, kind)(*parts)
            output = Path(scratch) / "out.bin"
            return answer["result"], output.read_bytes() if output.exists() else b""


def _serve() -> None:
    """The child: do what the request on stdin says."""
    request = json.load(sys.stdin)
    try:
        result = _do(request)
    except XnnccError as error:
        json.dump({"error": [type(error).__name__, error.what, error.why, error.next]}, sys.stdout)
    else:
        json.dump({"result": result}, sys.stdout)


def _do(request: dict[str, Any]) -> Any:
    import numpy as np

    from xnncc.device.artefact import numpy_dtype

    scratch = Path(request["scratch"])
    with Network(Path(request["folder"]), threads=request["threads"]) as net:
        net.use(request["variant"])

        def feeds_of(step: int) -> list[np.ndarray]:
            files = [(scratch / f"{step}.{i}.bin", t) for i, t in enumerate(net.inputs)]
            return [np.fromfile(file, dtype=numpy_dtype(t.dtype)).reshape(t.shape) for file, t in files]

        if request["do"] == "run":
            with (scratch / "out.bin").open("wb") as file:
                for step in range(request["steps"]):
                    file.writelines(array.tobytes() for array in net.run(feeds_of(step)))
            return None
        feeds = feeds_of(0)
        outputs, ins, outs = net.bind(feeds)
        if request["do"] == "trace":
            _trace(net, request["ops"], feeds, outputs, ins, outs, scratch / "out.bin")
            return None
        net.run_ops(ins, outs, 0, net.op_count)
        return [_time_once(net, ins, outs, request["per_op"]) for _ in range(request["repeat"])]


def _time_once(net: Network, ins: Any, outs: Any, per_op: bool) -> float | list[float]:
    """Return ms of one inference, or of each of its operators."""
    count = net.op_count
    times = []
    for first, last in [(i, i + 1) for i in range(count)] if per_op else [(0, count)]:
        start = time.perf_counter()
        net.run_ops(ins, outs, first, last)
        times.append((time.perf_counter() - start) * 1e3)
    return times if per_op else times[0]


def _trace(net: Network, ops: Ops, feeds: Sequence[Any], outputs: Sequence[Any], ins: Any, outs: Any, to: Path) -> None:
    """Run operator by operator and write the output regions of each."""
    import ctypes

    bases = {"arena": [net.arena], "input": [a.ctypes.data for a in feeds], "output": [a.ctypes.data for a in outputs]}
    done = 0
    with to.open("wb") as file:
        for op in ops:
            if op["index"] >= done:
                net.run_ops(ins, outs, done, op["index"] + 1)
                done = op["index"] + 1
            for region in op["outputs"]:
                base = bases[region["space"]][region.get("index", 0)]
                file.write(ctypes.string_at(base + region["offset"], region["size"]))


if __name__ == "__main__":
    _serve()
