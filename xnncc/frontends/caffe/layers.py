"""Every family of converters, imported by name: importing this file fills ``CONVERTERS``."""

from __future__ import annotations

from . import (
    layers_activation,
    layers_combine,
    layers_conv,
    layers_dense,
    layers_normalise,
    layers_pool,
    layers_reduce,
    layers_resize,
    layers_shape,
    layers_ssd,
)
from .registry import CONVERTERS

FAMILIES = (
    layers_activation, layers_combine, layers_conv, layers_dense, layers_normalise, layers_pool, layers_reduce,
    layers_resize, layers_shape, layers_ssd,
)  # fmt: skip

__all__ = ["CONVERTERS", "FAMILIES"]
