"""Recurrent layers through the whole line: one matrix product and one kernel a layer."""

from __future__ import annotations

import numpy as np
import pytest
from network_running import compile_and_run, module
from tvm import relax
from tvm.ir import StringImm

from xnncc.ir.recurrent import GATES, NAME, Activation, Recurrent, compute
from xnncc.target import Machine
from xnncc.transform.choose_recurrent import choose_tile

TANH, SIGMOID = Activation("tanh"), Activation("sigmoid")
USUAL = {"lstm": (SIGMOID, TANH, TANH), "gru": (SIGMOID, TANH), "rnn": (TANH,)}
AVX512 = Machine(lanes=16, registers=32)
TOLERANCE = 1e-5  # float32 sums in another order, polynomials instead of libm


def operands_of(cell: str, t: int, n: int, i: int, h: int, d: int = 1) -> dict[str, np.ndarray]:
    rng, g = np.random.default_rng(0), GATES[cell]
    shapes = {"x": (t, n, i), "w": (d, g * h, i), "r": (d, g * h, h), "b": (d, 2 * g * h), "h0": (d, n, h)}
    return {name: (rng.standard_normal(shape) / 2).astype("float32") for name, shape in shapes.items()}


def layer(cell: str, operands: dict[str, np.ndarray], outputs: tuple[str, ...], **more: object) -> Recurrent:
    directions, _, h = operands["r"].shape
    reverse = (False, True)[:directions]
    return Recurrent(cell, h, reverse, USUAL[cell], tuple(operands), outputs, **more)  # type: ignore[arg-type]


def run(spec: Recurrent, operands: dict[str, np.ndarray], given: tuple[str, ...] = ("x", "h0"), lanes: int = 8):
    """Compile and run the layer with ``given`` as inputs, all else as constants; returns network and worst error."""
    t, n, _ = operands["x"].shape
    types = [relax.TensorType(spec.shape(o, t, n), "float32") for o in spec.outputs]
    variables = {name: relax.Var(name, relax.TensorType(operands[name].shape, "float32")) for name in given}
    args = [variables.get(name, relax.const(a)) for name, a in operands.items()]

    def build(emit, *inputs):
        ty = types[0] if len(types) == 1 else relax.TupleType(types)
        y = emit(relax.op.call_pure_packed(NAME, *args, StringImm(spec.to_json()), ty_args=ty), "layer")
        return y if len(types) == 1 else [emit(relax.TupleGetItem(y, i), o) for i, o in enumerate(spec.outputs)]

    network = compile_and_run(module(build, *variables.values()), *(operands[name] for name in given), lanes=lanes)
    expected = compute(spec, operands)
    errors = [
        np.abs(found - expected[name]).max() / np.abs(expected[name]).max()
        for name, found in zip(spec.outputs, network.outputs, strict=True)
    ]
    return network, max(errors)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("cell", USUAL)
def test_layer_is_one_product_and_one_kernel(cell: str, lanes: int) -> None:
    operands = operands_of(cell, 5, 3, 6, 21, d=2)
    network, error = run(layer(cell, operands, ("y", "yh")), operands, lanes=lanes)
    assert network.rules == ["gemm", "recurrent"]
    assert error < TOLERANCE


def test_one_step_of_one_sequence_is_a_gemv() -> None:
    operands = operands_of("lstm", 1, 1, 6, 21)
    network, error = run(layer("lstm", operands, ("yh",)), operands)
    assert network.rules == ["gemv", "recurrent"]
    assert error < TOLERANCE


@pytest.mark.parametrize("cell", USUAL)
def test_weights_may_be_inputs(cell: str) -> None:
    operands = operands_of(cell, 2, 2, 3, 5)
    _, error = run(layer(cell, operands, ("y",)), operands, given=tuple(operands))
    assert error < TOLERANCE


def test_recurrent_bias_of_a_linear_gru_stands_apart() -> None:
    operands = operands_of("gru", 3, 2, 3, 5)
    spec = layer("gru", operands, ("y",), is_linear_before_reset=True)
    for given in (("x",), tuple(operands)):
        _, error = run(spec, operands, given=given)
        assert error < TOLERANCE


@pytest.mark.parametrize("machine", [Machine(lanes=4, registers=32), Machine(lanes=8, registers=16), AVX512])
@pytest.mark.parametrize("hidden", [1, 64, 100, 128, 512])
@pytest.mark.parametrize("batch", [1, 2, 7, 16])
def test_tile_fits_the_registers(machine: Machine, hidden: int, batch: int) -> None:
    for cell, activations in USUAL.items():
        tile = choose_tile(Recurrent(cell, hidden, (False,), activations, (), ()), batch, machine)
        assert tile.blocks * machine.lanes >= hidden
        assert batch % tile.rows == 0
        for g, gates in zip(tile.groups, {"lstm": [4], "gru": [2, 1], "rnn": [1]}[cell], strict=True):
            assert tile.blocks % g == 0
            assert g * gates * tile.rows < machine.registers


def test_lengths_forbid_tiles_of_several_sequences() -> None:
    spec = Recurrent("lstm", 64, (False,), USUAL["lstm"], ("lens",), ())
    assert choose_tile(spec, 8, AVX512).rows == 1
