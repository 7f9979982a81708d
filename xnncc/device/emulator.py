"""Other machines' artefacts on this one: qemu-user for Arm, Node for WebAssembly. Right numbers; times mean nothing."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from xnncc.codegen.emulators import QEMU, find_emulator
from xnncc.device.artefact import crash_error, library_file, package_file
from xnncc.device.runner import RunnerDevice, runner_failed, runner_program
from xnncc.errors import DeviceError
from xnncc.target import Target, load_target


def open_emulator(manifest: dict[str, Any]) -> RunnerDevice:
    """Return the emulator for the artefact's target.

    Raises: DeviceError when there is none, or what it needs is not installed.
    """
    target = load_target(str(manifest["target"]))
    if target.toolchain.kind == "wasm":
        from xnncc.device.node import NodeDevice

        return NodeDevice(manifest)
    if (target.arch, target.toolchain.libc) in QEMU:
        return QemuDevice(manifest, target)
    raise DeviceError(f"target '{target.name}'", "no emulator here runs it", "Use --device host, or a real device.")


class QemuDevice(RunnerDevice):
    """qemu-user; Android libraries run on the bionic-ABI shim of shim.py, which is not bionic."""

    name = "emulator"

    def __init__(self, manifest: dict[str, Any], target: Target) -> None:
        super().__init__(manifest)
        self.target = target
        self.qemu = QEMU[target.arch, target.toolchain.libc]
        emulator = find_emulator(target)
        assert emulator is not None, "open_emulator asked the same table"
        if emulator.missing:
            next_step = f"Install it: {emulator.install}"
            raise DeviceError(f"the emulator for '{target.name}'", f"{emulator.missing} is missing", next_step)
        self.program = emulator.found

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
        command = [self.program, "-cpu", self.qemu.cpu, "-L", str(self.qemu.root)]
        if self.target.toolchain.libc == "bionic":
            from xnncc.device.shim import bionic_shim

            command += [str(self.qemu.root / self.qemu.loader), "--library-path", str(bionic_shim(self.target))]
        return command
