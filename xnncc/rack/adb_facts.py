"""What Android says of a phone, asked by two shell commands and read with bounds: who it is, and how it feels.

    description_of(adb) -> Description        status_of(adb) -> Status

A vendor may leave out any of it; what is not there, or makes no sense, is None or "unknown".
"""

from __future__ import annotations

import re
from dataclasses import fields

from xnncc.device.adb_client import Adb
from xnncc.errors import DeviceError
from xnncc.rack.names import plain_name
from xnncc.rack.phone import Description, Status

_MOST_CORES = 32
_PROPERTIES = (
    "ro.serialno", "ro.soc.model", "ro.board.platform", "ro.product.cpu.abilist", "ro.build.fingerprint",
    "ro.build.version.release",
)  # fmt: skip
_WHO = (
    "".join(f'echo "{name}=$(getprop {name})"; ' for name in _PROPERTIES)
    + "for f in /sys/devices/system/cpu/cpu[0-9]*/cpufreq/cpuinfo_max_freq; do "
    'c=${f%/cpufreq*}; [ -r $f ] && echo "core${c##*/cpu}=$(cat $f)"; done; true'
)
_MARK = "=====xnncc"
_HOW = (
    f"dumpsys battery; echo {_MARK}; dumpsys thermalservice; echo {_MARK}; "
    f"dumpsys power | grep -E 'mWakefulness=|Display Power: state='; true"
)
_LONGEST_WORD = 120


def description_of(adb: Adb, abis: list[str]) -> Description:
    """Return who the phone is; ``abis``: what we have agents for. Raises: DeviceError, also when it runs none."""
    facts = {}
    for line in adb.shell(_WHO).splitlines():
        key, equals, value = line.strip().partition("=")
        if equals:
            facts[key] = value.strip()[:_LONGEST_WORD]
    runs = [abi for abi in facts.get("ro.product.cpu.abilist", "").split(",") if abi]
    usable = [abi for abi in runs if abi in abis]
    if not usable:
        why = f"it runs {', '.join(runs) or 'no ABI that it names'}, and there are agents for {', '.join(abis)}"
        raise DeviceError(adb.what, why)
    soc = plain_name(facts.get("ro.soc.model", "")) or plain_name(facts.get("ro.board.platform", ""))
    android = facts.get("ro.build.version.release", "")
    build = facts.get("ro.build.fingerprint", "")
    return Description(
        serial=plain_name(facts.get("ro.serialno", "")) or plain_name(f"adb-{adb.serial}"),
        soc=soc.lower() or "unknown",
        abi=usable[0],
        system=f"Android {android} {build}".strip() if android or build else "Android",
        core_khz=_core_speeds(facts),
    )


def _core_speeds(facts: dict[str, str]) -> tuple[int, ...]:
    speeds = []
    for core in range(_MOST_CORES):
        value = facts.get(f"core{core}", "")
        if not value.isdecimal() or len(value) > 9:
            break
        speeds.append(int(value))
    return tuple(speeds)


def status_of(adb: Adb) -> Status:
    """Return what Android's services say: battery, thermal state, screen. Raises: DeviceError when it is not there."""
    return parse_status(adb.shell(_HOW))


def parse_status(text: str) -> Status:
    """Return what the answers of dumpsys battery, thermalservice and power say, with a line of _MARK between them."""
    battery, thermal, power = [*text.split(_MARK), "", ""][:3]
    level, scale = _number(r"^\s*level: (\d+)", battery), _number(r"^\s*scale: (\d+)", battery) or 100.0
    tenths = _number(r"^\s*temperature: (-?\d+)", battery)
    state = _number(r"^\s*Thermal Status: (\d+)", thermal)
    # mType 0 is a CPU sensor; the cached list of older readings stands first, so the last of a name counts.
    pattern = r"Temperature\{mValue=(-?\d+(?:\.\d+)?), mType=0, mName=([^,}]{1,64})"
    cores = {name: float(value) for value, name in re.findall(pattern, thermal)}
    sane = [value for value in cores.values() if -30 < value < 150]
    awake = re.search(r"mWakefulness=(\w+)", power)
    display = re.search(r"Display Power: state=(\w+)", power)
    screen = display[1] == "ON" if display else awake[1] == "Awake" if awake else None
    return Status(
        celsius=max(sane) if sane else None,
        battery_percent=100 * level / scale if level is not None and 0 <= level <= scale else None,
        battery_celsius=tenths / 10 if tenths is not None and -300 < tenths < 1500 else None,
        screen_on=screen,
        throttled=state >= 1 if state is not None else None,
    )


def _number(pattern: str, text: str) -> float | None:
    found = re.search(pattern, text, re.MULTILINE)
    return float(found[1]) if found and len(found[1]) <= 9 else None


def merged(agent: Status, android: Status) -> Status:
    """Return what either knows: the agent's reading first, but Android's of the screen, the warmer, and any throttling.

    A screen of light diodes has no backlight whose brightness the agent could read.
    """
    known = {f.name: getattr(agent, f.name) for f in fields(Status)}
    known = {name: getattr(android, name) if value in (None, ()) else value for name, value in known.items()}
    warmest = [celsius for celsius in (agent.celsius, android.celsius) if celsius is not None]
    claims = [claim for claim in (agent.throttled, android.throttled) if claim is not None]
    known["screen_on"] = agent.screen_on if android.screen_on is None else android.screen_on
    known["celsius"] = max(warmest) if warmest else None
    known["throttled"] = any(claims) if claims else None
    return Status(**known)
