"""Reading and rearranging the blocks of a kernel: what every schedule rule needs."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import s_tir
from tvm.s_tir.schedule import LoopRV, SBlockRV, Schedule

DATA_PARALLEL, REDUCTION = 0, 2  # tirx.IterVar.iter_type
SHORT_LANES, WRITTEN_OUT_PIXELS = 4, range(33, 129)


def blocks_of(sch: Schedule) -> list[SBlockRV]:
    """Return the blocks under the root, in order of execution."""
    return list(sch.get_child_blocks(sch.get_sblock("root")))


def output_block(sch: Schedule) -> SBlockRV:
    """Return the block that writes the kernel's (first) output."""
    return sch.get_output_blocks(sch.get_sblock("root"))[0]


def annotation(sch: Schedule, block: SBlockRV) -> str:
    """Return the ``xnn.rule`` of ``block``, or an empty string."""
    return str(sch.get(block).annotations.get("xnn.rule", ""))


def main_block(sch: Schedule) -> tuple[SBlockRV | None, str, dict[str, int]]:
    """Return the block that carries a rule, the rule's name and its numbers; (None, "", {}) for a foreign kernel."""
    for block in blocks_of(sch):
        name = annotation(sch, block)
        if name and name != "pad":
            notes = sch.get(block).annotations
            numbers = {str(k)[4:]: int(x) for k, x in notes.items() if str(k).startswith("xnn.") and k != "xnn.rule"}
            return block, name, numbers
    return None, "", {}


def stages_of(sch: Schedule, names: Sequence[str]) -> tuple[dict[str, SBlockRV], SBlockRV]:
    """Return the blocks of a kernel of several stages by name, and its output block; inline all that are neither."""
    stages, out = {str(sch.get(b).name_hint): b for b in blocks_of(sch)}, output_block(sch)
    for name, block in stages.items():
        if name not in (*names, str(sch.get(out).name_hint)):
            sch.compute_inline(block)
    return stages, out


def is_reduction(sch: Schedule, block: SBlockRV) -> bool:
    """Return whether ``block`` reduces over some axis."""
    return any(int(v.iter_type) == REDUCTION for v in sch.get(block).iter_vars)


def pads(sch: Schedule) -> list[SBlockRV]:
    """Return the blocks that make padded or packed copies of an input."""
    return [b for b in blocks_of(sch) if annotation(sch, b) == "pad"]


def same(sch: Schedule, a: SBlockRV, b: SBlockRV) -> bool:
    """Return whether both names mean one block."""
    return bool(sch.get(a).same_as(sch.get(b)))


def inline_tail(sch: Schedule, main: SBlockRV, copied: SBlockRV | None = None) -> SBlockRV:
    """Inline every elementwise block but ``main``, padded copies, ``copied`` and the output block; return that."""
    out = output_block(sch)
    for block in blocks_of(sch):
        kept = [b for b in (main, out, copied) if b is not None]
        if not any(same(sch, block, b) for b in kept) and annotation(sch, block) != "pad":
            sch.compute_inline(block)
    return out


def extent(sch: Schedule, loop: LoopRV) -> int:
    """Return the constant extent of ``loop``."""
    return int(sch.get(loop).extent)


def unroll_below(sch: Schedule, block: SBlockRV, keep: int) -> None:
    """Vectorise the innermost loop of ``block`` and unroll all loops between it and the first ``keep`` ones."""
    loops = sch.get_loops(block)
    sch.vectorize(loops[-1])
    for loop in loops[keep:-1]:
        sch.unroll(loop)


def copy_pad(sch: Schedule, block: SBlockRV, lanes: int, at: LoopRV | None = None) -> None:
    """Schedule a padded copy: under loop ``at``, or before everything else and then in parallel."""
    if at is not None:
        sch.compute_at(block, at, preserve_unit_loops=True)
    loops = sch.get_loops(block)
    if at is None:
        sch.parallel(sch.fuse(*loops[:3]) if len(loops) > 3 else loops[0])
        loops = sch.get_loops(block)
    last = extent(sch, loops[-1])
    if sch.get(block).name_hint == "pixels":  # a lane is a channel of a plain image
        sch.unroll(loops[-1])
    elif last % lanes == 0 and last <= 4 * lanes:
        sch.vectorize(loops[-1])
        write_row_out(sch, loops[-2], lanes)


def write_row_out(sch: Schedule, pixels: LoopRV, lanes: int) -> None:
    """Unroll the pixels of a padded row where a pixel is one short vector: copying it costs less than asking whether it
    is inside the image, which is then known."""
    if lanes == SHORT_LANES and extent(sch, pixels) in WRITTEN_OUT_PIXELS:
        sch.unroll(pixels)


def read_lanes(sch: Schedule, block: SBlockRV, at: LoopRV, vectors: SBlockRV | None = None) -> None:
    """Read the first input of ``block`` by whole vectors under loop ``at``; the unrolled loops below multiply by a lane
    of them each (Arm: FMLA by element). Left alone, LLVM loads every scalar by itself. Blocks of channels go outside
    pixels there: the inputs stay in registers, and a pair of weights lives at a time. ``vectors`` is the block that
    copies the input, if there is one already."""
    vectors = vectors or sch.cache_read(block, 0, "global")
    sch.compute_at(vectors, at, preserve_unit_loops=True)
    unroll_below(sch, vectors, len(sch.get_loops(vectors)) - len(sch.get(vectors).iter_vars))


def fuse_all(sch: Schedule, loops: Sequence[LoopRV]) -> LoopRV:
    """Return one loop for all ``loops``."""
    return sch.fuse(*loops) if len(loops) > 1 else loops[0]


def schedule_of(func: object) -> Schedule:
    """Return a fresh schedule of one PrimFunc."""
    import tvm

    return s_tir.Schedule(tvm.IRModule({"main": func}))
