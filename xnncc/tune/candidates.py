"""Candidates -> one library that a device can time: every candidate an object of its own, operator i of the package."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import tvm

from ..codegen.graph_function import graph_function, graph_module
from ..codegen.link import link_library
from ..codegen.lower_kernel import LoweredKernel, lower_kernel
from ..codegen.plan_memory import Buffer, Call, Layout, Operand
from ..device.bench import Group, Library
from ..pack import Package, write
from ..schedule.blocks import main_block, schedule_of
from ..target import Target
from .tasks import ALIGN, Task

STEM, PREFIX = "tune", "xnn_tune_"
SYMBOL = f"{PREFIX}graph"
_REFUSALS = (tvm.error.InternalError, RuntimeError, ValueError, StopIteration, IndexError, TypeError)


@dataclass(frozen=True)
class Compiled:
    """One candidate's object file, and what memory it wants."""

    path: Path
    lowered: LoweredKernel


@dataclass
class Workshop:
    """Compiles candidates for one target in ``folder`` with ``jobs`` threads; an object is made once."""

    target: Target
    folder: Path
    jobs: int
    done: dict[tuple[str, int], Compiled | str] = field(default_factory=dict)  # or why it could not be compiled
    libraries: int = 0

    def compile(self, wanted: Sequence[tuple[Task, int]]) -> dict[tuple[str, int], Compiled | str]:
        """Return the object of each (task, index in its space), or why there is none."""
        by_key = {(task.key, index): (task, index) for task, index in wanted}
        missing = [pair for key, pair in by_key.items() if key not in self.done]
        pool = ThreadPoolExecutor(max_workers=self.jobs)
        try:
            numbered = [(task, index, len(self.done) + n) for n, (task, index) in enumerate(missing)]
            for (task, index), compiled in zip(missing, pool.map(lambda m: self._compile(*m), numbered), strict=True):
                self.done[task.key, index] = compiled
        finally:
            pool.shutdown(cancel_futures=True)
        return {(task.key, index): self.done[task.key, index] for task, index in wanted}

    def _compile(self, task: Task, index: int, number: int) -> Compiled | str:
        tvm_target = self.target.tvm_target()
        try:
            sch = schedule_of(task.func)
            block, _, numbers = main_block(sch)
            task.rule.apply(sch, block, numbers, self.target.machine, task.space[index])
            lowered = lower_kernel(sch.mod["main"], f"{PREFIX}{number}", tvm_target)
            path = self.folder / f"{number}.o"
            tvm.get_global_func("target.build.llvm")(lowered.module, tvm_target).write_to_file(str(path))
        except _REFUSALS as error:
            lines = str(error).strip().splitlines()
            return lines[-1][:200] if lines else type(error).__name__
        return Compiled(path, lowered)

    def link(self, groups: Sequence[tuple[Task, Sequence[int]]]) -> tuple[Library, list[Group]]:
        """Return the library of compiled candidates; its operators are numbered through the groups in their order."""
        calls: list[Call] = []
        objects: dict[Path, None] = {}
        out, arena, thread_scratch = [], ALIGN, 0
        for task, indices in groups:
            first = len(calls)
            for index in indices:
                compiled = self.done[task.key, index]
                assert isinstance(compiled, Compiled), "only what could be compiled is linked"
                objects[compiled.path] = None
                call, end = _call(task, compiled)
                calls.append(call)
                arena, thread_scratch = max(arena, end), max(thread_scratch, compiled.lowered.thread_scratch_bytes)
            output = task.offsets[-2]
            out.append(Group(tuple(range(first, len(calls))), output // 4, output, 4 * task.sizes[-1]))
        return self._write(calls, list(objects), arena, thread_scratch), out

    def _write(self, calls: list[Call], objects: list[Path], arena: int, thread_scratch: int) -> Library:
        self.libraries += 1
        folder = self.folder / f"library{self.libraries}"
        folder.mkdir()
        build_id, tvm_target = self.libraries, self.target.tvm_target()
        layout = Layout(calls, [], 0, b"", arena, arena, (), [])
        func = graph_function([layout], 0, PREFIX, SYMBOL, build_id)
        graph = folder / "graph.o"
        tvm.get_global_func("target.build.llvm")(graph_module(func, tvm_target), tvm_target).write_to_file(str(graph))
        (library, *_) = link_library(self.target, [*objects, graph], SYMBOL, STEM, folder)
        package = folder / f"{STEM}.xnn"
        write(
            package,
            Package(
                name=STEM, target=self.target.name, build_id=build_id, arena_bytes=arena,
                thread_scratch_bytes=thread_scratch, op_count=len(calls), inputs=(), outputs=(), weights=bytes(ALIGN),
            ),
        )  # fmt: skip
        return Library(library, package, SYMBOL, (*objects, graph))


def _call(task: Task, compiled: Compiled) -> tuple[Call, int]:
    """Return the call on the task's operands, all in the arena, and the end of its memory in bytes."""
    *places, end = task.offsets
    operands = [
        Operand((size,), "float32", Buffer(4 * size, place=place))
        for size, place in zip(task.sizes, places, strict=True)
    ]
    scratch = []
    for size in compiled.lowered.scratch_bytes:
        scratch.append(Buffer(size, kind="scratch", place=end))
        end += -(-size // ALIGN) * ALIGN
    return Call(compiled.path.stem, None, operands[:-1], operands[-1:], scratch), end
