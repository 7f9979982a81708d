"""Our agent on a phone behind the real adb client: started, found again, ended, and nothing of it left."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.emulated_phone import EmulatedAndroid

from xnncc.device.adb_agent import FOLDER, AgentOnPhone
from xnncc.device.adb_client import Adb
from xnncc.device.agent_build import agent_program
from xnncc.errors import DeviceError
from xnncc.target import load_target

STAY_ON = "stay_on_while_plugged_in"


def agent_on(phone: EmulatedAndroid) -> AgentOnPhone:
    return AgentOnPhone(Adb(phone.daemon.serial), agent_program(load_target("android-arm64")))


def files_of(phone: EmulatedAndroid) -> dict[str, int]:
    """Return the files in our folder and their modes."""
    folder = phone.system.host_path(FOLDER)
    return {str(p.relative_to(folder)): p.stat().st_mode & 0o777 for p in sorted(folder.rglob("*")) if p.is_file()}


def test_ended_it_leaves_nothing_but_the_cache(android: EmulatedAndroid) -> None:
    agent = agent_on(android)
    assert agent.start() > 0
    assert len(android.agents()) == 1
    assert files_of(android)["token"] == 0o600
    assert android.system.host_path(FOLDER).stat().st_mode & 0o777 == 0o700
    agent.stop()
    assert android.agents() == []
    assert {name.split("/")[0] for name in files_of(android)} == {"cache"}


def test_a_new_one_ends_the_one_that_a_dead_broker_left(android: EmulatedAndroid) -> None:
    agent_on(android).start()
    (old,) = android.agents()
    again = agent_on(android)
    again.start()
    (new,) = android.agents()
    assert new != old
    again.stop()
    assert android.agents() == []


def test_the_program_is_sent_once_and_an_older_one_goes(android: EmulatedAndroid) -> None:
    agent = agent_on(android)
    agent.start()
    (program,) = android.system.host_path(FOLDER).glob("cache/agent-*")
    sent = program.stat().st_mtime_ns
    agent.start()
    assert program.stat().st_mtime_ns == sent
    older = program.with_name("agent-0123456789abcdef")
    program.rename(older)
    agent.start()
    assert program.exists() and not older.exists()


@pytest.mark.parametrize("was", [None, "3"])
def test_the_screen_setting_comes_back_even_after_a_broker_that_died(android: EmulatedAndroid, was: str | None) -> None:
    if was:
        Adb(android.daemon.serial).shell(f"settings put global {STAY_ON} {was}")
    android.system.screen(on=False)
    agent_on(android).start()  # and never ended
    assert android.system.setting(STAY_ON) == "7"
    assert "Awake" in Adb(android.daemon.serial).shell("dumpsys power")
    agent = agent_on(android)
    agent.start()
    agent.stop()
    assert android.system.setting(STAY_ON) == was


def test_a_full_phone_is_told(android: EmulatedAndroid) -> None:
    android.system.is_full = True
    with pytest.raises(DeviceError, match="No space left on device"):
        agent_on(android).start()


def test_a_program_that_does_not_start_is_told(android: EmulatedAndroid, tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\necho this phone lacks a heart >&2\nexit 1\n")
    with pytest.raises(DeviceError, match="the agent does not start: this phone lacks a heart"):
        AgentOnPhone(Adb(android.daemon.serial), program).start()
