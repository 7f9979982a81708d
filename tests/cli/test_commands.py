"""What each command hands down and what it says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from xnncc.ir.plan import TensorInfo

# ------------------------------------------------------------------------------------------------ build


def test_build_hands_every_flag_down(xnncc: Callable, fake_build: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", data=np.zeros((1, 4), np.float32))
    ended = xnncc(
        "build", "m.onnx", "-t", "android-arm64", "-o", "out", "--shape", "data=1,4", "--samples", "s.npz",
        "--threads", 2, "--max-kib", 100, "--no-verify", "--bindings", "kotlin,js", "--dump", "ir",
        "--stop-after", "lower", "--weights", "w.caffemodel", "--state", "h:hn", "--exact",
        "--records", "tuned", "--plugin", "p.py", "--nms-rows", 7,
    )  # fmt: skip
    assert ended.code == 0, ended.stderr
    ((arguments, keywords),) = fake_build.calls
    assert arguments == (Path("m.onnx"), "android-arm64", Path("out"))
    assert list(keywords.pop("samples")) == ["data"]
    assert callable(keywords.pop("progress"))
    assert keywords == {
        "shapes": {"data": (1, 4)}, "threads": 2, "max_kib": 100, "verify": False, "bindings": ("kotlin", "js"),
        "dump": Path("ir"), "stop_after": "lower", "weights": Path("w.caffemodel"),
        "states": ("h:hn",), "exact": True, "records": Path("tuned"), "plugins": (Path("p.py"),),
        "fixed": {}, "nms_rows": 7,
    }  # fmt: skip
    assert ended.stdout == "stopped after lower\n"


def test_build_says_what_was_made_and_what_comes_next(xnncc: Callable, fake_build: Any, golden: Callable) -> None:
    fake_build.warnings = ("weight 'w' holds NaN",)
    ended = xnncc("build", "my model.onnx", "-t", "host")
    assert ended.code == 0
    golden("cli/build.txt", ended.stdout)
    assert ended.stderr.splitlines() == ["warning: weight 'w' holds NaN", "next: xnncc bench net-host"]


def test_build_without_verification_names_it_as_the_next_step(xnncc: Callable, fake_build: Any) -> None:
    ended = xnncc("build", "my model.onnx", "-t", "host", "--no-verify")
    assert ended.stderr == "next: xnncc verify 'my model.onnx' net-host\n"


def test_build_json_is_one_document(xnncc: Callable, fake_build: Any, manifest: dict[str, Any]) -> None:
    document = json.loads(xnncc("build", "m.onnx", "-t", "host", "--json").stdout)
    assert document == {"directory": "net-host", "manifest": manifest, "warnings": []}


# ------------------------------------------------------------------------------------------------ bench and run


def test_bench_json_has_the_contracts_keys(xnncc: Callable, artefact: Path, fake_device: Callable) -> None:
    fake_device([])
    document = json.loads(xnncc("bench", artefact, "--repeat", 5, "--per-op", "--json").stdout)
    assert document["median_ms"] == 3.0
    assert document["min_ms"] == 1.0
    assert document["p90_ms"] == pytest.approx(4.6)
    assert document["threads"] == 1
    assert [op["kernel"] for op in document["per_op"]] == ["dense", "softmax"]


def test_bench_without_per_op_has_none(xnncc: Callable, artefact: Path, fake_device: Callable) -> None:
    fake_device([])
    assert json.loads(xnncc("bench", artefact, "--json").stdout)["per_op"] is None


def test_bench_lists_the_slowest_operator_first(xnncc: Callable, artefact: Path, fake_device: Callable) -> None:
    fake_device([])
    lines = xnncc("bench", artefact, "--per-op").stdout.splitlines()
    assert lines[2].split() == ["1", "softmax", "rowwise", "0.750", "75.0%"]
    assert lines[3].split() == ["0", "dense", "gemv", "0.250", "25.0%"]


def test_run_writes_the_outputs_by_name(xnncc: Callable, artefact: Path, fake_device: Callable, tmp_path: Path) -> None:
    fake_device([np.array([[0.25, 0.75]], np.float32)])
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    ended = xnncc("run", artefact, "-i", "data=x.npy", "-o", "out.npz")
    assert ended.code == 0, ended.stderr
    with np.load(tmp_path / "out.npz") as written:
        assert written.files == ["prob"]
        np.testing.assert_array_equal(written["prob"], [[0.25, 0.75]])


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("dota", np.zeros((1, 4), np.float32), "did you mean 'data'"),
        ("data", np.zeros((1, 5), np.float32), "[1, 5]"),
        ("data", np.zeros((1, 4), np.int32), "int32"),
    ],
)
def test_run_refuses_wrong_inputs(
    name: str, array: Any, words: str, xnncc: Callable, artefact: Path, fake_device: Callable, tmp_path: Path
) -> None:
    fake_device([])
    np.save(tmp_path / "x.npy", array)
    ended = xnncc("run", artefact, "-i", f"{name}=x.npy", "-o", "out.npz")
    assert ended.code == 1
    assert words in ended.stderr
    assert not (tmp_path / "out.npz").exists()


def test_run_leaves_no_half_file(xnncc: Callable, artefact: Path, fake_device: Callable, tmp_path: Path) -> None:
    fake_device([np.zeros((1, 2), np.float32)])
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    before = sorted(tmp_path.iterdir())
    ended = xnncc("run", artefact, "-i", "data=x.npy", "-o", "nowhere/out.npz")
    assert ended.code == 1
    assert "mkdir -p nowhere" in ended.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_outputs_whose_names_are_paths_are_written(
    xnncc: Callable, artefact: Path, manifest: dict[str, Any], fake_device: Callable, tmp_path: Path
) -> None:
    from xnncc.pack import write_manifest

    manifest["outputs"][0]["name"] = "file"  # numpy.savez(file=...) would take it for the path
    write_manifest(artefact / "manifest.json", manifest)
    fake_device([np.zeros((1, 2), np.float32)])
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    assert xnncc("run", artefact, "-i", "data=x.npy", "-o", "out.npz").code == 0
    with np.load(tmp_path / "out.npz") as written:
        assert written.files == ["file"]


# ------------------------------------------------------------------------------------------------ verify


@pytest.fixture
def fake_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose own runtime gives hidden = 1 2 3 4 and prob = 0.25 0.75."""
    tensors = {"hidden": np.array([[1, 2, 3, 4]], np.float32), "prob": np.array([[0.25, 0.75]], np.float32)}
    imported = SimpleNamespace(
        mod=None,
        source=Path("m.onnx"),
        inputs=(TensorInfo("data", (1, 4), "float32"),),
        outputs=(TensorInfo("prob", (1, 2), "float32"),),
        states=(),
        reference_stream=lambda steps: [{"prob": tensors["prob"]} for _ in steps],
        reference_tensors=lambda feeds, names: {name: tensors[name] for name in names if name in tensors},
    )
    monkeypatch.setattr("xnncc.frontends.load_model", lambda path, shapes=None, samples=None, **options: imported)


def _samples(tmp_path: Path) -> Path:
    np.savez(tmp_path / "s.npz", data=np.zeros((1, 4), np.float32))
    return tmp_path / "s.npz"


def _bytes(*values: float) -> list[np.ndarray]:
    return [np.array(values, np.float32).view(np.uint8)]


def test_verify_passes(
    xnncc: Callable, artefact: Path, fake_model: None, fake_device: Callable, tmp_path: Path
) -> None:
    fake_device([np.array([[0.25, 0.75001]], np.float32)])
    ended = xnncc("verify", "m.onnx", artefact, "--samples", _samples(tmp_path))
    assert ended.code == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "verified: tolerance 0.0001, on host, the given samples"
    assert "next: xnncc bench" in ended.stderr


def test_verify_fails_with_exit_code_1_and_names_the_layers_flag(
    xnncc: Callable, artefact: Path, fake_model: None, fake_device: Callable, tmp_path: Path
) -> None:
    fake_device([np.array([[0.25, 0.5]], np.float32)])
    ended = xnncc("verify", "m.onnx", artefact, "--samples", _samples(tmp_path))
    assert ended.code == 1
    assert "FAIL at [0, 1]: 0.5 instead of 0.75" in ended.stdout
    assert "--layers" in ended.stderr


def test_verify_layers_finds_the_first_operator_that_parts(
    xnncc: Callable, artefact: Path, fake_model: None, fake_device: Callable, tmp_path: Path
) -> None:
    fake_device([np.array([[0.25, 0.5]], np.float32)], [_bytes(1, 2, 9, 4), _bytes(0.25, 0.5)])
    arguments = ("verify", "m.onnx", artefact, "--samples", _samples(tmp_path), "--layers")
    ended = xnncc(*arguments)
    assert ended.code == 1
    assert "they part at operator 0, dense, tensor 'hidden': at [0, 2]: 9.0 instead of 3.0" in ended.stdout
    document = json.loads(xnncc(*arguments, "--json").stdout)
    assert document["passed"] is False
    assert document["first_bad_layer"] == 0
    assert document["layers"][0]["difference"]["max_abs"] == 6.0


def test_verify_refuses_another_models_artefact(
    xnncc: Callable, artefact: Path, manifest: dict[str, Any], fake_model: None, fake_device: Callable
) -> None:
    from xnncc.pack import write_manifest

    manifest["outputs"][0]["shape"] = [1, 3]
    write_manifest(artefact / "manifest.json", manifest)
    fake_device([])
    ended = xnncc("verify", "m.onnx", artefact)
    assert ended.code == 1
    assert "built from another model than 'm.onnx'" in ended.stderr


# ------------------------------------------------------------------------------------------------ inspect


def _conv_model(path: Path, batch: int | str = 1) -> None:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(np.zeros((4, 3, 3, 3), np.float32), "kernel")
    node = helper.make_node("Conv", ["data", "kernel"], ["out"], name="conv", pads=[1, 1, 1, 1])
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("data", TensorProto.FLOAT, [batch, 3, 8, 8])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, [batch, 4, 8, 8])],
        [weight],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="test"), path)


def test_inspect_model(xnncc: Callable, golden: Callable, tmp_path: Path) -> None:
    _conv_model(tmp_path / "m.onnx")
    ended = xnncc("inspect", "m.onnx")
    assert ended.code == 0, ended.stderr
    golden("cli/inspect_model.txt", ended.stdout)
    document = json.loads(xnncc("inspect", "m.onnx", "--json").stdout)
    assert document["macs"] == 4 * 8 * 8 * 3 * 3 * 3
    assert document["weights"] == {"tensors": 1, "elements": 108, "bytes": 432}
    assert document["opset"] == {"ai.onnx": 17}


def test_inspect_shows_the_flag_that_a_free_dimension_needs(xnncc: Callable, tmp_path: Path) -> None:
    _conv_model(tmp_path / "m.onnx", "batch")
    ended = xnncc("inspect", "m.onnx")
    assert "--shape 'data=<batch>,3,8,8'" in ended.stderr
    assert "MACs unknown" in ended.stdout


def test_inspect_artefact(xnncc: Callable, artefact: Path, golden: Callable) -> None:
    ended = xnncc("inspect", artefact.name)
    assert ended.code == 0, ended.stderr
    golden("cli/inspect_artefact.txt", ended.stdout)


def test_inspect_package(xnncc: Callable, tmp_path: Path, golden: Callable) -> None:
    from xnncc.pack import Package, Tensor, write

    tensors = ((Tensor("data", (1, 4), "float32"),), (Tensor("prob", (1, 2), "float32"),))
    write(tmp_path / "net.xnn", Package("net", "linux-x86-64", 7, 4096, 0, 2, *tensors, bytes(2048)))
    ended = xnncc("inspect", "net.xnn")
    assert ended.code == 0, ended.stderr
    digest = hashlib.sha256((tmp_path / "net.xnn").read_bytes()).hexdigest()
    golden("cli/inspect_package.txt", ended.stdout.replace(digest, "<sha256>"))
    damaged = bytearray((tmp_path / "net.xnn").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "net.xnn").write_bytes(damaged)
    assert xnncc("inspect", "net.xnn").code == 1


@pytest.mark.parametrize("content", [b"", b"Dear reader,\n", b"\x08\x01"])
def test_inspect_refuses_what_is_no_model(content: bytes, xnncc: Callable, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    ended = xnncc("inspect", "m.onnx")
    assert ended.code == 1
    assert "'m.onnx'" in ended.stderr


# ------------------------------------------------------------------------------------------------ targets and doctor


def test_targets_lists_every_file_with_an_honest_tier(xnncc: Callable) -> None:
    ended = xnncc("targets")
    assert ended.code == 0, ended.stderr
    for name in ("android-arm64", "ios-arm64", "linux-x86-64", "web-wasm", "host"):
        assert name in ended.stdout
    assert "built by the tests" in ended.stdout


def test_targets_are_listed_on_a_machine_that_is_no_host(xnncc: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xnncc.target.host_architecture", lambda: "riscv64")
    ended = xnncc("targets")
    assert ended.code == 0, ended.stderr
    assert "android-arm64" in ended.stdout
    assert "\nhost " not in ended.stdout


def test_one_target_in_full(xnncc: Callable) -> None:
    document = json.loads(xnncc("targets", "android-arm64", "--json").stdout)
    assert document["abi"] == "arm64-v8a"
    assert document["toolchain"]["kind"] == "elf"
    assert "machine.lanes" in xnncc("targets", "android-arm64").stdout


def test_unknown_target_suggests_the_near_name(xnncc: Callable) -> None:
    ended = xnncc("targets", "andriod-arm64")
    assert ended.code == 1
    assert "did you mean 'android-arm64'?" in ended.stderr


def _facts(monkeypatch: pytest.MonkeyPatch, *facts: Any) -> None:
    monkeypatch.setattr("xnncc.codegen.toolchain.describe_toolchains", lambda: list(facts))


def test_doctor_names_the_command_that_installs(xnncc: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    from xnncc.codegen.toolchain import Fact

    _facts(monkeypatch, Fact("ld.lld", "", "building android-arm64", "apt-get install lld"))
    ended = xnncc("doctor")
    assert ended.code == 0, ended.stdout
    assert "MISSING" in ended.stdout
    assert "apt-get install lld" in ended.stdout
    checks = json.loads(xnncc("doctor", "--json").stdout)["checks"]
    assert {c["subject"]: c["ok"] for c in checks}["ld.lld"] is False
    assert {c["subject"]: c["ok"] for c in checks}["apache-tvm-ffi"] is True


def test_doctor_fails_on_a_wrong_pin(xnncc: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    real = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda name: "0.1.15.post2" if name == "apache-tvm-ffi" else real(name)
    )
    _facts(monkeypatch)
    ended = xnncc("doctor")
    assert ended.code == 1
    assert "pip install 'apache-tvm-ffi==0.1.14.post1'" in ended.stdout
