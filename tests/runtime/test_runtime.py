"""The runtime, driven in C by a network written by hand (fake_model.c), with and without sanitizers."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from building import ADDRESS, FOUR_CORES, NOTHING, THREAD, Compile, call

from xnncc import pack


@pytest.mark.parametrize("flags", [ADDRESS + FOUR_CORES, NOTHING + ADDRESS], ids=["threads", "no threads, files, mmap"])
def test_every_function_does_what_its_comment_says(compile_driver: Compile, fake_file: Path, flags: list[str]) -> None:
    assert call(compile_driver("drive_api", *flags), fake_file) == "ok\n"


def test_reads_a_file_where_it_cannot_map_it(compile_driver: Compile, fake_file: Path) -> None:
    assert call(compile_driver("drive_api", "-DXNNRT_NO_MMAP", *FOUR_CORES), fake_file) == "ok\n"


def test_two_nets_of_four_threads_do_not_meet(compile_driver: Compile, fake_file: Path) -> None:
    assert call(compile_driver("drive_threads", *ADDRESS, *FOUR_CORES), fake_file, "300") == "ok\n"


def test_no_data_race_with_four_threads(compile_driver: Compile, fake_file: Path) -> None:
    assert call(compile_driver("drive_threads", *THREAD, *FOUR_CORES), fake_file, "100") == "ok\n"


def test_caller_never_waits_for_a_worker_that_has_not_started(compile_driver: Compile, fake_file: Path) -> None:
    program = compile_driver("drive_late_workers", *THREAD, *FOUR_CORES, link=("-Wl,--wrap=pthread_create",))
    assert call(program, fake_file, seconds=60) == "ok\n"


def test_nothing_is_allocated_after_open(compile_driver: Compile, fake_file: Path) -> None:
    program = compile_driver("drive_no_malloc", *FOUR_CORES, link=("-Wl,--wrap=mmap",))
    assert call(program, fake_file) == "ok\n"


def test_never_more_threads_than_cores(compile_driver: Compile, fake_file: Path) -> None:
    program = compile_driver("drive_thread_count", "-DXNNRT_CORES=2")
    assert call(program, fake_file) == "1 2 2 2 1 2\n"  # the driver says of which options


@pytest.mark.parametrize(
    ("emulator", "compiler"),
    [("qemu-aarch64", "aarch64-linux-gnu-gcc"), ("qemu-arm", "arm-linux-gnueabihf-gcc")],
)
def test_works_on_arm(compile_driver: Compile, fake_file: Path, emulator: str, compiler: str) -> None:
    for program in (emulator, compiler):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed (apt install qemu-user gcc-{compiler.removesuffix('-gcc')})")
    driver = compile_driver("drive_api", *FOUR_CORES, "-static", compiler=compiler)
    assert call(emulator, driver, fake_file) == "ok\n"


STATES = (("x", (3,), "float32"), ("a", (3,), "float32"), ("b", (), "int32"))


@pytest.mark.parametrize("flags", [ADDRESS, ["-DXNNRT_NO_THREADS"]])
def test_states_live_from_run_to_run(compile_driver: Compile, tmp_path: Path, flags: list[str]) -> None:
    x, a, b = (pack.Tensor(name, shape, dtype) for name, shape, dtype in STATES)
    package = pack.Package(
        name="count", target="linux-x86-64", build_id=5, arena_bytes=64, thread_scratch_bytes=0, op_count=2,
        inputs=(x, a, b), outputs=tuple(replace(t, name=n) for t, n in ((x, "y"), (a, "a'"), (b, "b'"))), weights=b"",
        state_count=2,
    )  # fmt: skip
    pack.write(tmp_path / "count.xnn", package)
    call(compile_driver("drive_states", *flags), tmp_path / "count.xnn")


@pytest.mark.parametrize("flags", [ADDRESS, ["-DXNNRT_NO_THREADS"]])
def test_variants_share_one_net(compile_driver: Compile, tmp_path: Path, flags: list[str]) -> None:
    """The second needs the largest arena; ASan watches its end."""
    state, after = pack.Tensor("h", (2,), "float32"), pack.Tensor("hn", (2,), "float32")
    sides = [
        ((pack.Tensor("x", (1, n), "float32"), state), (pack.Tensor("y", (n,), "float32"), after)) for n in (4, 6, 2)
    ]
    package = pack.Package(
        name="wide", target="linux-x86-64", build_id=9, arena_bytes=128, thread_scratch_bytes=0, op_count=2,
        inputs=sides[0][0], outputs=sides[0][1], weights=b"", state_count=1,
        variants=tuple(pack.Variant(arena, 2, *io) for arena, io in zip((640, 64), sides[1:], strict=True)),
    )  # fmt: skip
    pack.write(tmp_path / "wide.xnn", package)
    call(compile_driver("drive_variants", *flags), tmp_path / "wide.xnn")
