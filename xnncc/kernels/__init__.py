"""Operators that xnncc defines itself, in TE.

Activations of convolutional networks are packed ``[N, C/v, H*W, v]``: v channels, the lanes of one vector register,
stand next to each other; the spatial axes stay one long axis, so that 1x1 convolutions, elementwise kernels and
concatenation see whole rows of any length. Height and width live in the planner (``transform/plan_layouts.py``).

The main block of a kernel carries ``xnn.rule`` and the numbers its schedule rule needs as block annotations: they
survive FuseOps and FuseTIR, which make new functions and drop the attributes of the old ones.
"""

from __future__ import annotations


def rule(name: str, **numbers: int) -> dict[str, object]:
    """Return the block annotations that choose schedule rule ``name`` and hand it ``numbers``."""
    return {"xnn.rule": name, **{f"xnn.{key}": int(value) for key, value in numbers.items()}}
