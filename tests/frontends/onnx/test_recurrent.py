"""LSTM, GRU and RNN against onnxruntime, each attribute and input; and ONNX's own cases through the whole line."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import const, random

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
T, N, SIZE, H = 4, 3, 5, 6
TOLERANCE = 5e-6  # float32 sums in another order, fed back over the steps


def weights(operator: str, directions: int = 1) -> list[const]:
    g, d = GATES[operator], directions
    return [
        const(random(*shape, seed=i) / 2) for i, shape in enumerate([(d, g * H, SIZE), (d, g * H, H), (d, 2 * g * H)])
    ]


def state(seed: int, directions: int = 1) -> np.ndarray:
    return random(directions, N, H, seed=seed)


def outputs(operator: str) -> int:
    return 3 if operator == "LSTM" else 2


def layer(matches: Callable, operator: str, *more: Any, directions: int = 1, **attributes: Any):
    """Import one layer with initial inputs ``more`` after B, all outputs wanted."""
    x = random(T, N, SIZE, seed=9)
    attributes = {"hidden_size": H, "outputs": outputs(operator), "tolerance": TOLERANCE, **attributes}
    return matches(operator, x, *weights(operator, directions), *more, **attributes)


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_directions(matches: Callable, operator: str, direction: str) -> None:
    layer(matches, operator, direction=direction, directions=2 if direction == "bidirectional" else 1)


@pytest.mark.parametrize("operator", GATES)
def test_without_bias(matches: Callable, operator: str) -> None:
    matches(operator, random(T, N, SIZE), *weights(operator)[:2], hidden_size=H, tolerance=TOLERANCE)


@pytest.mark.parametrize("operator", GATES)
def test_initial_state_at_run_time(matches: Callable, operator: str) -> None:
    layer(matches, operator, None, *[state(i) for i in range(outputs(operator) - 1)])


@pytest.mark.parametrize("operator", GATES)
def test_initial_state_as_a_weight(matches: Callable, operator: str) -> None:
    layer(matches, operator, None, *[const(state(i)) for i in range(outputs(operator) - 1)])


def test_a_zero_state_is_left_out(matches: Callable) -> None:
    zero = const(np.zeros((1, N, H), "float32"))
    assert '"operands": ["x", "w", "r", "b"]' in layer(matches, "LSTM", None, zero, zero).mod.script().replace("\\", "")


@pytest.mark.parametrize("operator", GATES)
@pytest.mark.parametrize("is_const", [True, False])
def test_sequence_lens(matches: Callable, operator: str, is_const: bool) -> None:
    """Shorter ones, in both directions, an empty one too."""
    lens = np.array([T, 2, 0], "int32")
    given = const(lens) if is_const else lens
    states = [state(i, 2) for i in range(outputs(operator) - 1)]
    layer(matches, operator, given, *states, directions=2, direction="bidirectional")


@pytest.mark.parametrize("operator", GATES)
def test_clip(matches: Callable, operator: str) -> None:
    layer(matches, operator, clip=0.4)


def test_linear_before_reset(matches: Callable) -> None:
    layer(matches, "GRU", linear_before_reset=1, direction="bidirectional", directions=2)


def test_peepholes(matches: Callable) -> None:
    peepholes = const(random(1, 3 * H, seed=7))
    layer(matches, "LSTM", None, state(1), state(2), peepholes)
    layer(matches, "LSTM", None, state(1), state(2), peepholes, clip=0.5)


def test_input_forget(matches: Callable) -> None:
    layer(matches, "LSTM", None, state(1), state(2), input_forget=1)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("Relu", {}), ("Softsign", {}), ("Softplus", {}), ("LeakyRelu", {"activation_alpha": [0.3]}), ("LeakyRelu", {}),
        ("Elu", {"activation_alpha": [0.7]}), ("HardSigmoid", {"activation_alpha": [0.3], "activation_beta": [0.4]}),
        ("HardSigmoid", {}), ("ThresholdedRelu", {"activation_alpha": [0.1]}),
        ("ScaledTanh", {"activation_alpha": [0.8], "activation_beta": [0.6]}),
        ("Affine", {"activation_alpha": [0.3], "activation_beta": [0.1]}),
    ],
)  # fmt: skip
def test_activations(matches: Callable, name: str, numbers: dict[str, list[float]]) -> None:
    layer(matches, "RNN", activations=[name], **numbers)


def test_numbers_go_to_the_activations_that_take_some(matches: Callable) -> None:
    names = ["HardSigmoid", "Tanh", "LeakyRelu"]
    layer(matches, "LSTM", activations=names, activation_alpha=[0.3, 0.2], activation_beta=[0.4])


@pytest.mark.parametrize("operator", ["GRU", "RNN"])
def test_directions_with_different_activations(matches: Callable, operator: str) -> None:
    names = ["Sigmoid", "Tanh", "HardSigmoid", "Softsign"] if operator == "GRU" else ["Tanh", "Softsign"]
    more = None, state(1, 2)
    layer(matches, operator, *more, directions=2, direction="bidirectional", activations=names)


@pytest.mark.parametrize("operator", GATES)
def test_batch_first(matches: Callable, operator: str) -> None:
    states = [random(N, 2, H, seed=i) for i in range(outputs(operator) - 1)]
    args = [random(N, T, SIZE, seed=9), *weights(operator, 2), None, *states]
    attributes: dict[str, Any] = {"direction": "bidirectional", "layout": 1, "hidden_size": H}
    matches(operator, *args, outputs=outputs(operator), tolerance=TOLERANCE, **attributes)


def test_a_single_output(matches: Callable) -> None:
    assert len(layer(matches, "LSTM", outputs=1).outputs) == 1


def test_weights_as_inputs(matches: Callable) -> None:
    given = [weight.array() for weight in weights("LSTM")]
    matches("LSTM", random(T, N, SIZE), *given, hidden_size=H, tolerance=TOLERANCE)


def test_refuses_an_unknown_activation(refuses: Callable) -> None:
    said = refuses("RNN", random(T, N, SIZE), *weights("RNN"), hidden_size=H, activations=["Sine"])
    assert "activation 'sine' is not supported" in said


def test_refuses_weights_that_do_not_fit(refuses: Callable) -> None:
    w, r, _ = weights("GRU")
    said = refuses("LSTM", random(T, N, SIZE), w, r, hidden_size=H)
    assert f"input 1 is [1, {3 * H}, {SIZE}], expected [1, {4 * H}, {SIZE}]" in said


@cache
def _node_tests() -> dict[str, Any]:
    from onnx.backend.test.loader import load_model_tests

    wanted = ("test_lstm", "test_gru", "test_rnn", "test_simple_rnn")
    return {case.name: case for case in load_model_tests(kind="node") if case.name.startswith(wanted)}


NODE_TESTS = [
    "test_gru_batchwise", "test_gru_bidirectional", "test_gru_defaults", "test_gru_reverse", "test_gru_seq_length",
    "test_gru_with_initial_bias", "test_lstm_batchwise", "test_lstm_bidirectional", "test_lstm_defaults",
    "test_lstm_reverse", "test_lstm_with_initial_bias", "test_lstm_with_peepholes", "test_rnn_seq_length",
    "test_simple_rnn_batchwise", "test_simple_rnn_bidirectional", "test_simple_rnn_defaults",
    "test_simple_rnn_reverse", "test_simple_rnn_with_initial_bias",
]  # fmt: skip


@pytest.mark.parametrize("name", NODE_TESTS)
def test_onnx_own_case_on_the_host(name: str, tmp_path: Path) -> None:
    """Import, build, C runtime; within the loader's own rtol 1e-3."""
    case = _node_tests().get(name)
    if case is None:
        pytest.skip(f"this onnx has no case '{name}'")
    _run_case(case, "host", tmp_path)


def _run_case(case: Any, target: str, folder: Path) -> None:
    from xnncc.build import build
    from xnncc.device import open_device

    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    result = build(folder / "model.onnx", target, folder / "built")
    device = open_device(None, result.manifest)
    for given, expected in case.data_sets:
        found = device.run(result.directory, [np.asarray(x) for x in given])
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=case.rtol, atol=1e-6)
