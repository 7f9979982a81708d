"""FoldPadIntoConv: move an explicit zero pad into the convolution that reads it.

    Given:                                       Result:
      y = nn.pad(x, (0,0, 0,0, t,b, l,r), 0.0)     z = nn.conv2d(x, w, padding=(t', l', b', r'))
      z = nn.conv2d(y, w, padding=p)               where t' = t + p[0], and so on

Shapes: x [N, C, H, W]; w [O, C/g, KH, KW]; pads in pixels, TVM order (top, left, bottom, right).
Why: Caffe and TensorFlow exporters write "SAME" as a separate pad, which costs one full copy of x.
Runs after: frontends.  Runs before: PlanLayouts.
"""

from __future__ import annotations

import tvm
from tvm import relax
from tvm.relax.dpl import is_op, rewrite_call, wildcard


@relax.transform.function_pass(opt_level=0, name="FoldPadIntoConv")
class FoldPadIntoConv:
    """Fold zero ``nn.pad`` into the ``padding`` attribute of NCHW ``nn.conv2d``.

    Leaves the graph alone when the pad is not zero, not "constant", negative, or touches N or C.
    """

    def __init__(self) -> None:
        self.x, self.w = wildcard(), wildcard()
        self.pad = is_op("relax.nn.pad")(self.x)
        self.conv = is_op("relax.nn.conv2d")(self.pad, self.w)

    def transform_function(self, func: relax.Function, mod: tvm.IRModule, ctx: object) -> relax.Function:
        """Return ``func`` with every foldable pad removed; never changes its signature."""

        def rewrite(call: tvm.ir.Call, found: dict) -> tvm.ir.Call:
            conv, pads = found[self.conv], _pads_of(found[self.pad])
            if pads is None or conv.attrs.data_layout != "NCHW":
                return call
            attrs = conv.attrs
            padding = [int(p) + extra for p, extra in zip(attrs.padding, pads, strict=True)]
            return relax.op.nn.conv2d(
                found[self.x], found[self.w], strides=list(attrs.strides), padding=padding,
                dilation=list(attrs.dilation), groups=int(attrs.groups), data_layout="NCHW",
                kernel_layout=attrs.kernel_layout,
            )  # fmt: skip

        return rewrite_call(self.conv, rewrite, func)


def _pads_of(pad: tvm.ir.Call) -> tuple[int, int, int, int] | None:
    """Return (top, left, bottom, right) of a zero pad of image axes, or None."""
    widths = [int(w) for w in pad.attrs.pad_width]
    if str(pad.attrs.pad_mode) != "constant" or len(widths) != 8 or any(widths[:4]) or min(widths) < 0:
        return None
    if pad.attrs.pad_value is not None and float(pad.attrs.pad_value) != 0.0:
        return None
    top, bottom, left, right = widths[4:]
    return top, left, bottom, right
