"""What Android's own answers are read as."""

from __future__ import annotations

import pytest

from xnncc.errors import DeviceError
from xnncc.rack.adb_facts import description_of, merged, parse_status
from xnncc.rack.phone import Status

ANSWERS = """Current Battery Service state:
  AC powered: false
  level: 43
  scale: 50
  temperature: 284
=====xnncc
IsStatusOverride: false
Thermal Status: 2
Cached temperatures:
\tTemperature{mValue=71.0, mType=0, mName=CPU0, mStatus=0}
Current temperatures from HAL:
\tTemperature{mValue=41.25, mType=0, mName=CPU0, mStatus=0}
\tTemperature{mValue=43.5, mType=0, mName=CPU1, mStatus=0}
\tTemperature{mValue=-274.0, mType=0, mName=CPU2, mStatus=0}
\tTemperature{mValue=99.0, mType=9, mName=NPU, mStatus=0}
=====xnncc
  mWakefulness=Dozing
Display Power: state=DOZE
"""


class Shell:
    """Stands for an Adb whose every command answers the same."""

    serial, what = "192.168.1.7:5555", "device 'adb:192.168.1.7:5555'"

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def shell(self, command: str) -> str:
        return self.answer


def test_status_of_the_services() -> None:
    status = parse_status(ANSWERS)
    assert status == Status(43.5, 86.0, 28.4, None, (), None, False, True)


@pytest.mark.parametrize("text", ["", "=====xnncc\n=====xnncc\n", "\0\xff" * 50, "Thermal Status: " + "9" * 400])
def test_answers_without_sense_say_nothing(text: str) -> None:
    assert parse_status(text) == Status()


def test_numbers_beyond_reason_say_nothing() -> None:
    assert parse_status("  level: 300\n  scale: 100\n  temperature: 99999\n") == Status()


def test_older_android_tells_only_that_it_is_awake() -> None:
    assert parse_status("=====xnncc\nCan't find service\n=====xnncc\n  mWakefulness=Awake\n").screen_on is True


def test_who_a_phone_is() -> None:
    text = (
        "ro.serialno=R5 CT/10\r\nro.soc.model=SM8550\r\nro.board.platform=kalama\r\n"
        "ro.product.cpu.abilist=arm64-v8a,armeabi-v7a\r\nro.build.fingerprint=a/b/c:14/X/1:user\r\n"
        "ro.build.version.release=14\r\ncore1=3360000\r\ncore0=2016000\r\ncore3=1\r\n"
    )
    who = description_of(Shell(text), ["armeabi-v7a", "arm64-v8a"])  # type: ignore[arg-type]
    assert (who.serial, who.soc, who.abi) == ("R5-CT-10", "sm8550", "arm64-v8a")
    assert who.system == "Android 14 a/b/c:14/X/1:user" and who.key == "sm8550-arm64-v8a"
    assert who.core_khz == (2016000, 3360000)  # up to the first gap


def test_a_phone_that_hides_its_name_is_called_by_its_address() -> None:
    text = "ro.serialno=unknown\nro.board.platform=mt6789\nro.product.cpu.abilist=armeabi-v7a\n"
    who = description_of(Shell(text), ["arm64-v8a", "armeabi-v7a"])  # type: ignore[arg-type]
    assert (who.serial, who.soc, who.abi, who.system) == ("adb-192.168.1.7-5555", "mt6789", "armeabi-v7a", "Android")


def test_a_phone_without_an_agent_is_told() -> None:
    with pytest.raises(DeviceError, match="it runs x86_64, and there are agents for arm64-v8a"):
        description_of(Shell("ro.product.cpu.abilist=x86_64\n"), ["arm64-v8a"])  # type: ignore[arg-type]


def test_both_ways_to_ask_are_joined() -> None:
    agent = Status(celsius=40.0, governor="schedutil", core_khz=(1, 2), load=0.5, battery_percent=50, throttled=False)
    android = Status(celsius=44.0, battery_percent=51, battery_celsius=30.0, screen_on=True, throttled=True)
    assert merged(agent, android) == Status(44.0, 50, 30.0, "schedutil", (1, 2), 0.5, True, True)
    assert merged(Status(), Status()) == Status()
