"""Flow: a tensor that is computed at run time, kept as NHWC (as TFLite has it) or NCHW (as convolutions want it).

A convolution leaves its result as NCHW and elementwise operators take what they get, so transpositions stand only
where a network really mixes the two. Either form is made once and kept.
"""

from __future__ import annotations

from tvm import relax
from tvm.relax import Expr

from ..network import NetworkBuilder, shape_of

TO_NCHW = (0, 3, 1, 2)
TO_NHWC = (0, 2, 3, 1)


class Flow:
    """``expr`` in the form in which it was computed: NCHW when ``is_planar``."""

    def __init__(self, expr: Expr, is_planar: bool = False) -> None:
        self.expr, self.is_planar = expr, is_planar
        self._other: Expr | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape as TFLite knows it."""
        shape = shape_of(self.expr)
        return tuple(shape[i] for i in TO_NHWC) if self.is_planar else shape

    def logical(self, build: NetworkBuilder) -> Expr:
        """Return the tensor as TFLite knows it."""
        return self._in(build, TO_NHWC) if self.is_planar else self.expr

    def planar(self, build: NetworkBuilder) -> Expr:
        """Return an image [N, H, W, C] as [N, C, H, W]."""
        return self.expr if self.is_planar else self._in(build, TO_NCHW)

    def _in(self, build: NetworkBuilder, order: tuple[int, ...]) -> Expr:
        if self._other is None:
            _, h, w, c = self.shape
            if c == 1 or h * w == 1:  # the elements lie in the same order in both forms
                shape = shape_of(self.expr)
                self._other = build.emit(relax.op.reshape(self.expr, tuple(shape[i] for i in order)))
            else:
                self._other = build.emit(relax.op.permute_dims(self.expr, order))
        return self._other
