"""Benches in a child process of this machine: the program runtime/tools/measure.c, by itself or under qemu-user."""

from __future__ import annotations

import os
import platform
import resource
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from xnncc.codegen.emulators import QEMU, find_emulator
from xnncc.device.bench import FLUSH_BYTES, Bench, Dump, Fault, Group, Library, Measurement
from xnncc.device.bench_lines import Progress, groups_left, job_lines
from xnncc.device.runner import tool_program
from xnncc.errors import DeviceError
from xnncc.host_cpu import host_abi, host_architecture
from xnncc.target import Target

MEMORY_BYTES = 4 << 30  # address space of a child on the host
SILENT_SECONDS = 600.0  # a child that neither computes nor says anything for so long is no kernel's doing


class LocalBench(Bench):
    """What the host and the emulator share: start a child, read its lines, watch its time."""

    run_seconds = 5.0  # processor time between two lines that is taken for a hang

    def __init__(self, target: Target) -> None:
        self.target = target

    def command(self) -> list[str]:
        """Return what stands before the program's own arguments."""
        return [str(tool_program(self.target, "measure"))]

    def limits(self) -> None:
        """Set the child's limits, in the child."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MEMORY_BYTES, MEMORY_BYTES))

    def measure(
        self, library: Library, groups: Sequence[Group], rounds: int, threads: int = 1, dump: Dump | None = None
    ) -> Iterator[Measurement | Fault]:
        """See Bench. After a fault the child is started again with the groups that are left, without the culprit."""
        left = [group for group in groups if group.candidates]
        while left:
            with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
                child = _Child(self, library, left, rounds, threads, Path(scratch), dump is not None)
                try:
                    yield from child.groups_done()
                finally:
                    child.stop()
                if dump is not None:
                    dump.data += (Path(scratch) / "outputs.bin").read_bytes()
            if child.fault is not None:
                yield child.fault
            left = groups_left(left, child.progress.done, child.fault)


class HostBench(LocalBench):
    """This machine."""

    name = "host"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        wrong_arch = target.arch != host_architecture() or target.toolchain.libc != "glibc"
        if wrong_arch or (target.abi.startswith("x86-64-") and target.abi > host_abi()):
            why = f"it needs {target.abi} and this machine is Linux on {host_architecture()}, {host_abi()}"
            raise DeviceError(f"target '{target.name}' does not run here", why, "Use --device emulator.")

    def limits(self) -> None:
        """See LocalBench; also of memory."""
        super().limits()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))

    @property
    def description(self) -> str:
        """See Bench."""
        with suppress(OSError):
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    return value.strip()
        return platform.machine()


class EmulatorBench(LocalBench):
    """qemu-user: it shows which candidates are right; which is fast it cannot say."""

    name = "emulator"
    times_count = False
    run_seconds = 120.0

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        emulator = find_emulator(target)
        if emulator is None or (target.arch, target.toolchain.libc) not in QEMU:
            raise DeviceError(f"target '{target.name}'", "no emulator here times its kernels", "Use a real device.")
        if emulator.missing:
            what = f"the emulator for '{target.name}'"
            raise DeviceError(what, f"{emulator.missing} is missing", f"Install it: {emulator.install}")
        self.qemu, self.program = QEMU[target.arch, target.toolchain.libc], emulator.found

    def command(self) -> list[str]:
        """See LocalBench."""
        command = [self.program, "-cpu", self.qemu.cpu, "-L", str(self.qemu.root)]
        if self.target.toolchain.libc == "bionic":
            from xnncc.device.shim import bionic_shim

            command += [str(self.qemu.root / self.qemu.loader), "--library-path", str(bionic_shim(self.target))]
        return [*command, *super().command()]

    @property
    def description(self) -> str:
        """See Bench."""
        return f"{self.qemu.program} -cpu {self.qemu.cpu}"


class _Child:
    """One run of the program over ``groups``: how far it came, and the fault that ended it."""

    def __init__(
        self,
        bench: LocalBench,
        library: Library,
        groups: Sequence[Group],
        rounds: int,
        threads: int,
        scratch: Path,
        dumps: bool,
    ) -> None:
        self.bench, self.progress = bench, Progress(groups)
        self.fault: Fault | None = None
        jobs = scratch / "jobs.txt"
        jobs.write_text(job_lines(groups, dumps), encoding="utf-8")
        argv = [
            *bench.command(), str(library.library), str(library.package), library.graph_symbol, str(threads),
            str(jobs), str(scratch / "outputs.bin"), str(rounds), str(FLUSH_BYTES),
        ]  # fmt: skip
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "QEMU_"))}
        self.process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, preexec_fn=bench.limits,
            start_new_session=True,
        )  # fmt: skip

    def groups_done(self) -> Iterator[Measurement]:
        """Yield the measurements of each group that is finished. Raises: DeviceError."""
        for line in self._lines():
            yield from self.progress.take(line)
        if self.fault is None and not self.progress.is_complete:
            self._ended_early()

    def _lines(self) -> Iterator[str]:
        """Yield the child's lines until it ends or hangs."""
        assert self.process.stdout is not None
        pending, stream = b"", self.process.stdout.fileno()
        heard, used = time.monotonic(), self._processor_seconds()
        while True:
            if select.select([stream], [], [], 0.2)[0]:
                data = os.read(stream, 1 << 16)
                if not data:
                    return
                heard, used = time.monotonic(), self._processor_seconds()
                *lines, pending = (pending + data).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in lines)
            elif self._processor_seconds() - used > self.bench.run_seconds:
                words = f"no end after {self.bench.run_seconds:g} s of processor time"
                if self.progress.running < 0:
                    raise DeviceError(f"device '{self.bench.name}'", f"the measuring program does not start: {words}")
                self.fault = Fault(self.progress.running, "hang", words)
                return
            elif time.monotonic() - heard > SILENT_SECONDS:
                raise DeviceError(f"device '{self.bench.name}'", f"it was silent for {SILENT_SECONDS:g} s")

    def _processor_seconds(self) -> float:
        """Return the child's processor time: unlike the clock it stands still while the machine is busy elsewhere."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _ended_early(self) -> None:
        """Say whose doing it was. Raises: DeviceError when it was no candidate's."""
        code = self.process.wait()
        name = _signal_name(code)
        self.fault = self.progress.fault_of_exit(name)
        if self.fault is not None:
            return
        why = f"ended by {name}" if name else self.progress.last_words or f"exit code {code}"
        raise DeviceError(f"device '{self.bench.name}'", f"the measuring program stopped: {why}")

    def stop(self) -> None:
        """End the child, if it still runs, and everything of it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def _signal_name(code: int) -> str:
    """Return the signal that ended a process, as subprocess (-11) or a shell (139) has it; "" for none."""
    number = -code if code < 0 else code - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
