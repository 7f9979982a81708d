"""The agent's program (runtime/agent/) for a target, compiled once per machine and kept in the user's cache."""

from __future__ import annotations

from pathlib import Path

from xnncc.codegen.build_runtime import RUNTIME
from xnncc.codegen.cache import cached, content_key
from xnncc.codegen.compile import SYSROOT, compile_file
from xnncc.codegen.link_elf import link_program
from xnncc.codegen.link_static import link_static, static_twin
from xnncc.codegen.toolchain import find_tool
from xnncc.errors import DeviceError
from xnncc.target import Target

AGENT = RUNTIME / "agent"
_NAME = "xnncc-agent"
_FLAGS = ("-I../include", "-fno-builtin-bcmp")  # no stub library has bcmp


def agent_program(target: Target, is_static: bool = False) -> Path:
    """Return the file of the agent for a 64-bit Linux or Android target: a stripped executable, ``xnncc-agent``.

    It needs only the C library and its loader. With ``is_static`` it needs nothing but the kernel, and loads no
    libraries: every job brings a program (static_program.py), and TVM's client is not served.

    Raises: ToolchainError, and DeviceError for a target on which no agent runs.
    """
    if target.toolchain.kind != "elf" or target.arch not in ("aarch64", "x86_64"):
        next_step = "Use a target for 64-bit Linux or Android."
        raise DeviceError(f"target '{target.name}'", "the agent does not run there", next_step)
    built_for = static_twin(target) if is_static else target
    flags = [*_FLAGS, *(["-DXNN_LOADS_NONE"] if is_static else [])]
    own = [path for path in sorted(AGENT.glob("*.c")) if not (is_static and path.name.startswith("tvm_"))]
    sources = [*own, RUNTIME / "src" / "affinity.c", *([] if is_static else [RUNTIME / "tools" / "start.c"])]

    def make(folder: Path) -> None:
        objects = []
        for source in sources:
            out = folder / f"{source.stem}.o"
            compile_file(built_for, source, out, flags)
            objects.append(out)
        if is_static:
            link_static(built_for, objects, folder / _NAME, is_small=True)
        else:
            link_program(built_for, objects, folder / _NAME, exports=True)  # to TVM's kernels

    key = content_key(
        [Path(__file__), *flags, *_tool_versions(built_for), *sources, *_headers(), SYSROOT / "symbols.toml"]
    )
    return cached("agent", f"{target.toolchain.triple}-{key}", make) / _NAME


def _tool_versions(target: Target) -> list[str]:
    return [find_tool(role, target).version for role in ("compiler", "linker")]


def _headers() -> list[Path]:
    """Return all files that the sources include."""
    folders = (AGENT, RUNTIME / "tools", RUNTIME / "src", RUNTIME / "include", SYSROOT / "include")
    return [path for folder in folders for path in sorted(folder.rglob("*.[ch]"))]
