"""The exact network transform before compression: the same function with fewer and folded weights, and less work.

The passes of ``prepare`` run first; a build runs them in any case, and compression must see what they leave. Those here
make new weights, of which a build that was given integers would lose the integers.
"""

from __future__ import annotations

import tvm

from .collapse_linear_chains import collapse_linear_chains
from .drop_dead_branches import drop_dead_branches
from .fold_affine import fold_affine
from .merge_parallel_convs import merge_parallel_convs
from .pipeline import prepare

SIMPLIFY = (
    drop_dead_branches,  # before all: nothing below need look at what is never read
    fold_affine,  # batch norms into weights: what is rounded is what is multiplied with
    merge_parallel_convs,  # after fold_affine, which leaves one bias behind each convolution
    collapse_linear_chains,  # after merges, which leave fewer and longer chains
)


def simplify(mod: tvm.IRModule) -> tvm.IRModule:
    """Return ``mod`` simplified, with the same numbers but for rounding."""
    mod = prepare(mod)
    for step in SIMPLIFY:
        mod = step(mod)
    return mod
