"""TensorList: what TensorArrays and TensorLists hold, at import and in the numpy runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MAX_ITEMS = 4096


@dataclass(frozen=True)
class TensorList:
    """One value for each element, None where nothing was written."""

    items: tuple[Any, ...]
