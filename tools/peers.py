"""Engines that run the same network side by side, each in a process of its own, timed in turns.

A :class:`Contender` is a child process that loads one engine, then answers each request with the times of a burst of
inferences. :func:`race` asks one after the other, round by round, so that a slow spell of the machine hits all alike;
ratios are taken within a round. The child is this file run as a script:
``peers.py ENGINE MODEL FEEDS THREADS WORK``.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
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


@dataclass(frozen=True)
class Burst:
    """Milliseconds of an inference: median and least of the clock, and processor time, all threads, of the mean."""

    median: float
    least: float
    cpu: float


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

    def burst(self) -> Burst:
        """Run a burst of inferences."""
        return Burst(**json.loads(self._ask("burst")))

    def peak_mib(self) -> float:
        """The largest resident memory of the process so far: Python, the engine, the network, its buffers."""
        return float(self._ask("peak"))

    def _ask(self, word: str) -> str:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(word + "\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            pass  # it died: _answer says why
        return self._answer(word)

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


def race(contenders: Mapping[str, Contender], rounds: int) -> dict[str, list[Burst]]:
    """A burst of each engine in each round; the order turns by one each round."""
    names = list(contenders)
    bursts: dict[str, list[Burst]] = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            bursts[name].append(contenders[name].burst())
    return bursts


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep that many processes of the machine busy."""
    children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def ratio(bursts: Mapping[str, Sequence[Burst]], peer: str, ours: str = "xnncc", of: str = "median") -> float:
    """Median over the rounds of the peer's time over ours: above 1, ours is faster. ``of``: a field of Burst."""
    pairs = zip(bursts[peer], bursts[ours], strict=True)
    return statistics.median(getattr(theirs, of) / getattr(mine, of) for theirs, mine in pairs)


def _burst(run: _Loaded, budget_s: float = 0.4, least: int = 5, most: int = 200) -> Burst:
    """Run at least ``least`` inferences, after one to warm up."""
    run()
    times: list[float] = []
    start, cpu = time.perf_counter(), time.process_time()
    while len(times) < least or (time.perf_counter() - start < budget_s and len(times) < most):
        before = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - before))
    return Burst(statistics.median(times), min(times), 1e3 * (time.process_time() - cpu) / len(times))


def _peak_mib() -> float:
    """VmHWM counts from this program's start; getrusage's figure would begin with the parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _rms(outputs: Sequence[np.ndarray]) -> float:
    """One number that two engines can only agree on when both ran the whole network on the same input."""
    squares = sum(float(np.square(output, dtype=np.float64).sum()) for output in outputs)
    return (squares / sum(output.size for output in outputs)) ** 0.5


def _serve(engine: str, model: Path, feeds: Path, threads: int, work: Path) -> None:
    """Load, then answer each line of stdin: ``burst`` or ``peak``."""
    with np.load(feeds) as archive:
        arrays = {name: archive[name] for name in archive.files}
    run = _LOADERS[engine](model, arrays, threads, work)
    print("ready", _rms(run()), flush=True)
    for word in map(str.strip, sys.stdin):
        print(word, _peak_mib() if word == "peak" else json.dumps(asdict(_burst(run))), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
