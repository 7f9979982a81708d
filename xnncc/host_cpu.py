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
def cpu_flags() -> frozenset[str]:
    """Return the CPU's feature flags; empty where there is no /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def host_abi(flags: frozenset[str] | None = None) -> str:
    """Return this machine's level: "x86-64-v4", "x86-64-v3", "x86-64-v2" (anything less), or "arm64"."""
    if host_architecture() == "aarch64":
        return "arm64"
    has = cpu_flags() if flags is None else flags
    return "x86-64-v4" if has >= _V4 else "x86-64-v3" if has >= _V3 else "x86-64-v2"
