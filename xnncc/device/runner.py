"""Devices without Python: a small C program (runtime/tools/runner.c) loads the library there and runs it on files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xnncc.codegen.build_runtime import RUNTIME
from xnncc.codegen.cache import cached, content_key
from xnncc.codegen.compile import SYSROOT, compile_file
from xnncc.codegen.link_elf import link_program
from xnncc.codegen.toolchain import find_tool
from xnncc.device.artefact import (
    Device,
    Ops,
    Timings,
    check_inputs,
    split_regions,
    split_steps,
    tensor_bytes,
    timings_of_ops,
    variant_for,
)
from xnncc.errors import DeviceError
from xnncc.target import Target

if TYPE_CHECKING:
    import numpy as np

_SPACES = {"arena": "a", "input": "i", "output": "o"}


def runner_program(target: Target) -> Path:
    """Return the runner of whole networks, built for an ELF target. Raises: ToolchainError."""
    return tool_program(target, "runner")


def tool_program(target: Target, name: str) -> Path:
    """Return a program of runtime/tools for an ELF target, built once and kept in the cache. Raises: ToolchainError."""
    tools = RUNTIME / "tools"
    sources = [tools / f"{name}.c", tools / "start.c"]
    headers = [*sorted(tools.glob("*.h")), RUNTIME / "include" / "xnnrt.h", SYSROOT / "include" / "xnn_libc.h"]
    key = content_key([find_tool("compiler", target).version, *sources, *headers, SYSROOT / "symbols.toml"])

    def make(folder: Path) -> None:
        objects = []
        for source in [*sources, *([SYSROOT / "arm_builtins.c"] if target.arch == "armv7a" else [])]:
            out = folder / f"{source.stem}.o"
            extra = ["-I../include", *(["-ffreestanding"] if source.name == "arm_builtins.c" else [])]
            compile_file(target, source, out, extra)
            objects.append(out)
        link_program(target, objects, folder / name)

    return cached(name, f"{target.toolchain.triple}-{key}", make) / name


class RunnerDevice(Device):
    """What is the same for every device that is driven through the runner program or one of its protocol."""

    @abstractmethod
    def call(self, folder: Path, arguments: list[str], inputs: bytes, regions: str | None) -> tuple[str, bytes]:
        """Run the runner in ``arguments[0]`` mode; return its stdout and the bytes of its output file.

        ``arguments`` are mode, threads, sizes ("VARIANT@INPUT,...:OUTPUT,..." in bytes), then what the mode wants but
        for files. ``inputs`` are those of one inference, or of several in a row.
        """

    def run(self, folder: Path, inputs: Sequence[np.ndarray], threads: int = 1) -> list[np.ndarray]:
        """See Device."""
        return self.run_stream(folder, [inputs], threads)[0]

    def run_stream(
        self, folder: Path, steps: Sequence[Sequence[np.ndarray]], threads: int = 1
    ) -> list[list[np.ndarray]]:
        """See Device."""
        _, data = self._call(folder, "run", steps, threads, [])
        return split_steps(variant_for(self.manifest, steps[0]), data, len(steps))

    def time(
        self, folder: Path, inputs: Sequence[np.ndarray], threads: int = 1, repeat: int = 20, per_op: bool = False
    ) -> Timings:
        """See Device."""
        text, _ = self._call(folder, "time", [inputs], threads, [str(repeat), str(int(per_op))])
        rows = [line.split() for line in text.splitlines()]
        if not per_op:
            return Timings([int(row[1]) / 1e6 for row in rows if row and row[0] == "run"])
        flat = [int(row[2]) / 1e6 for row in rows if row and row[0] == "op"]
        count = len(flat) // repeat
        return timings_of_ops([flat[i * count : (i + 1) * count] for i in range(repeat)])

    def trace(self, folder: Path, inputs: Sequence[np.ndarray], ops: Ops) -> Iterator[tuple[int, list[np.ndarray]]]:
        """See Device."""
        _, data = self._call(folder, "trace", [inputs], 1, [], region_lines(ops))
        yield from split_regions(ops, data)

    def _call(
        self,
        folder: Path,
        mode: str,
        steps: Sequence[Sequence[np.ndarray]],
        threads: int,
        more: list[str],
        regions: str | None = None,
    ) -> tuple[str, bytes]:
        chosen = variant_for(self.manifest, steps[0])
        sizes = ":".join(",".join(str(tensor_bytes(t)) for t in chosen[side]) for side in ("inputs", "outputs"))
        sizes = f"{chosen['variant']}@{sizes}"
        data = b"".join(a.tobytes() for inputs in steps for a in check_inputs(chosen, inputs))
        return self.call(Path(folder), [mode, str(threads), sizes, *more], data, regions)


def region_lines(ops: Ops) -> str:
    """Return the runner's list of regions: "OP SPACE INDEX OFFSET BYTES" a line."""
    return "".join(
        f"{op['index']} {_SPACES[r['space']]} {r.get('index', 0)} {r['offset']} {r['size']}\n"
        for op in ops
        for r in op["outputs"]
    )


def runner_failed(what: str, text: str) -> DeviceError:
    """Return the error for a runner that ended with exit code 1 and a sentence."""
    return DeviceError(what, text.strip().splitlines()[-1] if text.strip() else "the runner failed without a word")
