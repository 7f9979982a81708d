"""Fixtures of the runtime's tests; ``building`` beside this file is importable from them."""

from __future__ import annotations

import array
import subprocess
import sys
from pathlib import Path

import pytest

from xnncc import pack

sys.path.insert(0, str(Path(__file__).parent))
from building import FAKE_N, HERE, INCLUDES, SOURCES, WARNINGS, Compile, call


@pytest.fixture(scope="session")
def compile_driver(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function (driver, *flags, compiler=, link=) -> program; the runtime is compiled once per flags."""
    folder = tmp_path_factory.mktemp("runtime")
    archives: dict[tuple[str, ...], Path] = {}

    def archive(compiler: str, flags: tuple[str, ...]) -> Path:
        if (compiler, *flags) not in archives:
            build = folder / f"build{len(archives)}"
            build.mkdir()
            command = [compiler, "-c", "-O1", "-g", "-pthread", *WARNINGS, *INCLUDES, *flags, *map(str, SOURCES)]
            done = subprocess.run(command, cwd=build, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            # An archive, as a library's user links it: the slots must come along although nothing refers to them.
            call("ar", "rcs", build / "libxnnrt.a", *sorted(build.glob("*.o")))
            archives[(compiler, *flags)] = build / "libxnnrt.a"
        return archives[(compiler, *flags)]

    def compile_one(driver: str, *flags: str, compiler: str = "gcc", link: tuple[str, ...] = ()) -> Path:
        library = archive(compiler, flags)
        program = library.parent / driver
        sources = [HERE / f"{driver}.c", HERE / "fake_model.c"]
        options = ["-std=gnu99", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", *INCLUDES, *flags]
        call(compiler, *options, *sources, library, *link, "-o", program)
        return program

    return compile_one


@pytest.fixture(scope="session")
def fake_package() -> pack.Package:
    """The package of fake_model.c; weights w[i] = i % 7."""
    weights = array.array("f", [float(i % 7) for i in range(FAKE_N)]).tobytes()
    return pack.Package(
        name="fake", target="linux-x86-64", build_id=77, arena_bytes=2 * 4 * FAKE_N, thread_scratch_bytes=64 + 4032,
        op_count=4, inputs=(pack.Tensor("image/input:0", (1, FAKE_N), "float32"),),
        outputs=(pack.Tensor("y", (FAKE_N,), "float32"), pack.Tensor("nämlich", (), "int32")), weights=weights,
    )  # fmt: skip


@pytest.fixture(scope="session")
def fake_file(fake_package: pack.Package, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a file."""
    path = tmp_path_factory.mktemp("package") / "fake.xnn"
    pack.write(path, fake_package)
    return path
