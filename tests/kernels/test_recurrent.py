"""Recurrent kernels against ``ir/recurrent.py``, at sizes around the register tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_running import MACHINES, random, relative_error, run_all

from xnncc.ir.recurrent import ACTIVATIONS, GATES, Activation, Recurrent, compute
from xnncc.kernels.recurrent import CELLS, Tile, f32_recurrent, phases_of
from xnncc.schedule import schedule_kernel

# Polynomials instead of libm, and sums in another order, fed back over a few steps.
TOLERANCE = 2e-6
TANH, SIGMOID = Activation("tanh"), Activation("sigmoid")
USUAL = {"lstm": (SIGMOID, TANH, TANH), "gru": (SIGMOID, TANH), "rnn": (TANH,)}


def padded(array: np.ndarray, units: int) -> np.ndarray:
    """Return ``array`` with its last axis filled up with zeros."""
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, units - array.shape[-1])])


def check(cell: str, t: int, n: int, hidden: int, tile: Tile, v: int = 8, names: tuple[str, ...] = (), **more: Any):
    """Run one layer of ``hidden`` units, 3 inputs, and compare every output."""
    reverse = more.pop("reverse", (False,))
    outputs = more.pop("outputs", ("y", "yh", "yc") if cell == "lstm" else ("y", "yh"))
    activations = more.pop("activations", USUAL[cell])
    d, gates, units = len(reverse), GATES[cell], tile.blocks * v
    spec = Recurrent(cell, hidden, reverse, activations, ("x", "w", "r", "b", *names), outputs, **more)
    shapes = {
        "x": (t, n, 3), "w": (d, gates * hidden, 3), "r": (d, gates * hidden, hidden), "b": (d, 2 * gates * hidden),
        "p": (d, 3 * hidden), "h0": (d, n, hidden), "c0": (d, n, hidden),
    }  # fmt: skip
    given = {name: random(i, *shape) / 2 for i, (name, shape) in enumerate(shapes.items())}
    given["lens"] = (np.arange(n) % (t + 1)).astype("int32")
    operands = {name: given[name] for name in spec.operands}
    bias = given["b"].reshape(d, 2, gates, hidden)
    added = bias.sum(1)
    if spec.is_linear_before_reset:
        added[:, 2] = bias[:, 0, 2]
    pre = np.einsum("tni,dghi->tndgh", given["x"], given["w"].reshape(d, gates, hidden, 3)) + added
    args = [padded(pre, units).reshape(t, n, d, gates, tile.blocks, v)]
    r = given["r"].reshape(d, gates, hidden, hidden).transpose(0, 1, 3, 2)  # [D, G, in, out]
    for phase, g in zip(phases_of(spec), tile.groups, strict=True):
        part = padded(r[:, list(phase.gates)], units).reshape(d, len(phase.gates), hidden, tile.blocks // g, g, v)
        args.append(part.transpose(0, 3, 2, 1, 4, 5).reshape(d, tile.blocks // g, hidden, -1, v))
    if spec.is_linear_before_reset:
        args.append(padded(bias[:, 1, 2], units).reshape(d, tile.blocks, v))
    if "p" in names:
        args.append(padded(given["p"].reshape(d, 3, hidden), units).reshape(d, 3, tile.blocks, v))
    args += [given[name] for name in ("h0", "c0", "lens") if name in names]
    scheduled = schedule_kernel(f32_recurrent(spec, t, n, tile, v), MACHINES[v])
    assert scheduled.rule == "recurrent"
    expected = compute(spec, operands)
    for name, found in zip(outputs, run_all(scheduled.func, *args), strict=True):
        assert relative_error(found, expected[name]) < TOLERANCE, name


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("hidden", "blocks"), [(1, 1), (7, 1), (8, 1), (9, 2), (16, 2), (19, 4)])
def test_units_around_the_lanes(cell: str, hidden: int, blocks: int) -> None:
    g = 2 if blocks % 2 == 0 else 1
    check(cell, 3, 1, hidden, Tile(blocks, 1, (g,) * (2 if cell == "gru" else 1)))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_steps(cell: str, steps: int) -> None:
    check(cell, steps, 1, 8, Tile(1, 1, (1,) * (2 if cell == "gru" else 1)), names=("h0",))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("batch", "rows"), [(2, 1), (2, 2), (6, 3)])
def test_sequences_and_directions(cell: str, batch: int, rows: int) -> None:
    groups = (1,) * (2 if cell == "gru" else 1)
    check(cell, 4, batch, 13, Tile(2, rows, groups), reverse=(False, True), names=("h0",))
    check(cell, 4, batch, 13, Tile(4, rows, groups), v=4, reverse=(True,))


def test_large_layers_run_in_parallel() -> None:
    check("lstm", 10, 2, 64, Tile(8, 1, (2,)), reverse=(False, True))


@pytest.mark.parametrize("cell", CELLS)
def test_lengths(cell: str) -> None:
    """0 to 4 of 4 steps, in both directions."""
    check(cell, 4, 5, 11, Tile(2, 1, (1,) * (2 if cell == "gru" else 1)), reverse=(False, True), names=("h0", "lens"))


def test_gru_linear_before_reset() -> None:
    check("gru", 4, 2, 11, Tile(2, 2, (1,)), names=("h0",), is_linear_before_reset=True)


@pytest.mark.parametrize("more", [{}, {"is_input_forget": True}, {"clip": 0.3}])
def test_lstm_with_peepholes(more: dict) -> None:
    check("lstm", 4, 2, 11, Tile(2, 2, (1,)), names=("p", "h0", "c0"), **more)


@pytest.mark.parametrize("outputs", [("y",), ("yh",), ("yc",), ("y", "yc"), ("yh", "yc")])
def test_any_outputs(outputs: tuple[str, ...]) -> None:
    check("lstm", 3, 1, 9, Tile(2, 1, (1,)), outputs=outputs)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    check("rnn", 3, 1, 8, Tile(1, 1, (1,)), activations=(Activation(name, 0.5, 0.25),))
    if name == "relu":
        check("rnn", 3, 1, 8, Tile(1, 1, (1,)), activations=(Activation(name),), clip=0.5)
