"""One build under way: what was asked for, and what the stages have made so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .ir.placement import CodedTable
from .target import Target

if TYPE_CHECKING:
    import numpy as np

    from .codegen.emit import Emitted
    from .frontends.imported import Imported
    from .ir.stored import StoredWeights
    from .schedule.records import Records
    from .transform.pipeline import LoweredGraph

Progress = Callable[[str, int, int], None]


@dataclass
class Variant:
    """The network for one choice of its inputs' shapes. A network without a choice is one variant."""

    imported: Imported
    mod: Any  # the IRModule as the last stage left it
    macs: dict[str, int] = field(default_factory=dict)
    graph: LoweredGraph = field(init=False)
    kernels: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass
class Job:
    """What ``build`` hands from stage to stage."""

    model: Path
    target: Target
    folder: Path  # written aside; renamed to the real one at the end
    shapes: Sequence[Mapping[str, tuple[int, ...]]]  # of each variant, by input
    samples: Mapping[str, np.ndarray] | None
    weights: Path | None
    max_kib: int | None
    bindings: tuple[str, ...]
    verify: bool
    exact: bool
    jobs: int
    progress: Progress
    records: Path | None = None  # a folder of tuned records; None: those shipped for the target
    states: tuple[str, ...] = ()
    fixed: Mapping[str, np.ndarray] = field(default_factory=dict)
    nms_rows: int | None = None
    plugins: tuple[Path, ...] = ()
    dump: Path | None = None
    variants: list[Variant] = field(default_factory=list)
    tuned: Records = field(init=False)
    coded: CodedTable = field(default_factory=CodedTable)  # weights that the model has as integers
    coded_names: dict[str, str] = field(default_factory=dict)  # digest -> the tensor that its reader computes
    stored: StoredWeights = field(init=False)
    emitted: Emitted = field(init=False)
    manifest: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    facts: dict[str, str | int | float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The model's name in file names and symbols."""
        return self.model.stem

    @property
    def imported(self) -> Imported:
        """The first variant after import: names, states and source are the same in all."""
        return self.variants[0].imported

    def warn(self, *texts: str) -> None:
        """Add warnings; what another variant has said already is not said again."""
        self.warnings += [text for text in dict.fromkeys(texts) if text not in self.warnings]
