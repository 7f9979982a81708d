"""Coded weights: the runtime decodes at open what Python coded, and what it cannot is a named status."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from building import ADDRESS, FOUR_CORES, NOTHING, THREAD, Compile, call
from coded_packages import coded_package

from xnncc import pack
from xnncc.pack.coding import decode_blob
from xnncc.pack.coding.coders import CODERS

SHAPES = ((20, 3, 3, 3), (7,), (1, 9, 5), (64, 100), (3, 2, 1, 4, 2), (1,), (300, 250), (16, 1, 5, 5), (1, 1, 11))


@pytest.fixture(scope="module", params=CODERS)
def coded_files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A package and the blob that it decodes to."""
    folder = tmp_path_factory.mktemp("coded")
    package, blob = coded_package(3, request.param, SHAPES)
    pack.write(folder / "coded.xnn", package)
    (folder / "blob").write_bytes(blob)
    return folder / "coded.xnn", folder / "blob"


@pytest.mark.parametrize("flags", [ADDRESS + FOUR_CORES, NOTHING + ADDRESS, THREAD + FOUR_CORES], ids="-".join)
def test_decodes_into_the_layout_that_kernels_read(
    compile_driver: Compile, coded_files: tuple[Path, Path], flags: list[str]
) -> None:
    threads = "1" if flags[:3] == NOTHING else "4"
    assert call(compile_driver("drive_coded", *flags), *coded_files, threads) == "ok\n"


def test_decodes_on_arm(compile_driver: Compile, coded_files: tuple[Path, Path]) -> None:
    for program in ("qemu-arm", "arm-linux-gnueabihf-gcc"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed (apt install qemu-user gcc-arm-linux-gnueabihf)")
    driver = compile_driver("drive_coded", *FOUR_CORES, "-static", compiler="arm-linux-gnueabihf-gcc")
    assert call("qemu-arm", driver, *coded_files, "2") == "ok\n"


@pytest.mark.parametrize("seed", range(12))
def test_python_decodes_the_same_blob(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = tuple(tuple(map(int, rng.integers(1, 9, rng.integers(1, 5)))) for _ in range(rng.integers(1, 6)))
    package, blob = coded_package(seed, CODERS[seed % 3], shapes)
    read = pack.decode(pack.encode(package))
    assert read.blob_bytes == read.weights_bytes == len(blob)
    assert decode_blob(bytes(read.weights), len(blob)) == blob


def test_open_survives_every_failing_allocation(compile_driver: Compile, tmp_path: Path) -> None:
    """The driver lets one allocation after the other fail; its network has the weights of fake_model.c, here coded."""
    from array import array

    from building import FAKE_N
    from coded_packages import place_in

    from xnncc.ir.coded import CodedTensor
    from xnncc.pack.coding import encode_blob

    weights = array("f", [float(i % 7) for i in range(FAKE_N)]).tobytes()
    tensor = CodedTensor(np.arange(FAKE_N, dtype=np.int32) % 7, np.ones(1, np.float32))
    placements: list = []
    assert place_in(tensor, lambda w: w, 0, placements).tobytes() == weights
    package = pack.Package(
        name="fake", target="linux-x86-64", build_id=77, arena_bytes=2 * 4 * FAKE_N, thread_scratch_bytes=64 + 4032,
        op_count=4, inputs=(pack.Tensor("image/input:0", (1, FAKE_N), "float32"),),
        outputs=(pack.Tensor("y", (FAKE_N,), "float32"), pack.Tensor("nämlich", (), "int32")),
        weights=encode_blob(weights, placements).data, blob_bytes=len(weights),
    )  # fmt: skip
    pack.write(tmp_path / "fake.xnn", package)
    program = compile_driver("drive_no_malloc", *FOUR_CORES, link=("-Wl,--wrap=mmap",))
    assert call(program, tmp_path / "fake.xnn") == "ok\n"


def test_an_unknown_encoding_of_weights_is_refused() -> None:
    from xnncc.errors import BadPackage

    package, _ = coded_package(1, "range", SHAPES[:2])
    data = bytearray(pack.encode(replace(package, extra=())))
    at = data.index(b"WGHT") + 4
    assert data[at] == 1
    data[at] = 2
    from zlib import crc32

    sections = int.from_bytes(data[12:16], "little")
    data[60:64] = crc32(data[64 : 64 + 40 * sections], crc32(data[:60])).to_bytes(4, "little")
    with pytest.raises(BadPackage, match="section 'WGHT' is coded in an unknown way"):
        pack.decode(bytes(data))
