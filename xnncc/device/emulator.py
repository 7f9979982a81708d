"""Other machines' artefacts on this one: qemu-user for Arm, Node for WebAssembly. Right numbers; times mean nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xnncc.device.artefact import crash_error, library_file, package_file
from xnncc.device.runner import RunnerDevice, runner_failed, runner_program
from xnncc.errors import DeviceError
from xnncc.target import Target, load_target


@dataclass(frozen=True)
class _Qemu:
    """How one architecture is emulated."""

    program: str
    cpu: str  # the oldest core that the target's floor allows: an instruction beyond it is SIGILL
    roots: dict[str, str]  # by libc: where the C library of that architecture lies
    loader: str
    packages: str


_QEMU = {
    "aarch64": _Qemu(
        "qemu-aarch64", "cortex-a53", {"glibc": "/usr/aarch64-linux-gnu", "bionic": "/usr/aarch64-linux-gnu"},
        "lib/ld-linux-aarch64.so.1", "qemu-user libc6-arm64-cross",
    ),
    "armv7a": _Qemu(
        "qemu-arm", "cortex-a9", {"bionic": "/usr/arm-linux-gnueabi"}, "lib/ld-linux.so.3", "qemu-user libc6-armel-cross"
    ),
}  # fmt: skip


def open_emulator(manifest: dict[str, Any]) -> RunnerDevice:
    """Return the emulator for the artefact's target.

    Raises: DeviceError when there is none, or what it needs is not installed.
    """
    target = load_target(str(manifest["target"]))
    if target.toolchain.kind == "wasm":
        from xnncc.device.node import NodeDevice

        return NodeDevice(manifest)
    if target.arch in _QEMU and target.toolchain.libc in _QEMU[target.arch].roots:
        return QemuDevice(manifest, target)
    raise DeviceError(f"target '{target.name}'", "no emulator here runs it", "Use --device host, or a real device.")


class QemuDevice(RunnerDevice):
    """qemu-user; Android libraries run on the bionic-ABI shim of shim.py, which is not bionic."""

    name = "emulator"

    def __init__(self, manifest: dict[str, Any], target: Target) -> None:
        super().__init__(manifest)
        self.target = target
        self.qemu = _QEMU[target.arch]
        program = shutil.which(self.qemu.program)
        self.root = Path(self.qemu.roots[target.toolchain.libc])
        missing = self.qemu.program if program is None else "" if (self.root / self.qemu.loader).exists() else self.root
        if missing or program is None:
            next_step = f"Install it: apt-get install {self.qemu.packages}"
            raise DeviceError(f"the emulator for '{target.name}'", f"{missing} is missing", next_step)
        self.program = program

    def call(self, folder: Path, arguments: list[str], inputs: bytes, regions: str | None) -> tuple[str, bytes]:
        """See RunnerDevice."""
        mode, threads, sizes, *more = arguments
        with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
            source, result = Path(scratch) / "in.bin", Path(scratch) / "out.bin"
            source.write_bytes(inputs)
            if regions is not None:
                (Path(scratch) / "regions.txt").write_text(regions, encoding="utf-8")
                more = [str(Path(scratch) / "regions.txt")]
            library, package = library_file(folder, self.manifest), package_file(folder, self.manifest)
            graph = str(self.manifest["graph_symbol"])
            runner = [str(runner_program(self.target)), mode, str(library), str(package), graph, threads, sizes]
            argv = [*self._qemu_command(), *runner, str(source), str(result), *more]
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "QEMU_"))}
            done = subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)
            what = f"'{folder}' under {self.qemu.program} -cpu {self.qemu.cpu}"
            if done.returncode < 0 or done.returncode >= 128:
                raise crash_error(what, done.returncode, self.target.name)
            if done.returncode != 0:
                raise runner_failed(what, done.stdout or done.stderr)
            return done.stdout, result.read_bytes()

    def _qemu_command(self) -> list[str]:
        command = [self.program, "-cpu", self.qemu.cpu, "-L", str(self.root)]
        if self.target.toolchain.libc == "bionic":
            from xnncc.device.shim import bionic_shim

            command += [str(self.root / self.qemu.loader), "--library-path", str(bionic_shim(self.target))]
        return command
