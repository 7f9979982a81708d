"""Target files: ``targets/*.toml`` -> ``Target``, checked whole before TVM sees any of it.

TVM 0.27 kills the process on an unknown architecture and quietly falls back to ``generic`` on an unknown CPU, so both
are looked up here first. A file is a base plus a difference: ``extends`` names one shared part, and a key given in the
file replaces the same key there. Unknown keys are errors.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from xnncc.errors import BadTarget, nearest
from xnncc.host_cpu import host_abi, host_architecture, ports_512

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# First part of tvm.mtriple. TVM 0.27 dies of SIGSEGV on one that it does not know, so this list is our own.
ARCHITECTURES = ("x86_64", "aarch64", "armv7a", "wasm32")
KINDS = {"elf": ("so", "a"), "macho": ("dylib", "a"), "wasm": ("wasm",)}
LIBCS = {"elf": ("glibc", "bionic"), "macho": ("darwin",), "wasm": ("wasi",)}


@dataclass(frozen=True)
class Machine:
    """What TVM cannot know and the schedules need. Caches in KiB; ports are operations a cycle; latency in cycles."""

    lanes: int  # float32 lanes of a vector register
    registers: int  # vector registers
    fma_ports: int = 2
    load_ports: int = 2
    fma_latency: int = 4
    l1d_kib: int = 32
    l2_kib: int = 256
    l3_kib: int = 0
    big_cores: int = 4
    in_order: bool = False
    multiplies_by_lane: bool = False  # a multiply-add takes one lane of a register (Arm NEON)
    fuses_multiply_add: bool = True  # one instruction; else products need registers of their own


@dataclass(frozen=True)
class Toolchain:
    """How the runtime is compiled and the library linked. ``cc`` and ``ld`` name tools that win over any found."""

    kind: str  # "elf", "macho" or "wasm"
    triple: str  # as clang writes it
    libc: str
    output: tuple[str, ...]
    cc: str = ""
    ld: str = ""


@dataclass(frozen=True)
class Runtime:
    """The runtime's budget on this target."""

    max_kib: int = 200


@dataclass(frozen=True)
class Target:
    """One class of device. ``tier``: 1 = built and run by the tests, 2 = built only, 3 = unproven."""

    name: str
    summary: str
    tier: int
    abi: str
    tvm: dict[str, Any] = field(hash=False)
    machine: Machine
    toolchain: Toolchain
    runtime: Runtime = field(default_factory=Runtime)
    device: str = ""  # which device proves it: "host", "emulator" or ""
    proof: str = ""
    narrower: Target | None = None  # the same device with shorter vectors, for networks that do not fill long ones

    @property
    def arch(self) -> str:
        """Architecture: first part of the triple, "x86_64", "aarch64", "armv7a" or "wasm32"."""
        return str(self.tvm["mtriple"]).split("-", 1)[0]

    @property
    def fingerprint(self) -> str:
        """What makes a tuned schedule fit: instructions and the machine as the schedules see it, whatever its name."""
        own = " ".join(f"{name}={value}" for name, value in asdict(self.machine).items())
        features = ",".join(self.tvm.get("mattr", ()))
        return f"{self.arch} {self.tvm.get('mcpu', 'generic')} {features} {own}".replace("  ", " ")

    def tvm_target(self) -> Any:
        """Return the ``tvm.target.Target``; its CPU is one that this LLVM knows.

        Raises: BadTarget for a CPU that LLVM would have replaced with ``generic``.
        """
        import tvm

        triple, mcpu = str(self.tvm["mtriple"]), str(self.tvm.get("mcpu", "generic"))
        if not tvm.target.codegen.llvm_is_valid_cpu(mcpu, triple):
            bare = tvm.target.Target({"kind": "llvm", "mtriple": triple})
            known = [str(cpu) for cpu in tvm.target.codegen.llvm_get_cpu_archlist(bare)]
            raise BadTarget(
                f"target '{self.name}'",
                f"LLVM knows no CPU '{mcpu}' for {self.arch}{nearest(mcpu, known)}",
                "Known: " + ", ".join(sorted(known)) + ".",
            )
        return tvm.target.Target(dict(self.tvm))


def targets_folder() -> Path:
    """Return the folder of the shipped target files, in an installed wheel or in a checkout."""
    here = Path(__file__).resolve().parent
    return here / "targets" if (here / "targets").is_dir() else here.parent / "targets"


def list_targets() -> list[str]:
    """Return the names that ``--target`` takes, sorted, ``host`` last."""
    return [*sorted(p.stem for p in targets_folder().glob("*.toml") if not p.stem.startswith("_")), "host"]


def load_target(name: str) -> Target:
    """Return the target of that name, or of the target file at that path (``./my.toml``).

    ``host`` is the Linux target of this machine's architecture, raised to the best vectors it has.
    Raises: BadTarget.
    """
    if name == "host":
        return _host_target()
    if name.endswith(".toml") or "/" in name:
        return _load_file(Path(name))
    path = targets_folder() / f"{name}.toml"
    if name.startswith("_") or not path.is_file():
        known = list_targets()
        raise BadTarget(f"unknown target '{name}'{nearest(name, known)}", "", "Known: " + ", ".join(known) + ".")
    return _load_file(path)


def _host_target() -> Target:
    """Return ``linux-x86-64`` or ``linux-arm64`` under the name ``host``; AVX-512 is used where the CPU has it."""
    arch = host_architecture()
    if not sys.platform.startswith("linux") or arch not in ("x86_64", "aarch64"):
        raise BadTarget("target 'host'", f"{sys.platform} on {arch} is no host of xnncc", "Use Linux on x86-64 or Arm.")
    if arch == "aarch64":
        return replace(load_target("linux-arm64"), name="host", device="host", summary="this machine: 64-bit Arm, NEON")
    base, abi = load_target("linux-x86-64"), host_abi()
    if abi not in ("x86-64-v3", "x86-64-v4"):
        raise BadTarget(
            "target 'host'", "this CPU lacks AVX2 or FMA", "Use a machine since Haswell or Zen (x86-64-v3)."
        )
    if abi == "x86-64-v3":
        return replace(base, name="host", summary="this machine: AVX2 and FMA")
    tvm = {**base.tvm, "mcpu": "skylake-avx512"}
    ports = ports_512()
    wide = replace(base.machine, lanes=16, registers=32, fma_ports=ports, load_ports=ports, l2_kib=1024)
    narrow = replace(
        base,
        name="host",
        summary="this machine: AVX-512 on 256-bit vectors",
        abi=abi,
        tvm={**tvm, "vector-width": 256},
        machine=replace(base.machine, registers=32, l2_kib=1024),
    )
    # Without the width LLVM keeps to 256-bit ymm.
    return replace(
        narrow,
        summary="this machine: AVX-512",
        tvm={**tvm, "vector-width": 512},
        machine=wide,
        narrower=narrow,
    )


def _load_file(path: Path) -> Target:
    """Return the checked target of one file, its shared part merged in."""
    data = _read_toml(path)
    base_name = data.pop("extends", "")
    if base_name:
        data = _merge(_read_base(path, str(base_name)), data)
    target = _from_tables(path, data)
    _check_fields(path, target)
    return target


def _bad(path: Path, why: str, next_step: str = "Compare with a file in targets/.") -> BadTarget:
    return BadTarget(f"target file '{path}'", why, next_step)


def _known(names: Sequence[str]) -> str:
    return "Known: " + ", ".join(names) + "."


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or str(error)
        raise _bad(path, why, "Give the name of a target or an existing .toml file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _bad(path, f"not TOML: {error}") from None


def _read_base(path: Path, base_name: str) -> dict[str, Any]:
    """Return the tables of the shared part, looked for beside the file and then among the shipped ones."""
    for folder in (path.parent, targets_folder()):
        base = folder / f"{base_name}.toml"
        if base.is_file():
            tables = _read_toml(base)
            if "extends" in tables:
                raise _bad(base, "it is extended and has 'extends' itself", "One level only: put the keys in one file.")
            return tables
    known = sorted(p.stem for p in targets_folder().glob("*.toml"))
    raise _bad(path, f"extends '{base_name}', which does not exist{nearest(base_name, known)}", _known(known))


def _merge(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = {key: dict(value) if isinstance(value, dict) else value for key, value in base.items()}
    for key, value in own.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return merged


_TABLES: dict[str, tuple[str, ...]] = {
    "target": ("name", "summary", "tier", "abi", "device", "proof"),
    "tvm": ("kind", "mtriple", "mcpu", "mattr", "mabi", "mfloat-abi", "vector-width", "num-cores"),
    "machine": tuple(Machine.__dataclass_fields__),
    "toolchain": tuple(Toolchain.__dataclass_fields__),
    "runtime": tuple(Runtime.__dataclass_fields__),
}
_REQUIRED: dict[str, tuple[str, ...]] = {
    "target": ("name", "summary", "tier", "abi"),
    "tvm": ("kind", "mtriple"),
    "machine": ("lanes", "registers"),
    "toolchain": ("kind", "triple", "libc", "output"),
}
_KIND_OF: dict[str, type] = {
    "mattr": list,
    "output": list,
    "in_order": bool,
    "multiplies_by_lane": bool,
    "fuses_multiply_add": bool,
}
_KIND_OF |= dict.fromkeys(("tier", "vector-width", "num-cores", "max_kib"), int)
_KIND_OF |= {key: int for key in Machine.__dataclass_fields__ if key not in _KIND_OF}


def _from_tables(path: Path, data: dict[str, Any]) -> Target:
    """Return the dataclass; every key is known, present where it must be, and of the right kind."""
    for table, keys in data.items():
        if table not in _TABLES or not isinstance(keys, dict):
            why = f"unknown table or key '{table}'{nearest(table, list(_TABLES))}"
            raise _bad(path, why, _known(["extends", *_TABLES]))
        for key, value in keys.items():
            if key not in _TABLES[table]:
                known = list(_TABLES[table])
                raise _bad(path, f"unknown key '{key}' in [{table}]{nearest(key, known)}", _known(known))
            kind = _KIND_OF.get(key, str)
            if type(value) is not kind or (type(value) is list and not all(isinstance(v, str) for v in value)):
                raise _bad(path, f"[{table}] {key} = {value!r} should be {_KIND_WORDS[kind]}")
    for table, names in _REQUIRED.items():
        for key in names:
            if key not in data.get(table, {}):
                raise _bad(path, f"[{table}] {key} is missing")
    return Target(
        **data["target"],
        tvm=data["tvm"],
        machine=Machine(**data["machine"]),
        toolchain=Toolchain(**{**data["toolchain"], "output": tuple(data["toolchain"]["output"])}),
        runtime=Runtime(**data.get("runtime", {})),
    )


_KIND_WORDS = {list: "a list of strings", bool: "true or false", int: "a whole number", str: "a string"}


def _check_fields(path: Path, target: Target) -> None:
    """Raise BadTarget for a file that contradicts itself."""
    chain, machine, tvm = target.toolchain, target.machine, target.tvm
    if target.name != path.stem:
        raise _bad(path, f"name '{target.name}' differs from the file's stem '{path.stem}'", "Rename one of them.")
    _check_word(path, "architecture in tvm.mtriple", target.arch, ARCHITECTURES)
    _check_word(path, "tvm.kind", tvm["kind"], ("llvm",))
    _check_word(path, "tier", target.tier, (1, 2, 3))
    _check_word(path, "device", target.device, ("", "host", "emulator"))
    _check_word(path, "toolchain.kind", chain.kind, tuple(KINDS))
    _check_word(path, f"libc of kind '{chain.kind}'", chain.libc, LIBCS[chain.kind])
    for output in chain.output:
        _check_word(path, f"output of kind '{chain.kind}'", output, KINDS[chain.kind])
    _check_word(path, "machine.lanes", machine.lanes, (4, 8, 16))
    if target.tier == 1 and not (target.device and target.proof):
        raise _bad(path, "tier 1 without a device and words that prove it", "Set device and proof, or tier = 2.")
    first = chain.triple.split("-", 1)[0]
    if {"arm64": "aarch64"}.get(first, first) != target.arch:
        why = f"toolchain.triple '{chain.triple}' and tvm.mtriple '{tvm['mtriple']}' name two architectures"
        raise _bad(path, why, "Make them agree.")
    if tvm.get("vector-width", 32 * machine.lanes) != 32 * machine.lanes:
        why = f"vector-width {tvm['vector-width']} bits is not {machine.lanes} lanes of 32"
        raise _bad(path, why, "Make them agree.")
    if not chain.output:
        raise _bad(path, "toolchain.output is empty", _known(KINDS[chain.kind]))
    for key, kind in _KIND_OF.items():
        if kind is int and key != "l3_kib" and getattr(machine, key, 1) < 1:
            raise _bad(path, f"machine.{key} = {getattr(machine, key)}", "Only l3_kib may be 0.")


def _check_word(path: Path, what: str, found: Any, known: Sequence[str | int]) -> None:
    if found not in known:
        words = [str(word) or "none" for word in known]
        raise _bad(path, f"unknown {what} '{found}'{nearest(str(found), words)}", _known(words))
