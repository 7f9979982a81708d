"""Refused: why one node of a model cannot be taken."""

from __future__ import annotations


class Refused(Exception):
    """A node that cannot be converted: ``why`` (found and expected) and, if something helps, ``next``."""

    def __init__(self, why: str, next: str = "") -> None:
        super().__init__(why, next)
        self.why, self.next = why, next

    @property
    def sentence(self) -> str:
        """Both parts, without a full stop at the end."""
        return f"{self.why}{f'. {self.next}' if self.next else ''}".rstrip(".")
