"""WebAssembly artefacts in Node: the same module and the same ES module that a browser loads."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from xnncc.codegen.emulators import find_emulator
from xnncc.device.artefact import crash_error, module_file
from xnncc.device.runner import RunnerDevice, runner_failed
from xnncc.errors import DeviceError
from xnncc.target import load_target

_SCRIPT = Path(__file__).resolve().parent / "run_node.mjs"


class NodeDevice(RunnerDevice):
    """Node 16 or later, for its WebAssembly SIMD. One thread, whatever is asked for."""

    name = "emulator"

    def __init__(self, manifest: dict[str, Any]) -> None:
        super().__init__(manifest)
        target = load_target(str(manifest["target"]))
        emulator = find_emulator(target)
        assert emulator is not None, "open_emulator comes here for wasm only"
        if emulator.missing:
            next_step = f"Install it: {emulator.install}"
            raise DeviceError(f"the emulator for '{target.name}'", f"{emulator.missing} is missing", next_step)
        self.program = emulator.found

    def call(self, folder: Path, arguments: list[str], inputs: bytes, regions: str | None) -> tuple[str, bytes]:
        """See RunnerDevice."""
        mode, _threads, sizes, *more = arguments
        module = module_file(folder, self.manifest)
        with tempfile.TemporaryDirectory(prefix="xnncc-") as scratch:
            source, result, lines = (Path(scratch) / name for name in ("in.bin", "out.bin", "regions.txt"))
            source.write_bytes(inputs)
            if regions is not None:
                lines.write_text(regions, encoding="utf-8")
                more = [str(lines)]
            variant = sizes.partition("@")[0]
            argv = [self.program, str(_SCRIPT), mode, str(module), variant, str(source), str(result), *more]
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            what = f"'{folder}' in Node"
            if done.returncode < 0:
                raise crash_error(what, done.returncode, str(self.manifest["target"]))
            if done.returncode != 0:
                raise runner_failed(what, done.stdout or done.stderr)
            return done.stdout, result.read_bytes()
