"""Every error that a user of xnncc can meet.

    XnnccError                    exit code 1: the user can fix it
    |-- BadModel                  the file is missing, cut, or no model
    |   |-- UnsupportedModel      operators, attributes or dtypes that cannot be built
    |   `-- ShapeError            a free dimension, a --shape that does not fit
    |-- BadTarget                 unknown target, CPU, or a target file that contradicts itself
    |-- BadInput                  a tensor given to run / verify: wrong name, shape or dtype
    |-- BadRecords                tuned records that are not there, or a merge of nothing
    |-- BadPackage                a .xnn or manifest that is cut, changed, too new, or of another library
    |-- PluginError               a --plugin that cannot be loaded, or registers what is there already
    |-- ToolchainError            no compiler, no linker, or one that failed
    |-- DeviceError               a device that is not there, or an artefact that failed on it
    |   |-- RackRefusal           the rack's broker refuses a request
    |   `-- BatchFailed           the rack has given work up
    |-- OutputError               the output folder cannot be written, the disk is full, too large for --max-kib
    |-- TuneFailed                not one candidate could be measured
    |-- ImportCheckFailed         the imported graph and the model's own runtime disagree
    |-- CompressError             a recipe that is wrong, data that does not suffice, a contract that cannot be met
    `-- VerifyFailed              the artefact and the model's own runtime disagree

Messages have three parts: what (the user's own words, quoted), why (found and expected), next (what to type).
"""

from __future__ import annotations


class XnnccError(Exception):
    """A mistake that the user can fix; ``str()`` is one sentence each of what, why and what to do next."""

    exit_code = 1

    def __init__(self, what: str, why: str = "", next: str = "") -> None:
        self.what, self.why, self.next = what, why, next
        super().__init__(what, why, next)

    def __str__(self) -> str:
        text = f"{self.what}: {self.why}" if self.why else self.what
        text = text if text.endswith((".", "?", "!")) else text + "."
        return f"{text} {self.next}".rstrip()


class BadModel(XnnccError):
    """The model file is missing, cut off, or no model."""


class UnsupportedModel(BadModel):
    """The model needs an operator, attribute or dtype that cannot be built; names all of them at once."""


class ShapeError(BadModel):
    """An input has a free dimension, or a ``--shape`` does not fit the model."""


class BadTarget(XnnccError):
    """Unknown target or CPU, or a target file that contradicts itself."""


class BadInput(XnnccError):
    """A tensor given by the user has the wrong name, shape or dtype."""


class BadRecords(XnnccError):
    """Tuned records that cannot be read, or whose folder is not there."""


class TuneFailed(XnnccError):
    """No candidate of a tuning run could be measured."""


class BadPackage(XnnccError):
    """A package or manifest is cut, changed, too new, or belongs to another library."""


class PluginError(XnnccError):
    """A plugin cannot be loaded, registers nothing, or an operator that is there already."""


class ToolchainError(XnnccError):
    """A compiler or linker is missing, or failed."""


class DeviceError(XnnccError):
    """A device is not there, or an artefact failed on it."""


class BatchFailed(DeviceError):
    """The rack gave a batch up. ``kind``: "job" (the batch is at fault), "infrastructure", "limit", "cancelled" or
    "lease" (its lease has ended)."""

    def __init__(self, what: str, why: str = "", next: str = "", *, kind: str = "") -> None:
        super().__init__(what, why, next)
        self.kind = kind


class RackRefusal(DeviceError):
    """The broker refused a request. ``status``: the HTTP status."""

    def __init__(self, what: str, why: str = "", next: str = "", *, status: int = 0) -> None:
        super().__init__(what, why, next)
        self.status = status


class OutputError(XnnccError):
    """The output cannot be written, or is larger than allowed."""


class ImportCheckFailed(XnnccError):
    """The imported graph gives other numbers than the model's own runtime."""


class CompressError(XnnccError):
    """A recipe is wrong, the data does not suffice for it, or its contract cannot be met."""


class VerifyFailed(XnnccError):
    """The artefact gives other numbers than the model's own runtime."""


def nearest(word: str, known: list[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known word closest to ``word``, or an empty string."""
    import difflib

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
