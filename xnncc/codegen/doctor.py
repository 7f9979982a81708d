"""What this machine can build and run, target by target: the facts behind ``xnncc doctor``."""

from __future__ import annotations

from xnncc.codegen.emulators import find_emulator
from xnncc.codegen.toolchain import Fact, find_tool
from xnncc.errors import XnnccError
from xnncc.host_cpu import host_abi
from xnncc.target import Target, load_target

_ROLES = {
    "so": ("compiler", "linker"),
    "dylib": ("compiler", "linker"),
    "wasm": ("compiler", "linker"),
    "a": ("compiler", "archiver", "stripper"),
}


def describe_target(name: str) -> list[Fact]:
    """Return a fact about building for the target and, when something here can run it, one about that."""
    try:
        target = load_target(name)
    except XnnccError as error:
        return [Fact(name, "", f"build: {error.why}", error.next)]
    return [_build_fact(target), *([_run_fact(target)] if target.device else [])]


def _build_fact(target: Target) -> Fact:
    roles = sorted({role for output in target.toolchain.output for role in _ROLES[output]})
    try:
        found = ", ".join(find_tool(role, target).version for role in roles)
    except XnnccError as error:
        return Fact(target.name, "", f"build: {error.why}", error.next.removeprefix("Install it: "))
    return Fact(target.name, found, "build", "")


def _run_fact(target: Target) -> Fact:
    if target.device == "host":
        return Fact(target.name, f"this machine, {host_abi()}", "run", "")
    emulator = find_emulator(target)
    assert emulator is not None, "a target that names the emulator has one"
    if emulator.missing:
        return Fact(target.name, "", f"run: {emulator.missing} is missing", emulator.install)
    return Fact(target.name, emulator.found, "run", "")
