"""manifest.json: written the same each time, refused in words when it is not what xnncc writes."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xnncc.errors import BadPackage
from xnncc.pack import manifest as manifest_module
from xnncc.pack import read_manifest, variant_manifests, write_manifest

REGION = {"space": "arena", "offset": 0, "size": 16, "shape": [1, 4], "dtype": "float32", "layout": "NCHW8c"}
GOOD: dict[str, Any] = {
    "format": 1, "name": "tiny", "target": "host", "build_id": -5, "graph_symbol": "xnn_tiny_graph",
    "inputs": [{"name": "größe:0", "shape": [1, 4], "dtype": "float32"}],
    "outputs": [{"name": "y", "shape": [], "dtype": "int64"}],
    "op_count": 1, "arena_bytes": 64, "thread_scratch_bytes": 0, "weights_bytes": 8,
    "files": [{"path": "libtiny.so", "bytes": 9, "sha256": "0" * 64, "role": "library"}],
    "tools": {"xnncc": "0.1.0"}, "source": {"file": "tiny.onnx", "sha256": "a" * 64},
    "ops": [{"index": 0, "kernel": "k", "rule": "dense", "source": ["y"], "outputs": [REGION]}],
}  # fmt: skip


def changed(*path: Any, to: Any) -> dict[str, Any]:
    manifest = copy.deepcopy(GOOD)
    place: Any = manifest
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return manifest


def refusal(path: Path, text: str | bytes) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadPackage) as caught:
        read_manifest(path)
    assert str(path) in caught.value.what
    assert caught.value.next
    return caught.value.why


def test_reads_what_was_written(tmp_path: Path) -> None:
    write_manifest(tmp_path / "manifest.json", GOOD | {"later": [1.5, None]})
    assert read_manifest(tmp_path) == GOOD | {"later": [1.5, None]}
    assert os.listdir(tmp_path) == ["manifest.json"]


def test_order_of_keys_does_not_matter(tmp_path: Path) -> None:
    write_manifest(tmp_path / "a", GOOD)
    write_manifest(tmp_path / "b", dict(reversed(GOOD.items())))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert "größe" in (tmp_path / "a").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (changed("op_count", to=-1), "op_count is -1, expected a count"),
        (changed("op_count", to=True), "op_count is True, expected a count"),
        (changed("op_count", to=1.0), "op_count is 1.0, expected a count"),
        (changed("build_id", to=1 << 63), "build_id is 9223372036854775808, expected a 64-bit number"),
        (changed("graph_symbol", to="a;b"), "graph_symbol is 'a;b', expected a C identifier"),
        (changed("inputs", to={}), "inputs is not a list"),
        (changed("inputs", 0, "shape", to=[1, "4"]), "inputs[0].shape[1] is '4', expected a count"),
        (changed("inputs", 0, "dtype", to="complex64"), "inputs[0].dtype is 'complex64', expected a dtype"),
        (changed("files", 0, "path", to="../x.so"), "files[0].path is '../x.so', expected a path inside the folder"),
        (changed("files", 0, "path", to="/etc/x"), "files[0].path is '/etc/x', expected a path inside the folder"),
        (changed("files", 0, "path", to="C:x"), "files[0].path is 'C:x', expected a path inside the folder"),
        (
            changed("files", 0, "sha256", to="g" * 64),
            f"files[0].sha256 is '{'g' * 59}..., expected 64 hexadecimal digits",
        ),
        (changed("tools", to={"tvm": 1}), "tools is {'tvm': 1}, expected a table of text"),
        (changed("source", to={}), "source has no 'file'"),
        (changed("ops", 0, "outputs", 0, "space", to="gpu"), "ops[0].outputs[0].space is 'gpu', expected a space"),
        ({key: GOOD[key] for key in GOOD if key != "ops"}, "manifest has no 'ops'"),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, manifest: dict[str, Any], why: str) -> None:
    assert refusal(tmp_path / "manifest.json", json.dumps(manifest)) == why
    with pytest.raises(BadPackage):
        write_manifest(tmp_path / "new.json", manifest)
    assert not (tmp_path / "new.json").exists()


def test_refuses_text_that_is_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    assert "not JSON" in refusal(path, "{")
    assert "not JSON" in refusal(path, b"\xff\xfe{}")
    assert "NaN is not a number" in refusal(path, '{"format": NaN}')
    assert "a key occurs twice" in refusal(path, '{"format": 1, "format": 1}')
    assert "not JSON" in refusal(path, "[" * 100_000)
    assert "not JSON" in refusal(path, '{"format": ' + "1" * 5000 + "}")
    assert refusal(path, "[]") == "format is None, expected 1"
    assert refusal(path, '{"format": 2}') == "format 2, this xnncc reads up to 1"


def test_refuses_what_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_module, "MAX_BYTES", 1 << 20)
    assert refusal(tmp_path / "manifest.json", " " * ((1 << 20) + 1)) == "longer than 1 MiB"


def test_says_that_nothing_is_there(tmp_path: Path) -> None:
    with pytest.raises(BadPackage, match=r"manifest\.json' cannot be read: no such file or directory\. Give a folder"):
        read_manifest(tmp_path)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_survives_a_changed_character(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    text = bytearray(json.dumps(GOOD).encode())
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_bytes(text)
    try:
        assert isinstance(read_manifest(path), dict)
    except BadPackage as error:
        assert error.why


def test_each_variant_has_its_own_manifest(tmp_path: Path) -> None:
    wide = {key: copy.deepcopy(GOOD[key]) for key in ("inputs", "outputs", "op_count", "arena_bytes", "ops")}
    wide["inputs"][0]["shape"], wide["arena_bytes"] = [1, 9], 128
    write_manifest(tmp_path / "manifest.json", {**GOOD, "variants": [wide]})
    first, second = variant_manifests(read_manifest(tmp_path))
    assert first == {**GOOD, "variant": 0}
    assert second == {**GOOD, **wide, "variant": 1}
    (only,) = variant_manifests(GOOD)
    assert only == {**GOOD, "variant": 0}


@pytest.mark.parametrize(("variants", "words"), [([{}], "has no 'inputs'"), (5, "variants is not a list")])
def test_variants_are_checked(variants: Any, words: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({**GOOD, "variants": variants}))
    with pytest.raises(BadPackage, match=words):
        read_manifest(tmp_path)
