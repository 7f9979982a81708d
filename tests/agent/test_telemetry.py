"""What the agent says of a device, read from made-up files of the kinds that phones and boards have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import Agent

CPU, THERMAL, POWER = "sys/devices/system/cpu", "sys/class/thermal", "sys/class/power_supply"
PHONE: dict[str, object] = {
    f"{CPU}/cpu0/cpufreq/cpuinfo_max_freq": 1804800,
    f"{CPU}/cpu0/cpufreq/scaling_max_freq": 1804800,
    f"{CPU}/cpu0/cpufreq/scaling_cur_freq": 1209600,
    f"{CPU}/cpu0/cpufreq/scaling_governor": "schedutil",
    f"{CPU}/cpu2/cpufreq/cpuinfo_max_freq": 2841600,
    f"{CPU}/cpu2/cpufreq/scaling_max_freq": 2841600,
    f"{CPU}/cpu2/cpufreq/scaling_cur_freq": 2841600,
    f"{THERMAL}/thermal_zone0/type": "battery",
    f"{THERMAL}/thermal_zone0/temp": 51000,
    f"{THERMAL}/thermal_zone3/type": "cpu-1-0-usr",
    f"{THERMAL}/thermal_zone3/temp": 45500,
    f"{THERMAL}/thermal_zone4/type": "cpu-1-1-usr",
    f"{THERMAL}/thermal_zone4/temp": 47300,
    f"{THERMAL}/thermal_zone5/type": "cpu-off",
    f"{THERMAL}/thermal_zone5/temp": -273000,
    f"{THERMAL}/cooling_device0/type": "thermal-cpufreq-0",
    f"{THERMAL}/cooling_device0/cur_state": 0,
    f"{THERMAL}/cooling_device1/type": "fan",
    f"{THERMAL}/cooling_device1/cur_state": 3,
    f"{POWER}/usb/type": "USB",
    f"{POWER}/battery/type": "Battery",
    f"{POWER}/battery/capacity": 83,
    f"{POWER}/battery/temp": 291,
    "sys/class/backlight/panel0-backlight/brightness": 88,
    "sys/devices/soc0/machine": "SM8550",
    "sys/devices/soc0/serial_number": "1234567",
    "proc/version": "Linux version 5.15.78 (build@host) \x07bell",
    "proc/loadavg": "1.50 1.20 1.00 7/1234 4242",
}  # fmt: skip


def facts(tmp_path: Path, files: dict[str, object], *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what an agent says of a device that has these files: its description, its status."""
    for name, content in files.items():
        path = tmp_path / "system" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    (tmp_path / "system").mkdir(exist_ok=True)
    agent = Agent(tmp_path / "agent", "host", "--sysroot", str(tmp_path / "system"), *options)
    try:
        with agent.connect() as client:
            return client.describe(), client.status()
    finally:
        agent.stop()


def test_a_phone_is_read(tmp_path: Path) -> None:
    description, status = facts(tmp_path, PHONE)
    assert description == {
        "serial": "1234567", "soc": "SM8550", "abi": "x86-64", "core_khz": (1804800, 0, 2841600),
        "system": "Linux version 5.15.78 (build@host) ?bell", "loads_libraries": True,
    }  # fmt: skip
    assert status == {
        "celsius": 47.3,  # the hottest of the cores' zones: the battery's is not one, and one of them is off
        "battery_percent": 83.0, "battery_celsius": 29.1, "governor": "schedutil", "core_khz": (1209600, 0, 2841600),
        "load": 7.0, "screen_on": True, "throttled": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{f"{CPU}/cpu2/cpufreq/scaling_max_freq": 1900800}, {f"{THERMAL}/cooling_device0/cur_state": 2}],
)
def test_throttling_is_seen(tmp_path: Path, change: dict[str, object]) -> None:
    assert facts(tmp_path, PHONE | change)[1]["throttled"] is True


def test_a_device_that_tells_nothing(tmp_path: Path) -> None:
    description, status = facts(tmp_path, {}, "--name", "board 7")
    assert {description[name] for name in ("soc", "system")} == {"unknown"}
    assert (description["serial"], description["abi"], description["core_khz"]) == ("board 7", "x86-64", ())
    assert set(status.values()) == {None, ()}


def test_a_board_is_read(tmp_path: Path) -> None:
    files = {
        "proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 108\nHardware\t: BCM2835\n",
        "proc/device-tree/serial-number": "10000000abcdef",
        f"{THERMAL}/thermal_zone0/type": "unnamed",
        f"{THERMAL}/thermal_zone0/temp": "48",  # an old kernel says degrees
        "sys/class/backlight/lcd/brightness": 10,
        "sys/class/backlight/lcd/bl_power": 4,
        "proc/loadavg": "garbage",
    }
    description, status = facts(tmp_path, files)
    assert (description["soc"], description["serial"]) == ("BCM2835", "10000000abcdef")
    assert (status["celsius"], status["screen_on"], status["load"]) == (48.0, False, None)


def test_nonsense_is_left_out(tmp_path: Path) -> None:
    files = dict.fromkeys(PHONE, "9" * 400) | {f"{POWER}/battery/type": "Battery"}
    description, status = facts(tmp_path, files)
    assert description["core_khz"] == () and len(description["soc"]) <= 96
    assert status["celsius"] is None and status["battery_percent"] is None and status["throttled"] is None
