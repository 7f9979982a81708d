"""A real Android phone over adb. Unproven: no phone was at hand when this was written.

The library, the package, the runner and the inputs are pushed to a folder of their own below /data/local/tmp, and the
runner is called there.
"""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Any

from xnncc.device.adb_client import Adb
from xnncc.device.artefact import crash_error, library_file, package_file
from xnncc.device.runner import RunnerDevice, runner_failed, runner_program
from xnncc.errors import DeviceError
from xnncc.target import load_target

_FOLDER = "/data/local/tmp/xnncc"
_RUN_SECONDS = 1800.0  # a long benchmark of a large network; a phone that is gone is told at once


class AdbDevice(RunnerDevice):
    """The phone with that serial number, or the only one that is attached when the number is empty."""

    name = "adb"

    def __init__(self, manifest: dict[str, Any], serial: str) -> None:
        super().__init__(manifest)
        self.target = load_target(str(manifest["target"]))
        if self.target.toolchain.libc != "bionic":
            raise DeviceError(
                f"target '{self.target.name}' on adb", "it is not for Android", "Build for android-arm64."
            )
        self.adb = Adb(serial)
        abis = self.adb.abis()
        if self.target.abi not in abis:
            why = f"it runs {', '.join(abis)} and not {self.target.abi}"
            raise DeviceError(self.adb.what, why, "Build for one of its ABIs.")

    def call(self, folder: Path, arguments: list[str], inputs: bytes, regions: str | None) -> tuple[str, bytes]:
        """See RunnerDevice."""
        mode, threads, sizes, *more = arguments
        library, package = library_file(folder, self.manifest), package_file(folder, self.manifest)
        there = f"{_FOLDER}/{secrets.token_hex(8)}"
        with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
            source, result, lines = (Path(scratch) / name for name in ("in.bin", "out.bin", "regions.txt"))
            source.write_bytes(inputs)
            lines.write_text(regions or "", encoding="utf-8")
            tail = ["regions.txt"] if regions is not None else more
            words = ["./runner", mode, f"./{library.name}", package.name, str(self.manifest["graph_symbol"]), threads]
            command = " ".join([*words, sizes, "in.bin", "out.bin", *tail])
            try:
                self.adb.shell(f"mkdir -p {there}")
                for file in (runner_program(self.target), library, package, source, lines):
                    self.adb.push(file, f"{there}/{file.name}")
                run = f"cd {there} && chmod 755 runner && {command}"
                code, output, errors = self.adb.outcome("shell", run, seconds=_RUN_SECONDS)
                what = f"'{folder}' on {self.adb.what}"
                if code >= 128 or code < 0:
                    raise crash_error(what, code, self.target.name)
                if code != 0:
                    raise runner_failed(what, output or errors)
                self.adb.pull(f"{there}/out.bin", result)
                return output, result.read_bytes()
            finally:
                self.adb.outcome("shell", f"rm -rf {there}")
