"""Survey: what is in a model file and what of it cannot be built, for ``xnncc inspect``; nothing is compared or run.

Each format has a ``survey.py``. It first looks at every operator by name; then, when the shapes are known, it converts
the graph, because some attributes and shapes are refused only there. All problems are collected, none ends the survey.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadModel, UnsupportedModel

if TYPE_CHECKING:
    import tvm

Shapes = dict[str, tuple[int, ...]]
OWN_OPERATOR = "Replace it before the export, or write it as an operator of your own: --plugin (docs/plugins.md)"


@dataclass(frozen=True)
class NodeFacts:
    """One node. ``label`` is how messages call it; ``weight_bytes``: of constants that no node before it reads."""

    kind: str
    name: str
    label: str
    outputs: tuple[str, ...]
    weight_bytes: int = 0


@dataclass(frozen=True)
class Unsupported:
    """A node that cannot be built: why, and what to do."""

    kind: str
    name: str
    why: str
    next: str


@dataclass(frozen=True)
class Survey:
    """What was found. A shape is a list of numbers and, for free dimensions, names or "?"; None when it is unknown."""

    format: str
    inputs: tuple[dict[str, Any], ...]
    outputs: tuple[dict[str, Any], ...]
    nodes: tuple[NodeFacts, ...]
    unsupported: tuple[Unsupported, ...]
    macs: dict[str, int] | None = None  # by the node's label; None when the graph could not be converted
    note: str = ""  # why attributes and shapes were not looked at


@dataclass(frozen=True)
class Trial:
    """What a conversion gave: the module, or the problems of single nodes, or why it could not begin."""

    mod: tvm.IRModule | None
    unsupported: tuple[Unsupported, ...]
    note: str = ""


def survey_model(path: Path, shapes: Shapes, weights: Path | None = None) -> Survey | None:
    """Return the survey of a model of any format; None for a format that has none, a file of xnncc's own.

    Raises: BadModel: the file is missing, cut off or no model.
    """
    from . import LOADERS, _loader_of

    _loader_of(path)
    module = ".tensorflow" if path.is_dir() else LOADERS[path.suffix.lower()][1]
    if module == ".xq":
        return None
    found: Survey = import_module(f"{module}.survey", __package__).survey(path, shapes, weights)
    return found


def tried(
    convert: Callable[[], tvm.IRModule], problems: Callable[[], Sequence[str]], nodes: Sequence[NodeFacts]
) -> Trial:
    """Return what ``convert`` gives. ``problems`` are the converter's sentences, each with a node's label in front."""
    try:
        return Trial(convert(), ())
    except BadModel as error:
        sentences = problems() if isinstance(error, UnsupportedModel) else []
        if not sentences:
            return Trial(None, (), f"{error.why}. {error.next}".strip() if error.why else str(error))
    return Trial(None, tuple(_unsupported(sentence, nodes) for sentence in sentences))


def _unsupported(sentence: str, nodes: Sequence[NodeFacts]) -> Unsupported:
    label, _, rest = sentence.partition(": ")
    for node in nodes:
        if sentence.startswith(f"{node.label}: "):
            why, _, step = sentence.removeprefix(f"{node.label}: ").partition(". ")
            return Unsupported(node.kind, node.name, why, step or OWN_OPERATOR)
    why, _, step = rest.partition(". ")
    return Unsupported("", label, why, step)


def merged(by_name: Sequence[Unsupported], by_conversion: Sequence[Unsupported]) -> tuple[Unsupported, ...]:
    """Return both, each node once, sorted by kind and name."""
    found = {(u.kind, u.name): u for u in (*by_conversion, *by_name)}
    return tuple(found[key] for key in sorted(found))


def macs_by_label(mod: tvm.IRModule, nodes: Sequence[NodeFacts]) -> dict[str, int]:
    """Return the multiply-adds of each node that has some."""
    from ..ir.cost import macs_by_tensor
    from ..ir.transposed import untransposed

    label_of: Mapping[str, str] = {output: node.label for node in nodes for output in node.outputs}
    found: dict[str, int] = {}
    for name, macs in macs_by_tensor(mod).items():
        tensor = untransposed(re.sub(r"#\d+$", "", name))[0]
        label = label_of.get(tensor, "")
        found[label] = found.get(label, 0) + macs
    return found
