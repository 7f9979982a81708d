"""Every family of converters, imported by name: importing this file fills ``CONVERTERS``."""

from __future__ import annotations

from . import (
    ops_activation,
    ops_conv,
    ops_deform,
    ops_detect,
    ops_elementwise,
    ops_fused,
    ops_index,
    ops_integer,
    ops_layout,
    ops_matmul,
    ops_normalise,
    ops_order,
    ops_pool,
    ops_quantise,
    ops_quantised,
    ops_recurrent,
    ops_reduce,
    ops_resize,
    ops_sample,
    ops_scatter,
    ops_sequence,
    ops_signal,
    ops_transformer,
)
from .registry import CONVERTERS

FAMILIES = (
    ops_activation, ops_conv, ops_deform, ops_detect, ops_elementwise, ops_fused, ops_index, ops_integer, ops_layout,
    ops_matmul, ops_normalise, ops_order, ops_pool, ops_quantise, ops_quantised, ops_recurrent, ops_reduce, ops_resize,
    ops_sample, ops_scatter, ops_sequence, ops_signal, ops_transformer,
)  # fmt: skip
OTHER_DOMAINS = ("com.microsoft",)

__all__ = ["CONVERTERS", "FAMILIES", "OTHER_DOMAINS"]
