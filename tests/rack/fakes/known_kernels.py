"""Libraries of candidates whose ranking and faults are known beforehand: data/known_kernels.c for any target."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from xnncc.codegen.compile import compile_file
from xnncc.codegen.link import link_library
from xnncc.device.bench import Group, Library
from xnncc.pack import Package, write
from xnncc.target import Target

_SOURCE = Path(__file__).resolve().parents[2] / "data" / "known_kernels.c"
_COUNT = 64
_BUILD_ID = 0x0FED_CBA9_8765_4321
SYMBOL = "xnn_known_graph"


def known_kernels(
    target: Target,
    folder: Path,
    count: int = 4,
    crash: Iterable[int] = (),
    hang: Iterable[int] = (),
    wrong: Iterable[int] = (),
    laps: int = 200,
) -> tuple[Library, list[Group]]:
    """Return a library of ``count`` candidates, of which k takes k + 1 times as long as the first, and their group."""
    folder.mkdir(parents=True, exist_ok=True)
    masks = {"CRASH": crash, "HANG": hang, "WRONG": wrong}
    defines = [f"-D{name}={sum(1 << k for k in ops):#x}u" for name, ops in masks.items()]
    out = folder / "known.o"
    compile_file(target, _SOURCE, out, [*defines, f"-DLAPS={laps}", f"-DBUILD_ID={_BUILD_ID}", "-fvisibility=default"])
    library = link_library(target, [out], SYMBOL, "known", folder)[0]
    package = folder / "known.xnn"
    arena = 2 * 4 * _COUNT
    write(
        package,
        Package(
            name="known", target=target.name, build_id=_BUILD_ID, arena_bytes=arena, thread_scratch_bytes=0,
            op_count=count, inputs=(), outputs=(), weights=bytes(64),
        ),
    )  # fmt: skip
    return Library(library, package, SYMBOL), [Group(tuple(range(count)), _COUNT, 4 * _COUNT, 4 * _COUNT)]
