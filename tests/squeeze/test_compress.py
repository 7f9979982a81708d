"""The whole squeeze on a small network: what is written, contracts, resuming, determinism."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xnncc.compress.recipe import parse_recipe
from xnncc.errors import BadModel, CompressError
from xnncc.frontends import load_model
from xnncc.pack.xq_file import read_xq
from xnncc.squeeze import trials
from xnncc.squeeze.compress import compress

Samples = Callable[[int, int], dict[str, np.ndarray]]
ROUND = parse_recipe('[[step]]\nmethod = "quantise_round"\nsensitive_bits = 2\n', "round")


def test_safe_without_data(classifier: Path, tmp_path: Path) -> None:
    result = compress(classifier, tmp_path / "net.xq")
    assert result.holds and result.path == tmp_path / "net.xq"
    assert result.report["recipe"]["name"] == "safe"
    assert result.report["loss"] == {"select": None, "test": None}
    size = result.path.stat().st_size
    assert size == result.report["result"]["bytes"] < 2074 * 4 / 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net.xq", "net.xq.report.html", "net.xq.report.json"]
    written = json.loads((tmp_path / "net.xq.report.json").read_text())
    assert written == json.loads(json.dumps(result.report))
    assert [step["method"] for step in written["steps"]] == ["quantise_round", "quantise_small"]


def test_the_graph_takes_at_most_200_bytes(classifier: Path, tmp_path: Path) -> None:
    compress(classifier, tmp_path / "net.xq", recipe=parse_recipe("", "none"))
    file = read_xq(tmp_path / "net.xq")
    floats = sum(one.nbytes for one in file.constants)  # nothing is coded
    assert (tmp_path / "net.xq").stat().st_size - floats < 200


def test_an_empty_recipe_changes_nothing(classifier: Path, tmp_path: Path, samples: Samples) -> None:
    result = compress(classifier, tmp_path / "net.xq", recipe=parse_recipe("", "none"), eval=samples(20, 0))
    assert result.report["loss"]["test"] == 0
    feeds = {"data": samples(1, 5)["data"]}
    before, after = load_model(classifier), load_model(result.path)
    assert np.array_equal(before.reference(feeds)["scores"], after.reference(feeds)["scores"]) or np.allclose(
        before.reference(feeds)["scores"], after.reference(feeds)["scores"], rtol=1e-5
    )
    assert after.outputs == before.outputs and after.inputs == before.inputs


def test_the_file_is_a_model_again(classifier: Path, tmp_path: Path) -> None:
    once = compress(classifier, tmp_path / "once.xq")
    imported = load_model(once.path)
    assert {len(one.integers.reshape(-1)) for one in imported.coded.values()} >= {32 * 48, 48 * 10}
    assert imported.runtime.name.endswith("on the compressed graph")
    twice = compress(once.path, tmp_path / "twice.xq")
    assert twice.report["source"]["file"] == "once.xq"
    assert twice.report["steps"][0]["bytes_after"] <= once.report["steps"][0]["bytes_after"] + 1


def test_max_loss_holds_and_is_smaller_than_safe(classifier: Path, tmp_path: Path, samples: Samples) -> None:
    safe = compress(classifier, tmp_path / "safe.xq", recipe=ROUND, eval=samples(200, 0)).report["result"]["bytes"]
    result = compress(classifier, tmp_path / "net.xq", recipe=ROUND, eval=samples(200, 0), max_loss=0.1)
    assert result.holds
    assert result.report["metric"] == "agreement"
    assert result.report["samples"] == {"calib": 0, "train": 0, "select": 100, "test": 100}
    assert result.report["loss"]["select"] <= 0.1
    assert result.report["result"]["bytes"] < safe
    assert "<svg" in (tmp_path / "net.xq.report.html").read_text()


def test_a_contract_that_cannot_be_met_leaves_the_best(classifier: Path, tmp_path: Path, samples: Samples) -> None:
    impossible = -1e-3  # no file is closer to the network than the network
    result = compress(
        classifier, tmp_path / "net.xq", recipe=ROUND, eval=samples(40, 0), metric="sqnr", max_loss=impossible
    )
    assert not result.holds
    assert result.path == tmp_path / "net.best.xq" and result.path.is_file()
    assert not (tmp_path / "net.xq").exists()
    assert load_model(result.path).inputs[0].name == "data"


def test_target_kib_takes_the_gentlest_that_fits(classifier: Path, tmp_path: Path) -> None:
    result = compress(classifier, tmp_path / "net.xq", recipe=ROUND, target_kib=1.2)
    assert result.holds and result.path.stat().st_size <= 1.2 * 1024
    chosen = next(trial for trial in result.report["trials"] if trial["is_chosen"])
    assert 0 < chosen["strength"] < 1
    too_small = compress(classifier, tmp_path / "small.xq", recipe=ROUND, target_kib=0.1)
    assert not too_small.holds


def test_same_input_same_bytes(classifier: Path, tmp_path: Path, samples: Samples) -> None:
    data = [
        compress(classifier, tmp_path / name, recipe=ROUND, eval=samples(40, 0), max_loss=0.2).path.read_bytes()
        for name in ("a.xq", "b.xq")
    ]
    assert data[0] == data[1]


def test_an_interrupted_run_goes_on(
    classifier: Path, tmp_path: Path, samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple] = []
    plain = trials.method_named

    def counted(name: str) -> Any:
        def run(state: Any, config: Any, *rest: Any) -> Any:
            calls.append((config.strength, *config.gentler.items()))
            if len(calls) == 4:
                raise KeyboardInterrupt
            return plain(name)(state, config, *rest)

        return run

    monkeypatch.setattr(trials, "method_named", counted)
    asked: dict[str, Any] = {"recipe": ROUND, "eval": samples(40, 0), "max_loss": 0.2}
    with pytest.raises(KeyboardInterrupt):
        compress(classifier, tmp_path / "net.xq", **asked)
    assert (tmp_path / "net.xq.journal").is_dir() and not (tmp_path / "net.xq").exists()
    found = compress(classifier, tmp_path / "net.xq", **asked).path.read_bytes()
    assert all(calls.count(call) == 1 for call in calls[:3])  # what was done is not done again
    assert calls.count(calls[3]) == 2
    assert not (tmp_path / "net.xq.journal").exists()
    monkeypatch.undo()
    assert compress(classifier, tmp_path / "other.xq", **asked).path.read_bytes() == found


def test_what_is_missing_is_said_at_once(classifier: Path, tmp_path: Path, samples: Samples) -> None:
    out = tmp_path / "net.xq"
    for asked, says in (
        ({"recipe": "balanced"}, "Give some with --calib"),
        ({"recipe": "max"}, "Give some with --train"),
        ({"max_loss": 0.1}, "Give some with --eval"),
        ({"max_loss": 0.1, "target_kib": 3}, "both are contracts"),
        ({"recipe": parse_recipe("", "none"), "target_kib": 3}, "no step of it may be searched"),
    ):
        with pytest.raises(CompressError, match=says):
            compress(classifier, out, **asked)  # type: ignore[arg-type]
    with pytest.raises(CompressError, match=r"ends in \.xq"):
        compress(classifier, tmp_path / "net.onnx")
    with pytest.raises(BadModel, match="no such file"):
        compress(tmp_path / "other.onnx", out)
    assert not list(tmp_path.iterdir())


def test_training_without_torch_names_the_command(
    classifier: Path, tmp_path: Path, samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib.util

    plain = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else plain(name, *rest)
    )
    with pytest.raises(CompressError, match=r"pip install 'xnncc\[train\]'"):
        compress(classifier, tmp_path / "net.xq", recipe="max", train=samples(20, 0))


def test_a_network_of_zeros_really_shrinks(tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = (rng.standard_normal((200, 200)) * (rng.random((200, 200)) < 0.1)).astype("float32")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["data", "w"], ["scores"])],
        "sparse",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 200])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 200])],
        [numpy_helper.from_array(weights, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "s.onnx")
    result = compress(tmp_path / "s.onnx", tmp_path / "s.xq", recipe=ROUND)
    # 90 % zeros at 4 bits: H(0.1) + 0.1 * 4 bits = 0.87 bits a weight, 32 before
    assert result.report["bits_per_weight"] < 1.2
    assert result.report["steps"][0]["layers"][0]["sparsity"] >= 0.9
