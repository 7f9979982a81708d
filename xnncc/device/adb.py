"""A real Android phone over adb. Unproven: no phone was at hand when this was written.

The library, the package, the runner and the inputs are pushed to /data/local/tmp, and the runner is called there.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from xnncc.device.artefact import crash_error, library_file, package_file
from xnncc.device.runner import RunnerDevice, runner_failed, runner_program
from xnncc.errors import DeviceError
from xnncc.target import load_target

_FOLDER = "/data/local/tmp/xnncc"


class AdbDevice(RunnerDevice):
    """The phone with that serial number, or the only one that is attached when the number is empty."""

    name = "adb"

    def __init__(self, manifest: dict[str, Any], serial: str) -> None:
        super().__init__(manifest)
        self.target = load_target(str(manifest["target"]))
        self.serial = serial
        if self.target.toolchain.libc != "bionic":
            raise DeviceError(
                f"target '{self.target.name}' on adb", "it is not for Android", "Build for android-arm64."
            )
        adb = shutil.which("adb")
        if adb is None:
            raise DeviceError("device 'adb'", "no 'adb' on PATH", "Install it: apt-get install adb")
        self.adb = [adb, *(["-s", serial] if serial else [])]
        abis = self._adb(["shell", "getprop", "ro.product.cpu.abilist"]).strip().split(",")
        if self.target.abi not in abis:
            why = f"it runs {', '.join(abis)} and not {self.target.abi}"
            raise DeviceError(f"device 'adb:{serial}'", why, "Build for one of its ABIs.")

    def call(self, folder: Path, arguments: list[str], inputs: bytes, regions: str | None) -> tuple[str, bytes]:
        """See RunnerDevice."""
        mode, threads, sizes, *more = arguments
        library, package = library_file(folder, self.manifest), package_file(folder, self.manifest)
        with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
            source, result, lines = (Path(scratch) / name for name in ("in.bin", "out.bin", "regions.txt"))
            source.write_bytes(inputs)
            lines.write_text(regions or "", encoding="utf-8")
            self._adb(["shell", f"mkdir -p {_FOLDER}"])
            for file in (runner_program(self.target), library, package, source, lines):
                self._adb(["push", str(file), f"{_FOLDER}/{file.name}"])
            tail = ["regions.txt"] if regions is not None else more
            words = ["./runner", mode, f"./{library.name}", package.name, str(self.manifest["graph_symbol"]), threads]
            command = " ".join([*words, sizes, "in.bin", "out.bin", *tail])
            argv = [*self.adb, "shell", f"cd {_FOLDER} && chmod 755 runner && {command}"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            what = f"'{folder}' on adb:{self.serial}"
            if done.returncode >= 128 or done.returncode < 0:
                raise crash_error(what, done.returncode, self.target.name)
            if done.returncode != 0:
                raise runner_failed(what, done.stdout or done.stderr)
            self._adb(["pull", f"{_FOLDER}/out.bin", str(result)])
            return done.stdout, result.read_bytes()

    def _adb(self, arguments: list[str]) -> str:
        done = subprocess.run([*self.adb, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            why = (done.stderr or done.stdout).strip().splitlines()
            next_step = "See 'adb devices'; allow debugging on the phone."
            raise DeviceError(f"device 'adb:{self.serial}'", why[-1] if why else "adb failed", next_step)
        return done.stdout
