"""Engines that run the same network side by side, each in a process of its own, timed in turns.

A :class:`Contender` is a child process that loads one engine, then answers each request with the median time of a
burst of inferences. :func:`race` asks one after the other, round by round, so that a slow spell of the machine hits all
alike; ratios are taken within a round. The child is this file run as a script:
``peers.py ENGINE MODEL FEEDS THREADS WORK``.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

_Feeds = Mapping[str, np.ndarray]
_Loaded = Callable[[], Sequence[np.ndarray]]  # one inference: the outputs


def _onnxruntime(model: Path, feeds: _Feeds, threads: int, work: Path) -> _Loaded:
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, dict(feeds))


def _xnncc(model: Path, feeds: _Feeds, threads: int, work: Path) -> _Loaded:
    """``model`` is an artefact directory."""
    import xnncc

    network = xnncc.load(model, threads=threads)
    return lambda: list(network(dict(feeds)).values())


def _openvino(model: Path, feeds: _Feeds, threads: int, work: Path) -> _Loaded:
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(str(model), "CPU", settings).create_infer_request()
    return lambda: list(request.infer(dict(feeds)).values())


def _mnn(model: Path, feeds: _Feeds, threads: int, work: Path) -> _Loaded:
    import MNN

    # The extension is called directly: the `mnnconvert` script would pip-install a logger and report each conversion.
    convert = "import sys, _tools; _tools.mnnconvert(['mnnconvert'] + sys.argv[1:])"
    files = ["-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(work / "m.mnn"), "--bizCode", "x"]
    subprocess.run([sys.executable, "-c", convert, *files], check=True, capture_output=True)
    interpreter = MNN.Interpreter(str(work / "m.mnn"))
    session = interpreter.createSession({"numThread": threads, "precision": "high"})
    layout, kinds = MNN.Tensor_DimensionType_Caffe, {"f": MNN.Halide_Type_Float, "i": MNN.Halide_Type_Int}
    inputs = [
        (interpreter.getSessionInput(session, name), MNN.Tensor(value.shape, kinds[value.dtype.kind], value, layout))
        for name, value in feeds.items()
    ]

    def run() -> list[np.ndarray]:
        for tensor, value in inputs:
            tensor.copyFrom(value)
        interpreter.runSession(session)
        found = []
        for output in interpreter.getSessionOutputAll(session).values():
            shape = output.getShape()
            host = MNN.Tensor(shape, MNN.Halide_Type_Float, np.zeros(shape, np.float32), layout)
            output.copyToHostTensor(host)
            found.append(np.array(host.getData()).reshape(-1))
        return found

    return run


def _ncnn(model: Path, feeds: _Feeds, threads: int, work: Path) -> _Loaded:
    import ncnn

    shutil.copy(model, work / "m.onnx")
    shapes = ",".join("[" + ",".join(map(str, value.shape)) + "]" for value in feeds.values())
    files = ["fp16=0", "ncnnparam=m.param", "ncnnbin=m.bin"]
    pnnx = Path(sys.executable).parent / "pnnx"
    subprocess.run([str(pnnx), "m.onnx", f"inputshape={shapes}", *files], check=True, cwd=work, capture_output=True)
    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = net.opt.use_fp16_packed = net.opt.use_bf16_storage = False
    net.load_param(str(work / "m.param"))
    net.load_model(str(work / "m.bin"))
    # ncnn has no batch axis: pictures lose theirs, other tensors become matrices.
    arrays = [v[0] if v.ndim == 4 else v.reshape(v.shape[0] if v.ndim else 1, -1) for v in feeds.values()]
    inputs = [ncnn.Mat(np.ascontiguousarray(array)).clone() for array in arrays]
    names = net.output_names()

    def run() -> list[np.ndarray]:
        extractor = net.create_extractor()
        for i, value in enumerate(inputs):
            extractor.input(f"in{i}", value)
        return [np.array(extractor.extract(name)[1]) for name in names]

    return run


_LOADERS = {"xnncc": _xnncc, "onnxruntime": _onnxruntime, "openvino": _openvino, "mnn": _mnn, "ncnn": _ncnn}
_MODULES = {"mnn": "MNN"}  # where the Python module has another name
PEERS = tuple(name for name in _LOADERS if name != "xnncc")


def installed(python: str = sys.executable) -> list[str]:
    """Peers in the environment of ``python``."""
    modules = {name: _MODULES.get(name, name) for name in PEERS}
    ask = f"import importlib.util as u; print(*(n for n, m in {modules}.items() if u.find_spec(m)))"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.split()


class PeerError(Exception):
    """An engine that could not load the network or died while running it, with its last words."""


class Contender:
    """One engine with one network loaded, in a child process. A context manager."""

    def __init__(self, engine: str, model: Path, feeds: Path, threads: int, python: str = sys.executable) -> None:
        self._engine = engine
        self._work = tempfile.TemporaryDirectory(prefix="xnncc-peer-")
        self._log = (Path(self._work.name) / "stderr").open("w+")
        command = [python, __file__, engine, str(model), str(feeds), str(threads), self._work.name]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self._log, text=True)
        try:
            self.rms = float(self._answer("ready"))  # of the outputs: engines must agree on it
        except PeerError:
            self.close()
            raise

    def __enter__(self) -> Contender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def time_ms(self) -> float:
        """Median time of one inference over a burst."""
        assert self._child.stdin is not None
        try:
            self._child.stdin.write("\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # it died: _answer says why
        return float(self._answer("ms"))

    def _answer(self, word: str) -> str:
        """The rest of the next line that starts with ``word``; engines may chat on stdout before it."""
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.startswith(word):
                return line[len(word) :].strip()
        self._log.seek(0)
        lines = self._log.read().strip().splitlines() or ["no message"]
        raise PeerError(f"{self._engine}: {lines[-1]}")

    def close(self) -> None:
        """End the child."""
        for stream in (self._child.stdin, self._child.stdout):
            assert stream is not None
            stream.close()
        self._child.wait()
        self._log.close()
        self._work.cleanup()


def save_feeds(feeds: _Feeds, path: Path) -> None:
    """Write inputs for a contender."""
    np.savez(path, **feeds)  # type: ignore[arg-type]  # no input is called allow_pickle


def race(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Times in ms by engine, one of each round; the order turns by one each round."""
    names = list(contenders)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            times[name].append(contenders[name].time_ms())
    return times


def ratio(times: Mapping[str, list[float]], peer: str, ours: str = "xnncc") -> float:
    """Median over the rounds of the peer's time over ours: above 1, ours is faster."""
    return statistics.median(theirs / mine for theirs, mine in zip(times[peer], times[ours], strict=True))


def _burst_ms(run: _Loaded, budget_s: float = 0.4, least: int = 5, most: int = 200) -> float:
    """Median time of at least ``least`` inferences, after one to warm up."""
    run()
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < least or (time.perf_counter() - start < budget_s and len(times) < most):
        before = time.perf_counter()
        run()
        times.append(time.perf_counter() - before)
    return 1e3 * statistics.median(times)


def _rms(outputs: Sequence[np.ndarray]) -> float:
    """One number that two engines can only agree on when both ran the whole network on the same input."""
    squares = sum(float(np.square(output, dtype=np.float64).sum()) for output in outputs)
    return (squares / sum(output.size for output in outputs)) ** 0.5


def _serve(engine: str, model: Path, feeds: Path, threads: int, work: Path) -> None:
    """Load, then answer each line of stdin with one latency."""
    with np.load(feeds) as archive:
        arrays = {name: archive[name] for name in archive.files}
    run = _LOADERS[engine](model, arrays, threads, work)
    print("ready", _rms(run()), flush=True)
    for _ in sys.stdin:
        print(f"ms {_burst_ms(run)}", flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
