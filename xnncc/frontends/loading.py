"""The last steps of a front-end, the same for every format: conversion, ``Imported``, and the check.

The functions import what is heavy themselves: the front-ends' packages are imported without TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import tvm

    from ..ir.plan import TensorInfo
    from .imported import Imported, Reference

    Infos = tuple[TensorInfo, ...]


class Converter(Protocol):
    """What converts one model; ``warnings`` is complete after ``convert``."""

    warnings: list[str]

    def convert(self, inputs: Infos) -> tuple[tvm.IRModule, Infos]:
        """Return the module and its outputs."""

    def tensors(self, mod: tvm.IRModule) -> frozenset[str]:
        """Return the names of the module's variables that compute a tensor of the model."""


def imported_by(
    converter: Converter,
    inputs: Infos,
    source: Path,
    runtime: Callable[[Infos], Reference],
    warnings: Iterable[str] = (),
    weight_files: tuple[Path, ...] = (),
) -> Imported:
    """Return what ``converter`` makes of its model; ``runtime`` gives the model's own runtime for its outputs."""
    from .imported import Imported

    mod, outputs = converter.convert(inputs)
    return Imported(
        mod=mod,
        inputs=inputs,
        outputs=outputs,
        source=source,
        tensors=converter.tensors(mod),
        runtime=runtime(outputs),
        warnings=(*warnings, *converter.warnings),
        weight_files=weight_files,
    )


def checked(imported: Imported, samples: dict[str, np.ndarray] | None, check: bool) -> Imported:
    """Return ``imported`` after the check of its numbers, or as it is when no check is wanted."""
    import dataclasses

    from .check import check_import

    return dataclasses.replace(imported, check=check_import(imported, samples)) if check else imported
