"""Which instructions this machine has, read from /proc/cpuinfo: the names are the x86-64 psABI's levels."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

# https://gitlab.com/x86-psABIs/x86-64-ABI, table "micro-architecture levels"; spelt as Linux does ("abm" is LZCNT).
_V3 = frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"])
_V4 = _V3 | frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])


def host_architecture() -> str:
    """Return "x86_64", "aarch64" or what else the kernel calls this machine."""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


@cache
def cpu_facts() -> dict[str, str]:
    """Return what Linux says of the first CPU, key -> text; empty where there is no /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    first = text.strip().partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def cpu_flags() -> frozenset[str]:
    """Return the CPU's feature flags."""
    facts = cpu_facts()
    return frozenset((facts.get("flags") or facts.get("Features", "")).split())


def ports_512(facts: dict[str, str] | None = None) -> int:
    """Return how many 512-bit multiply-adds, and loads, this CPU starts a cycle: Zen 4 pairs 256-bit units for one.

    https://www.agner.org/optimize/microarchitecture.pdf, "AMD Zen 4"; AMD's family 25 has AVX-512 from there on.
    """
    facts = cpu_facts() if facts is None else facts
    return 1 if (facts.get("vendor_id"), facts.get("cpu family")) == ("AuthenticAMD", "25") else 2


def host_abi(flags: frozenset[str] | None = None) -> str:
    """Return this machine's level: "x86-64-v4", "x86-64-v3", "x86-64-v2" (anything less), or "arm64"."""
    if host_architecture() == "aarch64":
        return "arm64"
    has = cpu_flags() if flags is None else flags
    return "x86-64-v4" if has >= _V4 else "x86-64-v3" if has >= _V3 else "x86-64-v2"
