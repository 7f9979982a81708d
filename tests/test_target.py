"""Every shipped target file, and what happens to files that are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from xnncc.errors import BadTarget
from xnncc.host_cpu import host_abi, ports_512
from xnncc.target import Target, list_targets, load_target, targets_folder

SHIPPED = [name for name in list_targets() if name != "host"]


def written(folder: Path, *replaced: tuple[str, str]) -> Path:
    """Return a target file like linux-x86-64 under the name ``my``, with texts replaced."""
    text = (targets_folder() / "linux-x86-64.toml").read_text().replace('"linux-x86-64"', '"my"')
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    path = folder / "my.toml"
    path.write_text(text)
    return path


def test_lists_what_the_readme_promises() -> None:
    assert SHIPPED == [
        "android-arm32", "android-arm64", "ios-arm64", "linux-arm64", "linux-x86-64", "macos-arm64", "web-wasm",
    ]  # fmt: skip


@pytest.mark.parametrize("name", SHIPPED)
def test_tvm_knows_the_target(name: str) -> None:
    import tvm

    target = load_target(name)
    tvm_target = target.tvm_target()
    assert str(tvm.target.Target(dict(tvm_target.export()))) == str(tvm_target)
    assert str(tvm_target.attrs["mtriple"]).split("-")[0] == target.arch


@pytest.mark.parametrize("name", SHIPPED)
def test_tier_one_has_a_device(name: str) -> None:
    target = load_target(name)
    assert (target.tier == 1) == bool(target.device)
    assert target.proof and target.summary


def test_host_has_the_widest_vectors() -> None:
    host = load_target("host")
    assert host.name == "host" and host.device == "host"
    if host.arch == "x86_64":
        assert host.machine.lanes == {"x86-64-v4": 16, "x86-64-v3": 8}[host_abi()]
        assert host.tvm["vector-width"] == 32 * host.machine.lanes


def test_host_takes_avx512_where_the_cpu_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xnncc.target.host_architecture", lambda: "x86_64")
    monkeypatch.setattr("xnncc.target.host_abi", lambda: "x86-64-v4")
    host = load_target("host")
    assert (host.machine.lanes, host.machine.registers, host.abi) == (16, 32, "x86-64-v4")
    assert str(host.tvm_target().attrs["mcpu"]) == "skylake-avx512"


def test_host_with_avx512_has_shorter_vectors_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xnncc.target.host_architecture", lambda: "x86_64")
    monkeypatch.setattr("xnncc.target.host_abi", lambda: "x86-64-v4")
    narrower = load_target("host").narrower
    assert narrower is not None and narrower.narrower is None
    assert (narrower.name, narrower.machine.lanes, narrower.machine.registers) == ("host", 8, 32)
    assert narrower.tvm["vector-width"] == 256 and narrower.abi == "x86-64-v4"
    assert narrower.fingerprint != load_target("host").fingerprint


@pytest.mark.parametrize(
    ("vendor", "family", "ports"), [("AuthenticAMD", "25", 1), ("AuthenticAMD", "26", 2), ("GenuineIntel", "6", 2)]
)
def test_zen4_pairs_its_units_for_512_bits(vendor: str, family: str, ports: int) -> None:
    assert ports_512({"vendor_id": vendor, "cpu family": family}) == ports


def test_old_cpu_is_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xnncc.target.host_architecture", lambda: "x86_64")
    monkeypatch.setattr("xnncc.target.host_abi", lambda: "x86-64-v2")
    with pytest.raises(BadTarget, match="lacks AVX2 or FMA"):
        load_target("host")


def test_levels_follow_the_flags() -> None:
    v3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
    if host_abi() == "arm64":
        pytest.skip("an x86-64 machine is missing")
    assert host_abi(frozenset(v3 - {"fma"})) == "x86-64-v2"
    assert host_abi(frozenset(v3)) == "x86-64-v3"
    assert host_abi(frozenset(v3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})) == "x86-64-v4"


def test_own_file_is_a_target(tmp_path: Path) -> None:
    target = load_target(str(written(tmp_path)))
    assert isinstance(target, Target)
    assert (target.name, target.machine.lanes, target.toolchain.libc) == ("my", 8, "glibc")


def test_suggests_the_near_name() -> None:
    with pytest.raises(BadTarget, match="unknown target 'andriod-arm64'; did you mean 'android-arm64'"):
        load_target("andriod-arm64")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('tier = 1', "tier = 7", "unknown tier '7'"),
        ('tier = 1', "teir = 1", r"unknown key 'teir' in \[target\]; did you mean 'tier'"),
        ("[machine]", "[machin]", "unknown table or key 'machin'; did you mean 'machine'"),
        ("lanes = 8", 'lanes = "8"', "should be a whole number"),
        ("lanes = 8", "lanes = 4", "vector-width 256 bits is not 4 lanes"),
        ('mtriple = "x86_64-linux-gnu"', 'mtriple = "arm99-foo-bar"', "unknown architecture in tvm.mtriple 'arm99'"),
        ('triple = "x86_64-linux-gnu"', 'triple = "aarch64-linux-gnu"', "unknown architecture|name two architectures"),
        ('extends = "_x86"', 'extends = "_x87"', "extends '_x87', which does not exist; did you mean '_x86'"),
        ('extends = "_x86"', 'extends = "linux-arm64"', "One level only"),
        ('name = "my"', 'name = "other"', "differs from the file's stem"),
        ('device = "host"', "", "tier 1 without a device"),
        ('summary = "Linux', 'summry = "Linux', "unknown key 'summry'"),
        ("[target]", "[target", "not TOML"),
    ],
)  # fmt: skip
def test_refuses(tmp_path: Path, old: str, new: str, message: str) -> None:
    if old == 'triple = "x86_64-linux-gnu"':
        path = written(tmp_path, ('[toolchain]\ntriple = "x86_64', '[toolchain]\ntriple = "aarch64'))
    else:
        path = written(tmp_path, (old, new))
    with pytest.raises(BadTarget, match=message):
        load_target(str(path))


def test_missing_file_says_so() -> None:
    with pytest.raises(BadTarget, match="No such file"):
        load_target("./nowhere.toml")


def test_unknown_cpu_never_becomes_generic(tmp_path: Path) -> None:
    target = load_target(str(written(tmp_path, ('"haswell"', '"haswel"'))))
    with pytest.raises(BadTarget, match="LLVM knows no CPU 'haswel' for x86_64; did you mean 'haswell'"):
        target.tvm_target()
