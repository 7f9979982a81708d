"""All families of converters, imported explicitly."""

from __future__ import annotations

from . import ops_conv, ops_elementwise, ops_integer, ops_layout, ops_quantise, ops_window
from .registry import CONVERTERS, INTEGER, MOVERS

__all__ = ["CONVERTERS", "FAMILIES", "INTEGER", "MOVERS", "VARIABLES"]

FAMILIES = (ops_conv, ops_elementwise, ops_integer, ops_layout, ops_quantise, ops_window)
VARIABLES = frozenset({"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"})  # convert.py itself
