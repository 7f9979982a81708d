"""Devices of TVM's own rack: ``tvm-rpc:HOST:PORT:KEY`` asks TVM's tracker at HOST:PORT for a device of KEY.

    bench = TvmRpcBench(target, "tvm-rpc:127.0.0.1:9190:pixel-6f1b...")

Candidates have our calling convention, so a library of one function in TVM's goes with them: tools/tvm_measure.c, which
runs them in a child process on the device. It works on our agent and on TVM's own servers alike. Around it stands our
watchdog: every word has a deadline, a key that nobody serves is told at once, a kernel that crashes or hangs is that
kernel's fault, and whatever else goes wrong is the rack's.
"""

from __future__ import annotations

import signal
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from xnncc.codegen.build_runtime import RUNTIME
from xnncc.codegen.cache import cached, content_key
from xnncc.codegen.compile import compile_file
from xnncc.codegen.link_elf import link_shared_elf
from xnncc.codegen.toolchain import find_tool
from xnncc.device.bench import FLUSH_BYTES, Bench, Dump, Fault, Group, Library, Measurement
from xnncc.device.bench_lines import Progress, groups_left, job_lines
from xnncc.device.tvm_wire import Silence, Tensor, Tracker, TvmSession
from xnncc.errors import DeviceError, nearest
from xnncc.target import Target

_FUNCTION = "xnn_measure"
_GROUPS_AT_ONCE = 8
_SAID_BYTES = 1 << 22  # what they may say
_SILENT_S, _BUSY_S = 120, 10  # without a word: on the clock; of processor time, which is taken for a hang
_SESSION_S = 1800
_REQUEST_S = 600.0  # in the tracker's queue
_ATTEMPTS = 3  # at devices that the tracker has, but that are not there


class TvmRpcBench(Bench):
    """The devices that TVM's tracker has for a key; each ``measure`` is a session with one of them."""

    name = "tvm-rpc"
    is_elsewhere = True

    def __init__(self, target: Target, spec: str) -> None:
        self.host, self.port, self.key = split_spec(spec)
        self.shim = measuring_library(target)
        tracker = Tracker(self.host, self.port)
        try:
            servers = tracker.servers()
        finally:
            tracker.close()
        if self.key not in servers:
            known = ", ".join(sorted(servers)) or "none"
            why = f"no server is registered for it{nearest(self.key, list(servers))}"
            raise DeviceError(f"key '{self.key}' of tracker '{self.host}:{self.port}'", why, f"Registered: {known}.")

    @property
    def description(self) -> str:
        """See Bench: a tracker knows a device by its key alone."""
        return f"TVM key {self.key}"

    def measure(
        self, library: Library, groups: Sequence[Group], rounds: int, threads: int = 1, dump: Dump | None = None
    ) -> Iterator[Measurement | Fault]:
        """See Bench."""
        left = [group for group in groups if group.candidates]
        if not left:
            return
        with self._session() as session:
            shim = session.upload("xnn_measure.so", self.shim.read_bytes())
            function = session.kernel(Path(shim).name, _FUNCTION)
            paths = [
                session.upload("candidates.so", library.library.read_bytes()),
                session.upload("candidates.xnn", library.package.read_bytes()),
            ]
            said = session.tensor(_SAID_BYTES)
            while left:
                now = left[:_GROUPS_AT_ONCE]
                jobs = session.upload("jobs.txt", job_lines(now, dump is not None).encode())
                outputs = session.upload("outputs.bin", b"")
                words = [
                    "measure", *paths, library.graph_symbol, str(threads), jobs, outputs, str(rounds), str(FLUSH_BYTES),
                ]  # fmt: skip
                text = _call(session, function, words, said)
                progress = Progress(now)
                for line in text[:-1]:
                    yield from progress.take(line)
                fault = _fault(progress, text[-1])
                if fault is None and not progress.is_complete:
                    why = f"the measuring program stopped ({text[-1]}): {progress.last_words}"
                    raise DeviceError(f"device '{self.name}:{self.key}'", why)
                if dump is not None:
                    dump.data += session.call_named("tvm.rpc.server.download", "outputs.bin") or b""
                if fault is not None:
                    yield fault
                left = [*groups_left(now, progress.done, fault), *left[len(now) :]]

    def _session(self) -> TvmSession:
        """Return a session with a device that is there. Raises: DeviceError."""
        for attempt in range(_ATTEMPTS):
            tracker = Tracker(self.host, self.port)
            try:
                host, port, match = tracker.request(self.key, _REQUEST_S)
            except Silence:
                why = f"none of its devices became free within {_REQUEST_S:g} s"
                raise DeviceError(f"key '{self.key}' of TVM's tracker", why, "Is one of them stuck?") from None
            finally:
                tracker.close()
            try:
                return TvmSession(host, port, match, _SESSION_S)
            except DeviceError:
                if attempt + 1 == _ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")


def split_spec(spec: str) -> tuple[str, int, str]:
    """Return host, port and key of a spec ``tvm-rpc:HOST:PORT:KEY``. Raises: DeviceError."""
    parts = spec.split(":")
    port = parts[2] if len(parts) == 4 else ""
    if not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536 and parts[1] and parts[3]):
        example = "Example: tvm-rpc:127.0.0.1:9190:pixel"
        raise DeviceError(f"device '{spec}'", "it is not of the form tvm-rpc:HOST:PORT:KEY", example)
    return parts[1], int(port), parts[3]


def measuring_library(target: Target) -> Path:
    """Return tools/tvm_measure.c as a library for a 64-bit Linux or Android target, built once per machine.

    Raises: ToolchainError, and DeviceError for another target.
    """
    if target.toolchain.kind != "elf" or target.arch not in ("aarch64", "x86_64"):
        next_step = "Use a target for 64-bit Linux or Android."
        raise DeviceError(f"target '{target.name}'", "its kernels are not measured through TVM's RPC", next_step)
    agent = RUNTIME / "agent"
    sources = [
        RUNTIME / "tools" / "tvm_measure.c", agent / "child.c", agent / "text.c", agent / "tool_measure.c",
        RUNTIME / "src" / "affinity.c",
    ]  # fmt: skip
    included = [
        path for folder in (agent, RUNTIME / "tools", RUNTIME / "src") for path in sorted(folder.glob("*.[ch]"))
    ]

    def make(folder: Path) -> None:
        objects = []
        for source in sources:
            objects.append(folder / f"{source.stem}.o")
            compile_file(target, source, objects[-1], ["-I../include", "-fno-builtin-bcmp"])
        link_shared_elf(target, objects, f"__tvm_ffi_{_FUNCTION}", "measure", folder)

    tools = [find_tool(role, target).version for role in ("compiler", "linker")]
    key = content_key([*tools, Path(__file__), *included])
    return cached("tvm-measure", f"{target.toolchain.triple}-{key}", make) / "libmeasure.so"


def _call(session: TvmSession, function: int, words: list[str], said: Tensor) -> list[str]:
    """Return the lines that measure.c said, and last how it ended. Raises: DeviceError."""
    packed = b"".join(word.encode() + b"\0" for word in words)
    arguments = (session.tensor(len(packed), packed), said, 1000 * _SILENT_S, 1000 * _BUSY_S)
    session.call(function, *arguments, seconds=_SESSION_S)
    (length,) = struct.unpack("<I", session.read(said, 4))
    if not 0 < length <= said.size - 4:
        raise session.line.error("what its kernels said cannot be read")
    lines = session.read(said, 4 + length)[4:].decode("utf-8", "replace").splitlines()
    return lines or ["nothing"]


def _fault(progress: Progress, ending: str) -> Fault | None:
    """Return the fault of the candidate that ended the program, or None when it was no candidate's doing."""
    kind, _, number = ending.partition(" ")
    if kind == "busy" and progress.running >= 0:
        return Fault(progress.running, "hang", f"no end after {_BUSY_S} s of processor time")
    if kind == "signal" and number.isdecimal():
        try:
            return progress.fault_of_exit(signal.Signals(int(number)).name)
        except ValueError:
            return None
    return progress.fault_of_exit("") if kind == "exit" and number != "0" else None
