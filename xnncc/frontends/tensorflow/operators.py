"""Every family of converters, imported by name: importing this file fills ``CONVERTERS``."""

from __future__ import annotations

from . import (
    ops_activation,
    ops_batch,
    ops_conv,
    ops_elementwise,
    ops_index,
    ops_layout,
    ops_list,
    ops_matmul,
    ops_pool,
    ops_reduce,
    ops_resize,
)
from .registry import CONVERTERS

FAMILIES = (
    ops_activation, ops_batch, ops_conv, ops_elementwise, ops_index, ops_layout, ops_list, ops_matmul, ops_pool,
    ops_reduce, ops_resize,
)  # fmt: skip

__all__ = ["CONVERTERS", "FAMILIES"]
