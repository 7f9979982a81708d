"""CancelTransposes: move ``permute_dims`` down through the graph until it meets its inverse, or the end.

    Given:                                         Result:
      x1 = permute_dims(x, [0, 3, 1, 2])             x1 = permute_dims(x, [0, 3, 1, 2])
      c  = nn.conv2d(x1, w)                          c  = nn.conv2d(x1, w)
      y  = permute_dims(c, [0, 2, 3, 1])             z  = nn.relu(add(c, b'))        b' [1, C, 1, 1]
      z  = nn.relu(add(y, b))            b [C]       d  = nn.conv2d(z, v)
      z1 = permute_dims(z, [0, 3, 1, 2])
      d  = nn.conv2d(z1, v)

Shapes: any; NHWC and NCHW are the usual pair. A flattened image that only feeds matrix products with constant weights
is not moved at all: the rows of the weights are.
Why: TensorFlow's graphs, and ONNX files that came from it, are NHWC, and convolutions here are NCHW.
Runs after: CanonicalizeBindings.  Runs before: FoldPadIntoConv (which wants NCHW pads) and PlanLayouts.
"""

from __future__ import annotations

from math import prod

import numpy as np
import tvm
from tvm import relax

from .move_transposes import Mover


@relax.transform.function_pass(opt_level=0, name="CancelTransposes")
class CancelTransposes:
    """Remove pairs of ``permute_dims`` with nothing but movable operators between them.

    Leaves the function alone when that would not make fewer elements move. Keeps the names of the variables that stay
    as they are; one that is now computed with its axes in another order is called ``<tensor>@<axes>``.
    """

    def transform_function(self, func: relax.Function, mod: tvm.IRModule, ctx: object) -> relax.Function:
        """Return ``func`` with fewer transpositions; never changes its signature."""
        if not _moved_elements(func):
            return func
        moved = Mover().function(func)
        return moved if _moved_elements(moved) < _moved_elements(func) else func


def _moved_elements(func: relax.Function) -> int:
    """Return how many elements all ``permute_dims`` of activations write that are more than a change of shape."""
    total = 0
    for block in func.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if isinstance(call, tvm.ir.Call) and getattr(call.op, "name", "") == "relax.permute_dims":
                shape = [int(d) for d in call.args[0].ty.shape]
                order = [int(a) for a in call.attrs.axes] if call.attrs.axes is not None else [*range(len(shape))][::-1]
                real = [a for a in order if shape[a] != 1]
                if real != sorted(real) and not isinstance(call.args[0], tvm.ir.GenericConst):
                    total += int(np.int64(prod(shape)))
    return total
