"""Why a layer cannot be taken: Refused when it is beyond what is supported, Broken when the files contradict Caffe."""

from __future__ import annotations


class Refused(Exception):
    """A layer that cannot be converted: ``why`` (found and expected) and, if something helps, ``next``."""

    def __init__(self, why: str, next: str = "") -> None:
        super().__init__(why, next)
        self.why, self.next = why, next


class Broken(Refused):
    """A layer that Caffe would not take either: a missing or misshapen blob, operands that do not fit."""
