"""A phone's ``/sys`` and ``/proc/loadavg`` as files, which qemu-user shows to the programs that it runs.

qemu-aarch64 -L <root> program        reads <root>/sys/class/thermal/... where there is such a file
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xnncc.codegen.emulators import QEMU, find_emulator
from xnncc.device.shim import bionic_shim
from xnncc.target import Target

CORE_KHZ = (2_400_000, 1_800_000)  # as many cores as the smallest machine that runs the tests has


def emulation(target: Target, root: Path) -> list[str]:
    """Return what stands before an Arm program of ``target`` so that it finds ``root`` for its system.

    Raises: LookupError naming what is not installed.
    """
    emulator = find_emulator(target)
    if emulator is None or emulator.missing:
        raise LookupError(f"{emulator.missing} is missing: {emulator.install}" if emulator else "no emulator")
    qemu = QEMU[target.arch, target.toolchain.libc]
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "lib").exists():
        (root / "lib").symlink_to(qemu.root / "lib")
    command = [emulator.found, "-cpu", qemu.cpu, "-L", str(root)]
    if target.toolchain.libc == "bionic":
        command += [str(qemu.root / qemu.loader), "--library-path", str(bionic_shim(target))]
    return command


class Sysfs:
    """The files below ``root``; qemu remembers which are missing, so all of them are there from the start."""

    def __init__(self, root: Path, soc: str, core_khz: Sequence[int] = CORE_KHZ) -> None:
        self.root, self.core_khz = root, tuple(core_khz)
        for core, khz in enumerate(self.core_khz):
            self._write(f"sys/devices/system/cpu/cpu{core}/cpufreq/cpuinfo_max_freq", khz)
        self._write("sys/devices/soc0/machine", soc.upper())
        self._write("sys/class/thermal/thermal_zone0/type", "cpu-0-0")
        self._write("sys/class/power_supply/battery/type", "Battery")
        self._write("sys/class/backlight/panel0/brightness", 120)
        self.speed(1.0)
        self.governor("schedutil")
        self.celsius(36.0)
        self.battery(90, 27.0)
        self.load(1)

    def celsius(self, celsius: float) -> None:
        """Show this temperature of the processor."""
        self._write("sys/class/thermal/thermal_zone0/temp", round(celsius * 1000))

    def speed(self, share: float) -> None:
        """Let every core run at this share of its top speed, and no faster."""
        for core, khz in enumerate(self.core_khz):
            for name in ("scaling_cur_freq", "scaling_max_freq"):
                self._write(f"sys/devices/system/cpu/cpu{core}/cpufreq/{name}", round(khz * share))

    def governor(self, name: str) -> None:
        """Show this governor."""
        for core in range(len(self.core_khz)):
            self._write(f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor", name)

    def battery(self, percent: int, celsius: float) -> None:
        """Show this battery."""
        self._write("sys/class/power_supply/battery/capacity", percent)
        self._write("sys/class/power_supply/battery/temp", round(celsius * 10))

    def load(self, threads: int) -> None:
        """Show this many runnable threads."""
        self._write("proc/loadavg", f"{threads}.00 {threads}.00 {threads}.00 {threads}/300 4242")

    def _write(self, path: str, value: object) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = place.with_name(f".{place.name}.new")
        aside.write_text(f"{value}\n", encoding="ascii")
        aside.replace(place)
