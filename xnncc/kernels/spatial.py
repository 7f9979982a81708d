"""The geometry of a sliding window and the padded copy of its input, shared by convolution and pooling."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te, tirx
from tvm.tirx import Expr

from . import rule


@dataclass(frozen=True)
class Window:
    """A window over an image, all in pixels.

    ``padding`` is (top, left, bottom, right); ``spread`` > 1 puts spread - 1 zeros between neighbouring input pixels
    (the input side of a transposed convolution); ``out`` is (OH, OW).
    """

    image: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]
    out: tuple[int, int]
    dilation: tuple[int, int] = (1, 1)
    spread: tuple[int, int] = (1, 1)

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width that the windows cover, from the first padded row to the last one read."""
        return (
            (self.out[0] - 1) * self.stride[0] + (self.kernel[0] - 1) * self.dilation[0] + 1,
            (self.out[1] - 1) * self.stride[1] + (self.kernel[1] - 1) * self.dilation[1] + 1,
        )

    @property
    def is_pointwise(self) -> bool:
        """Whether every window is the pixel itself."""
        return self.kernel == (1, 1) and self.stride == (1, 1) and not self.needs_pad

    @property
    def needs_pad(self) -> bool:
        """Whether some window reads outside the image."""
        (h, w), (ph, pw), (top, left, _, _) = self.image, self.padded, self.padding
        return bool(top or left or ph > h or pw > w or self.spread != (1, 1))


def padded_input(x: te.Tensor, win: Window, fill: Expr) -> te.Tensor:
    """Return packed ``x`` [N, CB, H*W, v] as [N, CB, PH, PW, v] with ``fill`` outside the image and between pixels."""
    n, cb, _, v = (int(d) for d in x.shape)
    (h, w), (ph, pw), (top, left, _, _), (sy, sx) = win.image, win.padded, win.padding, win.spread

    def pixel(b: Expr, c: Expr, y: Expr, z: Expr, i: Expr) -> Expr:
        yy, zz = y - top, z - left
        inside = [y >= top, yy < (h - 1) * sy + 1, z >= left, zz < (w - 1) * sx + 1]
        if sy > 1:
            inside.append(tirx.floormod(yy, sy) == 0)
        if sx > 1:
            inside.append(tirx.floormod(zz, sx) == 0)
        return tirx.if_then_else(tirx.all(*inside), x[b, c, tirx.floordiv(yy, sy) * w + tirx.floordiv(zz, sx), i], fill)

    return te.compute((n, cb, ph, pw, v), pixel, "pad", attrs=rule("pad"))
