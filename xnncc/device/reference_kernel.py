"""The reference kernel (runtime/tools/reference.c) as a library that every bench can time, made once per machine.

reference_kernel(target) -> (Library, Group)
"""

from __future__ import annotations

from pathlib import Path

from xnncc.codegen.build_runtime import RUNTIME
from xnncc.codegen.cache import cached, content_key
from xnncc.codegen.compile import compile_file
from xnncc.codegen.link import link_library
from xnncc.codegen.toolchain import find_tool
from xnncc.device.bench import Group, Library
from xnncc.pack import Package, write
from xnncc.target import Target

_SOURCE = RUNTIME / "tools" / "reference.c"
_STEM, _SYMBOL, _BUILD_ID = "reference", "xnn_reference_graph", 0x7265_6665_7265_6E63
_FLOATS = 64 * 64


def reference_kernel(target: Target) -> tuple[Library, Group]:
    """Return the library for ``target`` and its one group of one candidate, of about a millisecond.

    Raises: ToolchainError, OutputError.
    """
    tools = [find_tool(role, target).version for role in ("compiler", "linker")]
    key = content_key([*tools, target.fingerprint, _SOURCE, Path(__file__)])

    def make(folder: Path) -> None:
        out = folder / "reference.o"
        compile_file(target, _SOURCE, out, [f"-DBUILD_ID={_BUILD_ID}", "-fvisibility=default"])
        link_library(target, [out], _SYMBOL, _STEM, folder)
        package = Package(
            name=_STEM, target=target.name, build_id=_BUILD_ID, arena_bytes=3 * 4 * _FLOATS, thread_scratch_bytes=0,
            op_count=1, inputs=(), outputs=(), weights=bytes(64),
        )  # fmt: skip
        write(folder / f"{_STEM}.xnn", package)

    folder = cached("reference", f"{target.name}-{key}", make)
    library = next(path for path in folder.iterdir() if path.stem.endswith(_STEM) and path.suffix not in (".o", ".xnn"))
    group = Group((0,), 2 * _FLOATS, 8 * _FLOATS, 4 * _FLOATS)
    return Library(library, folder / f"{_STEM}.xnn", _SYMBOL), group
