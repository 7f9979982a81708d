"""Every family of converters, imported by name: importing this file fills ``CONVERTERS``."""

from __future__ import annotations

from . import (
    ops_activation,
    ops_conv,
    ops_elementwise,
    ops_index,
    ops_layout,
    ops_matmul,
    ops_normalise,
    ops_pool,
    ops_quantise,
    ops_recurrent,
    ops_reduce,
    ops_resize,
)
from .registry import CONVERTERS

FAMILIES = (
    ops_activation, ops_conv, ops_elementwise, ops_index, ops_layout, ops_matmul, ops_normalise, ops_pool,
    ops_quantise, ops_recurrent, ops_reduce, ops_resize,
)  # fmt: skip
OTHER_DOMAINS = ("com.microsoft",)

__all__ = ["CONVERTERS", "FAMILIES", "OTHER_DOMAINS"]
