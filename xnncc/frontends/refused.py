"""Refused: why one node of a model cannot be taken, in every format."""

from __future__ import annotations

# What TVM and numpy raise about operands that do not fit; a subclass of RuntimeError is TVM's own.
MISFITS = (ValueError, TypeError, RuntimeError, IndexError, ArithmeticError)


class Refused(Exception):
    """A node that cannot be converted: ``why`` (found and expected) and, if something helps, ``next``."""

    def __init__(self, why: str, next: str = "") -> None:
        super().__init__(why, next)
        self.why, self.next = why, next

    @property
    def sentence(self) -> str:
        """Both parts, without a full stop at the end."""
        return f"{self.why}{f'. {self.next}' if self.next else ''}".rstrip(".")


def last_line(error: Exception) -> str:
    """Return what an error of TVM or numpy says in the end, where the reason stands; at most 200 characters."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return lines[-1][-200:] if lines else type(error).__name__
