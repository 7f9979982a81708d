"""xnncc.load: a network in this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny import COUNT, EXPECTED, INPUT, tiny_artefact

import xnncc
from xnncc.errors import BadInput, BadPackage, DeviceError
from xnncc.ir.plan import TensorInfo
from xnncc.target import load_target


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artefact(load_target("host"), tmp_path_factory.mktemp("host"))


def test_takes_a_table_or_arrays(folder: Path) -> None:
    with xnncc.load(folder) as net:
        assert net.inputs == (TensorInfo("x:0", (1, COUNT), "float32"),)
        assert net.outputs == (TensorInfo("y", (1, COUNT), "float32"),)
        for result in (net({"x:0": INPUT}), net(INPUT), net(**{"x:0": INPUT})):
            assert list(result) == ["y"]
            np.testing.assert_allclose(result["y"], EXPECTED, rtol=1e-6)


def test_results_are_fresh_arrays(folder: Path) -> None:
    with xnncc.load(folder) as net:
        first = net(INPUT)["y"]
        net(INPUT * 0)
        np.testing.assert_allclose(first, EXPECTED, rtol=1e-6)


def test_takes_arrays_that_are_not_contiguous(folder: Path) -> None:
    wide = np.repeat(INPUT, 2, axis=1)[:, ::2]
    assert not wide.flags.c_contiguous
    with xnncc.load(folder) as net:
        np.testing.assert_allclose(net(wide)["y"], EXPECTED, rtol=1e-6)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x:1": INPUT}, r"the network has no input 'x:1'; did you mean 'x:0'\? Known: x:0"),
        ({}, "input 'x:0' is missing. Give every input: x:0"),
        ({"x:0": INPUT.T}, r"input 'x:0': its shape is \[64, 1\], expected \[1, 64\]"),
        ({"x:0": INPUT.astype("float16")}, r"its type is float16, expected float32. Convert it: array.astype"),
    ],
)
def test_refuses(folder: Path, feeds: dict[str, np.ndarray], message: str) -> None:
    with xnncc.load(folder) as net, pytest.raises(BadInput, match=message):
        net(feeds)


def test_closed_network_says_so(folder: Path) -> None:
    net = xnncc.load(folder)
    net.close()
    net.close()
    with pytest.raises(DeviceError, match="the network is closed"):
        net(INPUT)


def test_changed_package_is_refused(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    data = bytearray((tmp_path / "tiny.xnn").read_bytes())
    data[-1] ^= 1
    (tmp_path / "tiny.xnn").write_bytes(data)
    with pytest.raises(BadPackage, match=r"tiny.xnn'"):
        xnncc.load(tmp_path)


def test_broken_library_is_told(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "libtiny.so").write_bytes(b"no library")
    with pytest.raises(DeviceError, match="cannot be loaded"):
        xnncc.load(tmp_path)
