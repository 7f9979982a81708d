"""Whole networks against what TensorFlow 2.21 computed (stored): the issue asks for 1e-5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stored_cases import FOLDER, NETWORKS, error_of, network
from tvm import relax
from tvm.ir import Call

from xnncc.frontends import load_model
from xnncc.frontends.evaluate import evaluate
from xnncc.transform.cancel_transposes import CancelTransposes

TOLERANCE = 1e-5


@pytest.mark.parametrize("name", NETWORKS)
def test_matches_tensorflow(name: str) -> None:
    stored = network(name)
    imported = load_model(FOLDER / f"{name}.pb", samples=stored.feeds)
    assert {info.name for info in imported.outputs} == set(stored.expected)
    found, _ = evaluate(imported.mod, [stored.feeds[info.name] for info in imported.inputs])
    theirs = imported.reference(stored.feeds)
    for info, ours in zip(imported.outputs, found, strict=True):
        assert error_of(ours, stored.expected[info.name]) <= TOLERANCE
        assert error_of(theirs[info.name], stored.expected[info.name]) <= TOLERANCE
    assert imported.check is not None and imported.check.max_relative_error <= TOLERANCE


def _transposed_shapes(name: str) -> list[tuple[int, ...]]:
    mod = load_model(FOLDER / f"{name}.pb", check=False).mod
    moved = CancelTransposes()(relax.transform.CanonicalizeBindings()(mod))
    calls = [b.value for block in moved["main"].body.blocks for b in block.bindings if isinstance(b.value, Call)]
    moves = [call for call in calls if call.op.name == "relax.permute_dims"]
    return [tuple(int(d) for d in call.args[0].ty.shape) for call in moves]


def test_no_transposition_is_left_within_a_chain_of_convolutions() -> None:
    assert _transposed_shapes("mobilenet") == [(1, 32, 32, 3)], "only the input's"


def test_an_ssd_head_transposes_its_input_and_its_four_heads() -> None:
    assert sorted(_transposed_shapes("ssd")) == [
        (1, 8, 5, 5), (1, 8, 10, 10), (1, 10, 5, 5), (1, 10, 10, 10), (1, 40, 40, 3),
    ]  # fmt: skip


def test_says_what_it_compared_with() -> None:
    imported = load_model(FOLDER / "mobilenet.pb", check=False)
    if imported.runtime.name.startswith("TensorFlow"):
        assert imported.warnings == ()
    else:
        assert imported.warnings[0].startswith("TensorFlow is not installed: compared with xnncc's numpy formulas")


def test_fake_quant_is_said() -> None:
    warnings = load_model(FOLDER / "fake_quantised.pb", check=False).warnings
    assert any("FakeQuant nodes are computed as they stand, in float32" in warning for warning in warnings)


def test_gives_intermediate_tensors_in_their_own_and_in_another_order() -> None:
    imported = load_model(FOLDER / "mobilenet.pb", check=False)
    name = next(iter(sorted(n for n in imported.tensors if n.endswith("Relu6"))))
    found = imported.reference_tensors(network("mobilenet").feeds, [name, f"{name}@0312", "no such tensor"])
    assert set(found) == {name, f"{name}@0312"}
    assert np.array_equal(found[f"{name}@0312"], found[name].transpose(0, 3, 1, 2))


MODELS = Path(__file__).parents[3] / "models" / "tensorflow"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cifar10_cnn_frozen", "nmp_frozen"])
def test_large_graphs(name: str) -> None:
    """Wants models/tensorflow/<name>.pb."""
    path = MODELS / f"{name}.pb"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    shapes = {"serving_default_input_2": (1, 43844, 1)} if name == "nmp_frozen" else None
    imported = load_model(path, shapes)
    assert imported.check is not None and imported.check.max_relative_error <= TOLERANCE
