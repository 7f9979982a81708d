"""Several shapes of one network: how the lists of ``--shape`` go together, and what must be the same in all.

    x: 1,3,48,160|320|640                    three variants
    x: 1,1,16|32 and y: 1,8|4                two: (16, 8) and (32, 4): lists of one length go together
    x: 1,1,16|32 and y: 1,8                  two: what is given once holds for all

Each choice is a variant: the same network, planned and compiled for those shapes. All variants share their weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ..errors import ShapeError
from .plan import TensorInfo

if TYPE_CHECKING:
    import numpy as np

Shape: TypeAlias = "tuple[int, ...]"
Shapes: TypeAlias = "Mapping[str, Shape | Sequence[Shape]]"
# inputs, outputs, states
Interface: TypeAlias = "tuple[Sequence[TensorInfo], Sequence[TensorInfo], Sequence[tuple[TensorInfo, TensorInfo]]]"

MAX_VARIANTS = 32  # each has a section in the package, which has at most 64


def variant_shapes(shapes: Shapes) -> list[dict[str, Shape]]:
    """Return the shapes of each variant by input; one variant without a choice.

    Raises:
        ShapeError: lists of different lengths, or two variants with the same shapes.
    """
    lists = {name: _alternatives(value) for name, value in shapes.items()}
    count = max((len(found) for found in lists.values()), default=1)
    for name, found in lists.items():
        if len(found) not in (1, count):
            other = next(n for n, f in lists.items() if len(f) == count)
            why = f"{len(found)} shapes, but '{other}' has {count}: the first of each go together, then the second"
            raise ShapeError(f"--shape {name}", why, f"Give '{name}' one shape, or {count}.")
    if count > MAX_VARIANTS:
        raise ShapeError("--shape", f"{count} different shapes", f"At most {MAX_VARIANTS} fit one artefact.")
    variants = [{name: found[i % len(found)] for name, found in lists.items()} for i in range(count)]
    for i, variant in enumerate(variants):
        if variant in variants[:i]:
            words = ", ".join(f"{name} {_words(shape)}" for name, shape in variant.items())
            raise ShapeError("--shape", f"the shapes {words} are given twice", "Give every choice once.")
    return variants


def _alternatives(value: Shape | Sequence[Shape]) -> list[Shape]:
    if value and isinstance(value[0], tuple | list):
        return [tuple(shape) for shape in value]  # type: ignore[arg-type]
    return [tuple(value)]  # type: ignore[arg-type]


def check_variants(interfaces: Sequence[Interface]) -> None:
    """Check that all variants have the same inputs, outputs and states but for the dims of inputs and outputs.

    Raises:
        ShapeError: another name, dtype or number of dimensions, a state whose shape changes, or inputs that do not.
    """
    first = interfaces[0]
    for index, other in enumerate(interfaces[1:], 1):
        for side, ours, theirs in zip(("inputs", "outputs"), first[:2], other[:2], strict=True):
            if _kinds(ours) != _kinds(theirs):  # type: ignore[arg-type]
                why = f"{side} are {shapes_in_words(ours)} for one and {shapes_in_words(theirs)} for another"  # type: ignore[arg-type]
                raise ShapeError("several --shape", why, "Names, dtypes and numbers of dimensions must be the same.")
        if tuple(first[2]) != tuple(other[2]):
            raise ShapeError("several --shape", "a state has another shape for each", "States keep their shape.")
        for earlier in interfaces[:index]:
            if tuple(earlier[0]) == tuple(other[0]):
                why = f"two of them give the inputs {shapes_in_words(other[0])}"
                raise ShapeError("several --shape", why, "Give every choice once.")


def _kinds(infos: Iterable[TensorInfo]) -> list[tuple[str, str, int]]:
    return [(info.name, info.dtype, len(info.shape)) for info in infos]


def suits(samples: Mapping[str, np.ndarray] | None, shapes: Mapping[str, Shape]) -> bool:
    """Return whether the arrays have the shapes given for their names."""
    return samples is not None and all(
        name in samples and tuple(samples[name].shape) == shape for name, shape in shapes.items()
    )


def shapes_in_words(infos: Sequence[TensorInfo]) -> str:
    """Return "x 1×3×48×160, y 1×8"."""
    return ", ".join(f"{info.name} {_words(info.shape)}" for info in infos)


def _words(shape: Shape) -> str:
    return "×".join(str(dim) for dim in shape) or "scalar"
