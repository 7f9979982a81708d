"""Recurrent layers: the kernel is written with its schedule (``kernels/recurrent.py``), so it stays as it is.

Its register tile is chosen where its weights are packed for it (``transform/choose_recurrent.py``).
"""

from __future__ import annotations

from tvm.s_tir.schedule import SBlockRV, Schedule

from ..target import Machine

NAME = "recurrent"


def space(n: dict[str, int], machine: Machine) -> list[None]:
    """Return the one configuration there is."""
    return [None]


def apply(sch: Schedule, block: SBlockRV, n: dict[str, int], machine: Machine, cfg: None) -> None:
    """Leave the kernel as it was written."""
