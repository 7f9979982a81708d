"""What a package holds of the weights, and what reports say of those that are coded. Free of TVM."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any


@dataclass(frozen=True)
class CodedLayer:
    """One coded weight in the package."""

    name: str  # of the tensor that its reader computes
    shape: tuple[int, ...]
    coder: str
    size: int  # bytes

    @property
    def bits(self) -> float:
        """Bits for each weight."""
        return round(8 * self.size / prod(self.shape), 3)

    def document(self) -> dict[str, Any]:
        """Return what the manifest and the report say."""
        return {
            "name": self.name, "shape": [*self.shape], "coder": self.coder, "bytes": self.size,
            "bits_per_weight": self.bits,
        }  # fmt: skip


@dataclass(frozen=True)
class StoredWeights:
    """``data`` of ``WGHT``; ``blob_bytes`` as in ``pack.Package``. ``left`` says of each coded weight that is stored as
    floats all the same, why."""

    data: bytes
    blob_bytes: int | None = None
    layers: tuple[CodedLayer, ...] = ()
    left: tuple[str, ...] = ()
