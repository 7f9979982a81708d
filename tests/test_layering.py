"""Who may import whom: the one table. Read from the source text, so that imports inside functions count too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "xnncc"
STAGES = {"frontends", "transform", "compress", "kernels", "schedule", "codegen", "pack", "bindings", "report"}
BASE = {"errors", "target", "host_cpu", "ir", "inputs"}

# room -> the rooms it may import. A room is a top-level module or folder of xnncc.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "host_cpu": {"errors"},
    "target": {"errors", "host_cpu"},
    "ir": {"errors", "target"},
    "inputs": {"errors", "ir"},
    **dict.fromkeys(STAGES, BASE),
    "frontends": BASE | {"pack"},  # .xq: what pack wrote is a model file again
    "pack": {"errors", "ir"},  # of ir only the dataclass of coded weights
    "schedule": BASE | {"kernels"},  # a rule knows the kernels that it tiles
    "transform": BASE | {"kernels"},  # the layout planner emits them
    "device": BASE | STAGES,
    "rack": BASE | {"device", "codegen"},  # the broker owns devices; it knows nothing of models
    "compare": BASE,
    "tune": BASE | STAGES | {"device", "compare"},
    "verify": BASE | STAGES | {"device", "compare"},
    "bench": BASE | STAGES | {"device", "compare"},
    "job": BASE | STAGES,
    "coded_weights": BASE | STAGES | {"job"},
    "artefact": BASE | STAGES | {"job", "coded_weights"},
    "output_folder": {"errors"},
    "build": BASE
    | STAGES
    | {"device", "compare", "verify", "bench", "job", "artefact", "coded_weights", "output_folder"},
    "squeeze": BASE | STAGES,  # at build's level: it joins stages to a model file, not to an artefact
    "cli": BASE | STAGES | {"squeeze", "device", "rack", "compare", "tune", "verify", "bench", "build"},
}
FREE = {"", "__init__", "__main__"}  # the package itself: it gives __version__ to everyone and the verbs to users
TYPES_ONLY = {
    "__init__": {"build", "verify", "device", "frontends", "squeeze"}
}  # what may be imported under TYPE_CHECKING alone


def _sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def _room(path: Path) -> str:
    """Return the room of a source file: its first folder, or its stem."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else path.stem


def _imports(path: Path) -> set[tuple[str, int]]:
    """Return (room, line) of everything of xnncc that ``path`` imports, relative imports resolved."""
    package = ["xnncc", *path.relative_to(ROOT).parts[:-1]]
    found: set[tuple[str, int]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        for name in names:
            head, *rest = name.split(".")
            if head == "xnncc":
                found.add((rest[0] if rest else "", node.lineno))
    return found


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_table(path: Path) -> None:
    room = _room(path)
    if room in FREE:
        allowed = TYPES_ONLY["__init__"]
    else:
        assert room in MAY_IMPORT, f"room '{room}' is new: give it a line in MAY_IMPORT of this test"
        allowed = MAY_IMPORT[room] | {room}
    known = set(MAY_IMPORT)
    for target, line in sorted(_imports(path)):
        if target in known:
            assert target in allowed, f"{path.relative_to(ROOT.parent)}:{line}: {room} must not import {target}"


def test_the_table_has_no_cycle() -> None:
    done: set[str] = set()

    def visit(room: str, above: tuple[str, ...]) -> None:
        assert room not in above, " -> ".join([*above, room])
        if room not in done:
            for other in MAY_IMPORT[room]:
                visit(other, (*above, room))
            done.add(room)

    for room in MAY_IMPORT:
        if room not in STAGES:
            visit(room, ())


@pytest.mark.parametrize(
    "room", ["errors", "ir/plan", "ir/names", "inputs", "compare", "target", "cli", "pack", "report"]
)
def test_tvm_is_never_imported_at_module_level(room: str) -> None:
    files = [ROOT / f"{room}.py"] if (ROOT / f"{room}.py").is_file() else sorted((ROOT / room).rglob("*.py"))
    for path in files:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            heavy = [name for name in names if name.split(".")[0] in ("tvm", "onnx", "onnxruntime")]
            assert not heavy, f"{path}:{node.lineno}: import {heavy[0]} inside the function that needs it"
