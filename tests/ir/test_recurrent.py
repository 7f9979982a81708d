"""The meaning of xnn.recurrent, against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from xnncc.ir.recurrent import ACTIVATIONS, Activation, Recurrent, activate, compute

TANH, SIGMOID = Activation("tanh"), Activation("sigmoid")


def spec(cell: str, *activations: Activation, reverse: tuple[bool, ...] = (False,), **more: object) -> Recurrent:
    return Recurrent(cell, 1, reverse, activations, (), (), **more)  # type: ignore[arg-type]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, "float32")


def test_json_gives_the_same_layer_back() -> None:
    layer = spec("lstm", SIGMOID, TANH, Activation("elu", 0.5), reverse=(False, True), clip=3.0, is_input_forget=True)
    assert Recurrent.from_json(layer.to_json()) == layer


def test_rnn_adds_up_over_time() -> None:
    """Affine with 1 and 0 is the identity: h' = x + h."""
    found = compute(
        spec("rnn", Activation("affine", 1.0)), {"x": ones(3, 1, 1), "w": ones(1, 1, 1), "r": ones(1, 1, 1)}
    )
    assert found["y"].ravel().tolist() == [1, 2, 3]
    assert found["yh"].ravel().tolist() == [3]


def test_reverse_reads_the_last_step_first() -> None:
    layer = spec("rnn", Activation("affine", 1.0), reverse=(True,))
    found = compute(layer, {"x": ones(3, 1, 1), "w": ones(1, 1, 1), "r": ones(1, 1, 1)})
    assert found["y"].ravel().tolist() == [3, 2, 1]


def test_short_sequences_keep_their_state_and_give_zeros() -> None:
    operands = {"x": ones(3, 3, 1), "w": ones(1, 1, 1), "r": ones(1, 1, 1), "h0": 5 * ones(1, 3, 1)}
    found = compute(spec("rnn", Activation("affine", 1.0)), {**operands, "lens": np.array([0, 2, 3])})
    assert found["y"][:, 0, :, 0].T.tolist() == [[0, 0, 0], [6, 7, 0], [6, 7, 8]]
    assert found["yh"].ravel().tolist() == [0, 7, 8]  # an empty one has none


def test_lstm_gates_are_i_o_f_c() -> None:
    """One step with all weights of one gate set: c = i g, h = o tanh(c)."""
    w = np.array([[[1.0], [2.0], [3.0], [4.0]]], "float32")
    found = compute(
        spec("lstm", SIGMOID, TANH, TANH), {"x": ones(1, 1, 1), "w": w, "r": np.zeros((1, 4, 1), "float32")}
    )
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    c = sigmoid(1) * np.tanh(4)
    assert found["yc"].item() == pytest.approx(c)
    assert found["yh"].item() == pytest.approx(sigmoid(2) * np.tanh(c))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sigmoid", 0.11920292), ("tanh", -0.96402758), ("relu", 0.0), ("affine", -0.5), ("leakyrelu", -1.0),
        ("thresholdedrelu", 0.0), ("scaledtanh", -0.38079708), ("hardsigmoid", 0.0), ("elu", -0.43233236),
        ("softsign", -0.66666667), ("softplus", 0.12692801),
    ],
)  # fmt: skip
def test_activations_of_minus_two(name: str, expected: float) -> None:
    assert activate(Activation(name, 0.5, 0.5), np.array(-2.0)) == pytest.approx(expected)


def test_every_activation_is_tested_above() -> None:
    assert len(ACTIVATIONS) == 11
