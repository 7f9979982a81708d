"""Bad input gets one sentence (what, why, what to do), exit code 1, and an output folder as it was before."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from bench_models import write
from command_line import Ended, command, xnncc
from small_network import small_network

pytestmark = pytest.mark.e2e


def _refused(ended: Ended, *words: str) -> None:
    """Exit code 1 and one sentence that holds ``words``; no traceback."""
    assert ended.code == 1, ended.stderr
    errors = [line for line in ended.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    for word in words:
        assert word in errors[0], errors[0]


def _build(place: Path, model: Path | str, *flags: str, **environment: str) -> Ended:
    """Build for the host in ``place``; a build that fails must leave nothing new there."""
    before = sorted(place.iterdir())
    target = () if "--target" in flags else ("--target", "host")
    ended = xnncc("build", model, *target, *flags, cwd=place, **environment)
    if ended.code != 0:
        assert sorted(place.iterdir()) == before
    return ended


# ------------------------------------------------------------------------------------------------ model files


def test_missing_model(tmp_path: Path) -> None:
    _refused(_build(tmp_path, "nothing.onnx"), "nothing.onnx")


def test_truncated_model(tmp_path: Path) -> None:
    model = small_network(tmp_path / "small.onnx")
    model.write_bytes(model.read_bytes()[:300])
    _refused(_build(tmp_path, model), "small.onnx")


def test_empty_model(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").touch()
    _refused(_build(tmp_path, "empty.onnx"), "empty.onnx")


def test_file_that_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "letter.onnx").write_text("Dear reader,\n")
    _refused(_build(tmp_path, "letter.onnx"), "letter.onnx")


def test_folder_as_model(tmp_path: Path) -> None:
    (tmp_path / "folder.onnx").mkdir()
    _refused(_build(tmp_path, "folder.onnx"), "folder.onnx")


def test_unsupported_operators_are_all_named_at_once(tmp_path: Path) -> None:
    import onnx
    from onnx import helper

    model = onnx.load(small_network(tmp_path / "small.onnx"))
    model.graph.node.append(helper.make_node("StringNormalizer", ["scores"], ["x"], name="strings"))
    model.graph.node.append(helper.make_node("Multinomial", ["scores"], ["y"], name="dice"))
    onnx.save(model, tmp_path / "odd.onnx")
    _refused(_build(tmp_path, "odd.onnx"), "Multinomial", "StringNormalizer")


def test_nan_weights_warn_with_the_tensors_name(tmp_path: Path) -> None:
    weights = np.ones((4, 3, 3, 3), np.float32)
    weights[1, 2, 0, 0] = np.nan
    ended = _build(tmp_path, small_network(tmp_path / "small.onnx", weights), "--no-verify")
    assert ended.code == 0, ended.stderr
    assert "kernel" in ended.stderr and "NaN" in ended.stderr


# ------------------------------------------------------------------------------------------------ flags


def test_free_dimension_shows_the_flag_to_type(tmp_path: Path) -> None:
    _refused(_build(tmp_path, small_network(tmp_path / "free.onnx", free=True)), "--shape data=1,3,8,8")


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("data", ("data",)),
        ("data=1,3,x,8", ("data",)),
        ("data=1,3,0,8", ("0",)),
        ("data=1,3,8", ("data", "--shape")),
        ("data=1,4,8,8", ("data",)),
        ("dota=1,3,8,8", ("dota", "data")),
    ],
    ids=["no equals sign", "not a number", "zero", "wrong rank", "contradicts the model", "unknown input"],
)
def test_bad_shape(tmp_path: Path, flag: str, words: tuple[str, ...]) -> None:
    _refused(_build(tmp_path, small_network(tmp_path / "free.onnx", free=True), "--shape", flag), *words)


def test_unknown_target_suggests_the_near_name(tmp_path: Path) -> None:
    ended = _build(tmp_path, small_network(tmp_path / "small.onnx"), "--target", "andriod-arm64")
    _refused(ended, "andriod-arm64", "android-arm64")


def test_too_large_for_max_kib(tmp_path: Path) -> None:
    _refused(_build(tmp_path, small_network(tmp_path / "small.onnx"), "--max-kib", "1"), "KiB")


# ------------------------------------------------------------------------------------------------ the machine


def test_no_linker(tmp_path: Path) -> None:
    """Neither NDK nor compiler on PATH nor ziglang."""
    model = small_network(tmp_path / "small.onnx")
    nowhere = tmp_path / "bin"
    nowhere.mkdir()
    ended = xnncc(
        "build", model, "--target", "android-arm64", "--no-verify", cwd=tmp_path,
        before="import sys; sys.modules['ziglang'] = None",
        PATH=str(nowhere), ANDROID_NDK_HOME="", XDG_CACHE_HOME=str(tmp_path / "cache"),
    )  # fmt: skip
    _refused(ended, "install")
    assert not (tmp_path / "small-android-arm64").exists()


def test_output_below_a_file(tmp_path: Path) -> None:
    model = small_network(tmp_path / "small.onnx")
    _refused(_build(tmp_path, model, "-o", "small.onnx/out"), "small.onnx")


def test_output_folder_that_cannot_be_written(tmp_path: Path) -> None:
    model = small_network(tmp_path / "small.onnx")
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    if os.access(locked, os.W_OK):  # root writes everywhere but in the kernel's own file systems
        locked = Path("/proc")
    _refused(_build(tmp_path, model, "-o", str(locked / "out")), str(locked))


def test_output_folder_with_other_peoples_files(tmp_path: Path) -> None:
    """A folder that xnncc did not write is not replaced."""
    model = small_network(tmp_path / "small.onnx")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    ended = _build(tmp_path, model, "-o", "mine", "--no-verify")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    assert ended.code in (0, 1)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A mounted file system of 32 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system is not permitted here")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_full_disk(tmp_path: Path, tiny_disk: Path) -> None:
    model = small_network(tmp_path / "small.onnx")
    ended = xnncc("build", model, "--target", "host", "-o", tiny_disk / "out", "--no-verify", cwd=tmp_path)
    _refused(ended, "full")
    assert list(tiny_disk.iterdir()) == []


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    model = write("mobilenet_v2", tmp_path)  # takes three seconds or more
    child = subprocess.Popen(
        command("build", model, "--target", "host", "--no-verify"),
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    time.sleep(1.5)  # in the middle of the imports or of the build; either must be clean
    os.killpg(child.pid, signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == [model.name]


# ------------------------------------------------------------------------------------------------ artefacts


@pytest.fixture(scope="module")
def artefact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network, built for the host."""
    place = tmp_path_factory.mktemp("artefact")
    ended = xnncc("build", small_network(place / "small.onnx"), "--target", "host", "-o", "out", cwd=place)
    assert ended.code == 0, ended.stderr
    return place / "out"


def _run(place: Path, directory: Path, name: str = "data", array: np.ndarray | None = None) -> Ended:
    """``xnncc run`` with one input; a run that fails must write no output file."""
    np.save(place / "x.npy", np.zeros((1, 3, 8, 8), np.float32) if array is None else array)
    ended = xnncc("run", directory, "-i", f"{name}=x.npy", "-o", "out.npz", cwd=place)
    assert (place / "out.npz").exists() == (ended.code == 0)
    return ended


@pytest.fixture
def copy(artefact: Path, tmp_path: Path) -> Path:
    """The artefact, to be spoilt."""
    return Path(shutil.copytree(artefact, tmp_path / "copy"))


def test_good_artefact_runs(tmp_path: Path, artefact: Path) -> None:
    assert _run(tmp_path, artefact).code == 0


def test_truncated_package(tmp_path: Path, copy: Path) -> None:
    package = copy / "small.xnn"
    package.write_bytes(package.read_bytes()[:-8])
    _refused(_run(tmp_path, copy), "small.xnn")


@pytest.mark.parametrize("where", [0, 8, 100, -1], ids=["magic", "header", "tables", "weights"])
def test_flipped_bit_in_package(tmp_path: Path, copy: Path, where: int) -> None:
    package = copy / "small.xnn"
    content = bytearray(package.read_bytes())
    content[where] ^= 0x10
    package.write_bytes(content)
    _refused(_run(tmp_path, copy), "small.xnn")


def test_package_of_a_newer_version(tmp_path: Path, copy: Path) -> None:
    """Every checksum of the file holds: it is refused for its version alone (docs/package.md, section 2)."""
    from xnncc.pack import layout

    package = copy / "small.xnn"
    content = bytearray(package.read_bytes())
    struct.pack_into("<I", content, len(layout.MAGIC), 999)
    (sections,) = struct.unpack_from("<I", content, len(layout.MAGIC) + 4)
    table = content[layout.HEADER.size : layout.HEADER.size + sections * layout.ENTRY.size]
    crc = zlib.crc32(table, zlib.crc32(content[: layout.HEADER_CRC_OFFSET]))
    struct.pack_into("<I", content, layout.HEADER_CRC_OFFSET, crc)
    package.write_bytes(content)
    _refused(_run(tmp_path, copy), "small.xnn", "newer")


def test_package_of_another_network(tmp_path: Path, copy: Path) -> None:
    other = small_network(tmp_path / "small.onnx", np.ones((4, 3, 3, 3), np.float32), kind="Sigmoid")
    assert xnncc("build", other, "--target", "host", "-o", "other", "--no-verify", cwd=tmp_path).code == 0
    shutil.copy(tmp_path / "other" / "small.xnn", copy / "small.xnn")
    _refused(_run(tmp_path, copy), "small.xnn")


def test_manifest_that_is_no_json(tmp_path: Path, copy: Path) -> None:
    (copy / "manifest.json").write_text("{")
    _refused(_run(tmp_path, copy), "manifest.json")


def test_folder_without_an_artefact(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    _refused(_run(tmp_path, tmp_path / "bare"), "manifest.json")


def test_artefact_of_another_target_on_this_device(tmp_path: Path, artefact: Path) -> None:
    other = small_network(tmp_path / "small.onnx")
    assert xnncc("build", other, "--target", "ios-arm64", "-o", "other", "--no-verify", cwd=tmp_path).code == 0
    _refused(_run(tmp_path, tmp_path / "other"), "ios-arm64")


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("dota", np.zeros((1, 3, 8, 8), np.float32), ("dota", "data")),
        ("data", np.zeros((1, 3, 8, 9), np.float32), ("data", "8")),
        ("data", np.zeros((1, 3, 8, 8), np.int32), ("data", "int32", "float32")),
    ],
    ids=["name", "shape", "dtype"],
)
def test_wrong_input(tmp_path: Path, artefact: Path, name: str, array: np.ndarray, words: tuple[str, ...]) -> None:
    _refused(_run(tmp_path, artefact, name, array), *words)


def test_json_error_is_a_document_on_stdout(tmp_path: Path) -> None:
    ended = _build(tmp_path, "nothing.onnx", "--json")
    document = json.loads(ended.stdout)
    assert document["exit_code"] == 1
    assert document["error"]["what"]
