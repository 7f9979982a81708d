"""What LLVM made of a kernel: its innermost loops, from the assembly text, for every CPU target alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import tvm
from tvm import tirx

from xnncc.codegen.lower_kernel import lower_kernel
from xnncc.schedule import schedule_kernel
from xnncc.target import Target

_LABEL = re.compile(r"^(\.L\w+|L\w+):")
_BRANCH = re.compile(r"^\s+(?:j\w+|b\.?\w*|cbn?z|tbn?z)\s.*?(\.?L\w+)\s*$")
_MULTIPLY_ADD = re.compile(r"^(fmla|fmls|vfn?m(add|sub)\d*ps|vmla\.f32|vmul\.f32\s+q\d+, q\d+, d|vfma\.f32|fmadd)")
_SUBTRACT = re.compile(r"^(fadd|fsub|fmls|vsub\.f32|vaddps|vsubps|vfnmadd\d+ps)\b")
_STACK = re.compile(r"\bsp\b|\(%rsp")


@dataclass(frozen=True)
class Loop:
    """The instructions of an innermost loop."""

    instructions: tuple[str, ...]

    @property
    def multiply_adds(self) -> int:
        """How many of them are vector multiply-adds."""
        return sum(bool(_MULTIPLY_ADD.match(line)) for line in self.instructions)

    @property
    def subtracts(self) -> bool:
        """Whether it adds or subtracts vectors without multiplying, as transformations do and fused sums do not."""
        return any(_SUBTRACT.match(line) for line in self.instructions)

    @property
    def stack_accesses(self) -> tuple[str, ...]:
        """Those that touch the stack: spills."""
        return tuple(line for line in self.instructions if _STACK.search(line))


def assembly_of(func: tirx.PrimFunc, target: Target, folder: Path) -> str:
    """Return the assembly of ``func``, scheduled by the analytic choice for ``target``."""
    scheduled = schedule_kernel(func, target.machine)
    tvm_target = target.tvm_target()
    lowered = lower_kernel(scheduled.func, "kernel", tvm_target)
    path = folder / "kernel.s"
    tvm.get_global_func("target.build.llvm")(lowered.module, tvm_target).write_to_file(str(path))
    return path.read_text(encoding="utf-8")


def innermost_loops(assembly: str) -> list[Loop]:
    """Return the loops that contain no other: from a label to a branch back to it."""
    lines = assembly.splitlines()
    label_at = {found[1]: i for i, line in enumerate(lines) if (found := _LABEL.match(line))}
    loops: list[tuple[int, int]] = []
    for i, line in enumerate(lines):
        branch = _BRANCH.match(line)
        if branch and label_at.get(branch[1], i) < i:
            loops.append((label_at[branch[1]], i))
    inner = [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    return [Loop(tuple(line.strip() for line in lines[i:j] if line.startswith("\t"))) for i, j in inner]
