"""verify: which inputs are fed, what is compared with what, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xnncc.compare import Difference
from xnncc.ir.plan import TensorInfo
from xnncc.verify import VerifyResult, verify_imported

F = np.float32


def _region(shape: list[int], layout: str = "plain") -> dict[str, Any]:
    return {"space": "arena", "offset": 0, "size": 0, "shape": shape, "dtype": "float32", "layout": layout}


def _op(index: int, source: list[str], *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"index": index, "kernel": f"kernel{index}", "rule": "rule", "source": source, "outputs": list(outputs)}


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A manifest, a model and a device of the test's making, in the places where verify looks."""
    made = SimpleNamespace(
        manifest={
            "inputs": [{"name": "x", "shape": [2], "dtype": "float32"}],
            "outputs": [{"name": "y", "shape": [2], "dtype": "float32"}],
            "ops": [],
        },
        sets=[{"x": np.zeros(2, F)}],
        run=lambda inputs: [inputs[0] + 1],
        tensors={},
        traced=[],
    )
    imported = SimpleNamespace(
        mod=None,
        source=Path("m.onnx"),
        inputs=(TensorInfo("x", (2,), "float32"),),
        outputs=(TensorInfo("y", (2,), "float32"),),
        states=(),
        reference_stream=lambda steps: [{"y": feeds["x"] + 1} for feeds in steps],
        reference_tensors=lambda feeds, names: {n: made.tensors[n] for n in names if n in made.tensors},
    )
    device = SimpleNamespace(
        name="host",
        run_stream=lambda folder, steps: [made.run(inputs) for inputs in steps],
        trace=lambda folder, inputs, ops: enumerate(made.traced),
    )
    monkeypatch.setattr("xnncc.pack.read_manifest", lambda folder: made.manifest)
    monkeypatch.setattr("xnncc.device.open_device", lambda spec, manifest: device)
    monkeypatch.setattr("xnncc.frontends.sample_inputs.random_inputs", lambda mod, inputs, seed=0: made.sets)
    made.imported, made.device = imported, device
    made.verify = lambda **flags: verify_imported(imported, Path("net"), **flags)
    yield made


def test_passes_when_the_numbers_agree(setting: SimpleNamespace) -> None:
    result = setting.verify()
    assert result.passed
    assert result.data == "random input"
    assert result.summary == "largest relative difference 0.0e+00, tolerance 0.0001"


def test_every_random_set_is_run_and_the_worst_is_told(setting: SimpleNamespace) -> None:
    setting.sets = [{"x": np.zeros(2, F)}, {"x": np.ones(2, F)}]
    setting.run = lambda inputs: [inputs[0] + 1 + (0.5 if inputs[0][0] == 1 else 0)]
    result = setting.verify()
    assert not result.passed
    assert result.outputs[0].max_relative == 0.25
    assert result.summary == "output 'y': relative difference 2.5e-01, at [0]: 2.5 instead of 2.0"


def test_given_samples_are_used_alone(setting: SimpleNamespace) -> None:
    seen = []
    setting.run = lambda inputs: [seen.append(inputs[0]) or inputs[0] + 1]
    result = setting.verify(samples={"x": np.full(2, 7, F)})
    assert result.data == "the given samples"
    assert [array.tolist() for array in seen] == [[7, 7]]


def test_layers_compare_the_tensor_that_an_operator_completes(setting: SimpleNamespace) -> None:
    packed = np.zeros((1, 1, 2, 4), F)  # [N, C/4, H*W, 4] of [1, 3, 1, 2]
    packed[0, 0, :, :3] = [[0, 2, 4], [1, 3, 5]]
    setting.manifest["ops"] = [
        _op(0, ["conv", "relu"], _region([1, 3, 1, 2], "NCHW4c")),
        _op(1, ["flat"], _region([6])),
        _op(2, ["a", "b"], _region([1]), _region([1])),
    ]
    setting.tensors = {
        "relu": np.arange(6, dtype=F).reshape(1, 3, 1, 2),
        "flat": np.arange(6, dtype=F).reshape(1, 6),  # another rank: a fused reshape is no difference
        "b": np.array([9], F),
    }
    raw = [array.view(np.uint8).reshape(-1) for array in (packed, np.arange(6, dtype=F), np.ones(1, F))]
    setting.traced = [[raw[0]], [raw[1]], [raw[2], raw[2]]]
    layers = setting.verify(layers=True).layers
    assert [(layer.index, layer.tensor) for layer in layers] == [(0, "relu"), (1, "flat"), (2, "a"), (2, "b")]
    assert [layer.difference and layer.difference.passed for layer in layers] == [True, True, None, False]


def test_the_first_bad_layer_is_the_first_in_order(setting: SimpleNamespace) -> None:
    setting.manifest["ops"] = [_op(i, [name], _region([1])) for i, name in enumerate("abc")]
    setting.tensors = {name: np.ones(1, F) for name in "abc"}
    setting.traced = [[np.full(1, value, F).view(np.uint8)] for value in (1, 2, 3)]
    result = setting.verify(layers=True)
    assert result.first_bad_layer.tensor == "b"
    assert result.document()["first_bad_layer"] == 1


def _sums(steps: list[Any]) -> list[np.ndarray]:
    """What a network gives whose state is the sum of all x so far."""
    return list(np.cumsum([np.asarray(x) for x in steps], axis=0))


def test_a_network_with_states_is_run_as_a_stream(setting: SimpleNamespace) -> None:
    setting.sets = [{"x": np.array([1, 2], F)}]
    state = TensorInfo("s", (2,), "float32")
    setting.imported.states = ((state, state),)
    setting.imported.reference_stream = lambda steps: [{"y": y} for y in _sums([feeds["x"] for feeds in steps])]
    setting.device.run_stream = lambda folder, steps: [[y] for y in _sums([inputs[0] for inputs in steps])]
    result = setting.verify()
    assert result.passed and result.data == "random input, 4 calls in a row"
    setting.device.run_stream = lambda folder, steps: [[inputs[0]] for inputs in steps]  # forgets its state
    result = setting.verify()
    assert not result.passed and result.outputs[0].max_relative == 0.75  # at the fourth call: 2 instead of 8


def test_every_shape_must_pass() -> None:
    good = VerifyResult(1e-4, "host", "random input", (), shapes="x 4")
    bad = Difference("y", False, 1.0, 0.5, problem="at [0]: 1.0 instead of 2.0")
    assert replace(good, further=(good,)).passed
    both = replace(good, further=(replace(good, outputs=(bad,)),))
    assert not both.passed and both.document()["further"][0]["passed"] is False
