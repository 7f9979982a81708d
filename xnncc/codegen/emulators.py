"""Which emulator or browser runs which target here, and what to install when it is not there."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from xnncc.target import Target


@dataclass(frozen=True)
class Qemu:
    """How one architecture is emulated by qemu-user."""

    program: str
    cpu: str  # the oldest core that the target's floor allows: an instruction beyond it ends in SIGILL
    root: Path  # where a glibc of that architecture lies: the target's own, or what the bionic shim stands on
    loader: str  # its dynamic linker, below root
    packages: str


QEMU = {
    ("aarch64", "glibc"): Qemu(
        "qemu-aarch64", "cortex-a53", Path("/usr/aarch64-linux-gnu"), "lib/ld-linux-aarch64.so.1",
        "qemu-user libc6-arm64-cross",
    ),
    ("aarch64", "bionic"): Qemu(
        "qemu-aarch64", "cortex-a53", Path("/usr/aarch64-linux-gnu"), "lib/ld-linux-aarch64.so.1",
        "qemu-user libc6-arm64-cross",
    ),
    ("armv7a", "bionic"): Qemu(
        "qemu-arm", "cortex-a9", Path("/usr/arm-linux-gnueabi"), "lib/ld-linux.so.3", "qemu-user libc6-armel-cross",
    ),
}  # fmt: skip

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Emulator:
    """An emulator or a browser, found or not."""

    found: str  # path of the program; "" when something is missing
    missing: str  # what; "" when found
    install: str  # the command that helps


def find_emulator(target: Target) -> Emulator | None:
    """Return the emulator that runs ``target``, or None where there is none such."""
    if target.toolchain.kind == "wasm":
        node = shutil.which("node") or shutil.which("nodejs") or ""
        return Emulator(node, "" if node else "node", "apt-get install nodejs")
    qemu = QEMU.get((target.arch, target.toolchain.libc))
    if qemu is None:
        return None
    program = shutil.which(qemu.program) or ""
    missing = qemu.program if not program else "" if (qemu.root / qemu.loader).exists() else str(qemu.root)
    return Emulator("" if missing else program, missing, f"apt-get install {qemu.packages}")


def find_browser() -> Emulator:
    """Return the Chromium that loads pages for ``--device browser``."""
    browser = next((path for name in _BROWSERS if (path := shutil.which(name))), "")
    return Emulator(browser, "" if browser else "chromium", "apt-get install chromium")
