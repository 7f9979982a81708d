"""The exact network transform before compression: the same function with fewer and folded weights.

The passes of ``prepare`` run first; a build runs them in any case, and compression must see what they leave.
"""

from __future__ import annotations

import tvm

from .fold_affine import fold_affine
from .pipeline import prepare

SIMPLIFY = (
    fold_affine,  # batch norms into weights: what is rounded is what is multiplied with
)


def simplify(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` simplified, with the same numbers but for rounding."""
    mod = prepare(mod)
    for step in SIMPLIFY:
        mod = step(mod)
    return mod
