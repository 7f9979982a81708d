"""Broken: why a layer cannot be taken when the files contradict Caffe, where Refused is beyond what is supported."""

from __future__ import annotations

from ..refused import Refused


class Broken(Refused):
    """A layer that Caffe would not take either: a missing or misshapen blob, operands that do not fit."""
