"""What is found on PATH, and what is said when nothing is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from xnncc.codegen import toolchain
from xnncc.codegen.toolchain import find_tool, run_tool
from xnncc.errors import ToolchainError
from xnncc.target import load_target

NAMES = {"clang", "ld.lld", "ld64.lld", "wasm-ld", "llvm-ar", "llvm-strip"}


@pytest.fixture
def path_with(monkeypatch: pytest.MonkeyPatch) -> object:
    """Return a function that makes PATH hold just these programs; ziglang and the NDK are away."""

    def install(*names: str) -> None:
        monkeypatch.setattr(toolchain.shutil, "which", lambda name: f"/tools/{name}" if name in names else None)
        monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
        monkeypatch.delenv("ANDROID_NDK_HOME", raising=False)

    return install


@pytest.mark.parametrize(
    ("target", "role", "message"),
    [
        ("android-arm64", "compiler", "needs clang: .*apt-get install clang lld"),
        ("android-arm64", "linker", "needs ld.lld"),
        ("macos-arm64", "linker", "needs ld64.lld: .*apt-get install clang lld llvm"),
        ("ios-arm64", "archiver", "needs llvm-ar: .*llvm"),
        ("web-wasm", "linker", "needs wasm-ld and wasi-libc: .*apt-get install clang lld wasi-libc"),
        ("linux-arm64", "compiler", "needs clang"),
    ],
)
def test_missing_tool_names_the_command(path_with: object, target: str, role: str, message: str) -> None:
    path_with()
    with pytest.raises(ToolchainError, match=message):
        find_tool(role, load_target(target))


def test_newest_llvm_wins(path_with: object) -> None:
    path_with("clang", "clang-14", "clang-22", "clang-19", "gcc")
    assert find_tool("compiler", load_target("linux-x86-64")).argv == ("/tools/clang-22",)


def test_gcc_serves_linux_and_not_android(path_with: object) -> None:
    path_with("aarch64-linux-gnu-gcc")
    assert find_tool("compiler", load_target("linux-arm64")).family == "gcc"
    with pytest.raises(ToolchainError):
        find_tool("compiler", load_target("android-arm64"))


def test_target_file_names_the_compiler(path_with: object) -> None:
    path_with("my-gcc", "clang-22")
    target = load_target("linux-x86-64")
    target = replace(target, toolchain=replace(target.toolchain, cc="my-gcc"))
    assert find_tool("compiler", target).argv == ("/tools/my-gcc",)
    with pytest.raises(ToolchainError, match="its compiler 'my-cc' is not on PATH"):
        find_tool("compiler", replace(target, toolchain=replace(target.toolchain, cc="my-cc")))


def test_ndk_comes_first(path_with: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path_with("clang-22")
    tools = tmp_path / "toolchains" / "llvm" / "prebuilt" / "linux-x86_64" / "bin"
    tools.mkdir(parents=True)
    (tools / "clang").touch()
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path))
    assert find_tool("compiler", load_target("android-arm64")).argv == (str(tools / "clang"),)
    assert find_tool("compiler", load_target("linux-x86-64")).argv == ("/tools/clang-22",)


def test_wrong_ndk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_NDK_HOME", str(tmp_path))
    with pytest.raises(ToolchainError, match=r"ANDROID_NDK_HOME='.*': no toolchains/llvm/prebuilt"):
        find_tool("compiler", load_target("android-arm64"))


def test_failure_quotes_the_tool() -> None:
    with pytest.raises(ToolchainError, match=r"counting failed: .*error: too many"):
        run_tool(["sh", "-c", "echo 'error: too many' >&2; exit 3"], "counting")
