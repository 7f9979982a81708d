"""The check of a recurrent layer that comes from a file: its specification and the shapes of its operands."""

from __future__ import annotations

from collections.abc import Sequence

from .recurrent import ACTIVATIONS, GATES, OPERANDS, OUTPUTS, Recurrent


def check_recurrent(spec: Recurrent, shapes: Sequence[tuple[int, ...]]) -> None:
    """Compare ``shapes``, one for each of ``spec.operands``, with what the layer's layout asks for.

    Raises: ValueError.
    """
    names = list(spec.operands)
    if spec.cell not in GATES or len(set(names)) != len(names) or not {"x", "w", "r"} <= set(names) <= set(OPERANDS):
        raise ValueError(f"no recurrent layer of cell {spec.cell!r} with operands {names}")
    if not spec.outputs or not set(spec.outputs) <= set(OUTPUTS) or len(shapes) != len(names):
        raise ValueError(f"recurrent outputs {spec.outputs}, {len(shapes)} operands")
    if any(one.name not in ACTIVATIONS for one in spec.activations):
        raise ValueError("an unknown activation in a recurrent layer")
    x = shapes[names.index("x")]
    if len(x) != 3 or spec.hidden < 1:
        raise ValueError(f"recurrent input {list(x)}, {spec.hidden} units")
    directions, rows, units = len(spec.reverse), spec.gates * spec.hidden, spec.hidden
    state = (directions, x[1], units)
    wanted = {
        "x": x, "w": (directions, rows, x[2]), "r": (directions, rows, units), "b": (directions, 2 * rows),
        "p": (directions, 3 * units), "h0": state, "c0": state, "lens": (x[1],),
    }  # fmt: skip
    for name, shape in zip(names, shapes, strict=True):
        if tuple(shape) != wanted[name]:
            raise ValueError(f"recurrent operand {name} is {list(shape)}, the layer needs {list(wanted[name])}")
