"""The gate before each batch: may this phone measure now, and if not, why.

    reasons(status, limits) -> ["the processor is at 52.0 °C; it may start below 45 °C", ...]

Two kinds: ``warm`` passes by waiting (the device is "cooling"), ``unfit`` wants a charger, a setting or a person.
What a phone cannot tell is never a reason. The limits are data: ``preflight.toml`` in the broker's state folder.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from xnncc.errors import BadInput, nearest
from xnncc.rack.phone import Description, Status

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BIGGEST_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What a phone must show before it measures."""

    max_celsius: float = 45.0  # processor; phones idle at 30 to 40, and throttle from about 60
    max_battery_celsius: float = 38.0  # chargers cut the current from 40 to 45 on
    min_battery_percent: float = 20.0  # below 15 to 20 power saving caps the clocks
    slow_governors: tuple[str, ...] = ("powersave", "conservative")
    screen: str = "on"  # "on", "off" or "any"; with the screen off Android keeps shells to the small cores
    max_load: float = 3.0  # threads that run or want to at one moment; the agent that looks is one of them
    allow_throttled: bool = False


@dataclass(frozen=True)
class LimitTable:
    """The limits of every device, and the exceptions by serial number or by key (``soc-abi``)."""

    every: Limits = Limits()
    exceptions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def of(self, device: Description) -> Limits:
        """Return the limits of one device: everyone's, changed by its key's, changed by its serial number's."""
        limits = self.every
        for name in (device.key, device.serial):
            limits = replace(limits, **self.exceptions.get(name, {}))
        return limits


def warm(status: Status, limits: Limits) -> list[str]:
    """Return the reasons that waiting takes away."""
    found = []
    if status.celsius is not None and status.celsius > limits.max_celsius:
        found.append(f"the processor is at {status.celsius:.1f} °C; it may start below {limits.max_celsius:g} °C")
    if status.battery_celsius is not None and status.battery_celsius > limits.max_battery_celsius:
        limit = limits.max_battery_celsius
        found.append(f"the battery is at {status.battery_celsius:.1f} °C; it may start below {limit:g} °C")
    if status.throttled and not limits.allow_throttled:
        found.append("it says that it throttles its clocks")
    return found


def unfit(status: Status, limits: Limits) -> list[str]:
    """Return the reasons that want a charger, a setting or a person."""
    found = []
    if status.battery_percent is not None and status.battery_percent < limits.min_battery_percent:
        limit = limits.min_battery_percent
        found.append(f"the battery has {status.battery_percent:.0f} %; it needs {limit:g} %: charge it")
    if status.governor is not None and status.governor in limits.slow_governors:
        found.append(f"the governor is '{status.governor}', which keeps the clocks down: turn power saving off")
    if status.screen_on is not None and limits.screen != "any" and status.screen_on != (limits.screen == "on"):
        found.append(f"the screen is {'on' if status.screen_on else 'off'}; it must be {limits.screen}")
    if status.load is not None and status.load > limits.max_load:
        found.append(f"{status.load:.0f} threads want to run; at most {limits.max_load:g} may")
    return found


def reasons(status: Status, limits: Limits) -> list[str]:
    """Return why this phone must not measure now, one sentence each; empty when it may."""
    return [*warm(status, limits), *unfit(status, limits)]


def read_limits(path: Path) -> LimitTable:
    """Return the limits of a file: keys of Limits at the top, exceptions in ``[device."SERIAL or KEY"]``.

    A file that is not there changes nothing. Raises: BadInput.
    """
    if not path.is_file():
        return LimitTable()
    what = f"'{path}'"
    try:
        with path.open("rb") as file:
            data = file.read(_BIGGEST_FILE_BYTES + 1)
        if len(data) > _BIGGEST_FILE_BYTES:
            raise BadInput(what, f"it is larger than {_BIGGEST_FILE_BYTES} bytes", "Limits need a few lines.")
        table = tomllib.loads(data.decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(what, str(error), "Write TOML, for example: max_celsius = 45") from None
    devices = table.pop("device", {})
    if not isinstance(devices, dict) or not all(isinstance(more, dict) for more in devices.values()):
        raise BadInput(what, "'device' is no table of tables", 'Write [device."SERIAL"] and the limits below it.')
    exceptions = {name: _checked(more, what) for name, more in devices.items()}
    return LimitTable(replace(Limits(), **_checked(table, what)), exceptions)


def _checked(values: dict[str, Any], what: str) -> dict[str, Any]:
    """Return the values in Limits' own types. Raises: BadInput for a key or a type that it has not."""
    types = {f.name: type(f.default) for f in fields(Limits)}
    result: dict[str, Any] = {}
    for name, value in values.items():
        if name not in types:
            known = "Known: " + ", ".join(types) + "."
            raise BadInput(f"{what}: unknown limit '{name}'{nearest(name, list(types))}", "", known)
        wanted = types[name]
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if wanted is tuple and isinstance(value, list) and all(isinstance(word, str) for word in value):
            value = tuple(value)
        if type(value) is not wanted or value != value:
            shown = {"tuple": "a list of names", "float": "a number", "bool": "true or false", "str": "a word"}
            raise BadInput(f"{what}: '{name}' is {value!r}", f"expected {shown[wanted.__name__]}")
        result[name] = value
    if result.get("screen", "on") not in ("on", "off", "any"):
        raise BadInput(f"{what}: 'screen' is '{result['screen']}'", "", "Known: on, off, any.")
    return result
