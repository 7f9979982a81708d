"""tie_states: an output that is an input of the next run becomes state inside the runtime (``xnncc build --state``).

    Given:  main(h, x) -> (hn, y), pair h:hn     Result: main(x, h) -> (y, hn), inputs (x), outputs (y), states (h, hn)

The function keeps all its parameters and results, states last; ``inputs`` and ``outputs`` of the import are the rest,
and its reference runtime is one that begins with states of zero, as the artefact does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import tvm
from tvm import relax

from ..errors import BadInput, nearest
from ..ir.plan import TensorInfo
from .imported import Imported, Reference

Feeds = dict[str, np.ndarray]


def tie_states(imported: Imported, pairs: Sequence[str]) -> Imported:
    """Return ``imported`` with each of ``pairs`` ("h:hn": input and output) as state; itself without new pairs.

    Raises:
        BadInput: no such input or output, one that is tied already, or two of different shapes or dtypes.
    """
    kept = {f"{before.name}:{after.name}" for before, after in imported.states}  # a TFLite file's own variables
    pairs = [text for text in pairs if text not in kept]
    if not pairs:
        return imported
    if kept:
        why = "the model keeps its own variables as state, other pairs cannot be added"
        raise BadInput(f"--state '{pairs[0]}'", why, "Leave --state out.")
    found = [_pair(imported, text) for text in pairs]
    for side in (0, 1):
        names = [pair[side].name for pair in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"--state for '{twice}'", "it is in two pairs", "Give each input and output once.")
    before, after = (tuple(pair[side] for pair in found) for side in (0, 1))
    return dataclasses.replace(
        imported,
        mod=_states_last(imported, before, after),
        inputs=tuple(info for info in imported.inputs if info not in before),
        outputs=tuple(info for info in imported.outputs if info not in after),
        states=tuple(found),
        runtime=_FromZero(imported.runtime, found),
    )


def _pair(imported: Imported, text: str) -> tuple[TensorInfo, TensorInfo]:
    """Return the tensors that ``text`` names; names may contain colons."""
    inputs, outputs = ({info.name: info for info in side} for side in (imported.inputs, imported.outputs))
    cuts = [(text[:i], text[i + 1 :]) for i, letter in enumerate(text) if letter == ":"]
    fits = [(inputs[a], outputs[b]) for a, b in cuts if a in inputs and b in outputs]
    if fits:
        before, after = fits[0]
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            why = f"the input is {list(before.shape)} {before.dtype}, the output {list(after.shape)} {after.dtype}"
            raise BadInput(f"--state '{text}'", why, "A state keeps its shape and dtype from run to run.")
        return before, after
    if not cuts:
        raise BadInput(f"--state '{text}'", "expected INPUT:OUTPUT", "Write it like --state h:hn")
    first, second = next(((a, b) for a, b in cuts if a in inputs or b in outputs), cuts[0])
    side, name, known = ("output", second, [*outputs]) if first in inputs else ("input", first, [*inputs])
    names = ", ".join(f"'{other}'" for other in known)
    raise BadInput(
        f"--state '{text}'", f"the model has no {side} '{name}'{nearest(name, known)}", f"There are: {names}."
    )


def _states_last(imported: Imported, before: tuple[TensorInfo, ...], after: tuple[TensorInfo, ...]) -> tvm.IRModule:
    """Return the module with parameters and results in the order of the package."""
    main = imported.mod["main"]
    params = _last(list(main.params), imported.inputs, before)
    fields = _last(list(main.body.body.fields), imported.outputs, after)
    result = relax.Tuple(fields)
    body = relax.SeqExpr(main.body.blocks, result)
    func = relax.Function(params, body, relax.TupleType([field.ty for field in fields]), main.is_pure, main.attrs)
    functions = {var: func if var.name_hint == "main" else other for var, other in imported.mod.functions.items()}
    return relax.transform.Normalize()(tvm.IRModule(functions))


def _last(exprs: list[relax.Expr], infos: tuple[TensorInfo, ...], last: tuple[TensorInfo, ...]) -> list[relax.Expr]:
    at = dict(zip(infos, exprs, strict=True))
    return [at[info] for info in infos if info not in last] + [at[info] for info in last]


class _FromZero:
    """A reference runtime whose states begin at zero."""

    def __init__(self, runtime: Reference, states: Sequence[tuple[TensorInfo, TensorInfo]]) -> None:
        self._runtime, self._states = runtime, states
        self._zeros = {before.name: np.zeros(before.shape, before.dtype) for before, _ in states}

    @property
    def name(self) -> str:
        """The runtime and its version, for messages."""
        return self._runtime.name

    def run(self, feeds: Feeds) -> Feeds:
        """Return the outputs of the first run, by name."""
        return self._runtime.run({**feeds, **self._zeros})

    def stream(self, steps: Sequence[Feeds]) -> list[Feeds]:
        """Return the outputs of several runs in a row: what one computes for a state is that state in the next."""
        kept, results = self._zeros, []
        for feeds in steps:
            results.append(self._runtime.run({**feeds, **kept}))
            kept = {before.name: results[-1][after.name] for before, after in self._states}
        return results

    def tensors(self, feeds: Feeds, names: Iterable[str]) -> Feeds:
        """Return intermediate tensors of the first run, by name."""
        return self._runtime.tensors({**feeds, **self._zeros}, names)
