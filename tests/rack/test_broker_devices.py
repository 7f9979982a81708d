"""How devices come to the broker and go, and that their times are those of a device at full speed."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest
from fakes.served_broker import KEY, served, until

from xnncc.device.bench import Group, Measurement
from xnncc.device.rack_client import RackRefusal
from xnncc.rack.discover import Change, Found
from xnncc.rack.steady import ReferenceJob


def test_a_phone_that_is_seen_is_added_and_one_that_goes_is_offline(tmp_path: Path) -> None:
    with served(tmp_path, phones=0, probe_s=600.0, most_probe_s=600.0) as rack:
        seen = Found("sim:phone-7")
        rack.broker._note_change(Change("appeared", seen))
        until(lambda: rack.device("phone-7")["state"] == "free", "added")
        rack.broker._note_change(Change("changed", Found("sim:phone-7", "it is unauthorised", "Tap Allow.")))
        until(lambda: rack.device("phone-7")["state"] == "offline", "offline")
        assert rack.device("phone-7")["reason"] == "it is unauthorised Tap Allow."


def test_a_phone_that_comes_back_is_used_at_once(tmp_path: Path) -> None:
    with served(tmp_path, phones=1, probe_s=600.0, most_probe_s=600.0) as rack:
        until(lambda: rack.device("phone-1")["state"] == "free", "free")
        rack.phones["phone-1"].is_there = False
        until(lambda: rack.device("phone-1")["state"] == "offline", "gone")
        assert "it does not answer" in rack.device("phone-1")["reason"]
        rack.phones["phone-1"].is_there = True
        rack.broker._note_change(Change("appeared", Found("sim:phone-1")))
        until(lambda: rack.device("phone-1")["state"] == "free", "back")


def test_a_phone_that_was_removed_is_not_added_again_by_itself(tmp_path: Path) -> None:
    with served(tmp_path, phones=1) as rack:
        rack.admin.remove_device("phone-1")
        rack.broker._note_change(Change("appeared", Found("sim:phone-1")))
        assert rack.admin.devices() == []
        rack.admin.add_device("sim:phone-1")
        assert len(rack.admin.devices()) == 1


def test_a_device_that_does_not_answer_is_not_added(tmp_path: Path) -> None:
    with served(tmp_path, phones=1) as rack:
        rack.phones("sim:dead", b"", False).is_there = False  # type: ignore[attr-defined]
        with pytest.raises(RackRefusal, match="it does not answer"):
            rack.admin.add_device("sim:dead")
        assert [device["serial"] for device in rack.admin.devices()] == ["phone-1"]


def test_removing_a_device_gives_its_batch_to_another(tmp_path: Path) -> None:
    with served(tmp_path, phones=2, seconds=0.05) as rack:
        rack.admin.quarantine("phone-2")
        batch = rack.admin.submit(rack.admin.create_job("tune", KEY), "1", rack.document(groups=4))
        until(lambda: len(rack.admin.results(batch)["results"]) >= 3, "a group")
        rack.admin.remove_device("phone-1")
        rack.admin.release_device("phone-2")
        assert [r.candidate for r in rack.admin.follow(batch)] == list(range(12))
        assert rack.admin.results(batch)["device"] == "phone-2"


def test_times_are_watched_by_a_reference_kernel_whose_baseline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "reference"
    path.write_bytes(b"reference")
    sha = sha256(b"reference").hexdigest()
    job = ReferenceJob({"library": sha}, {sha: path}, Group((0,), 4, 0, 4), "reference_graph")
    with served(tmp_path / "state", phones=1, seconds=0.0, reference_of=lambda target: job) as rack:
        batch = rack.admin.submit(rack.admin.create_job("tune", KEY), "1", rack.document())
        ended: dict[str, object] = {}
        results = list(rack.admin.follow(batch, ended))
        assert [r.candidate for r in results if isinstance(r, Measurement)] == list(range(6))
        reference = ended["facts"]["reference"]  # type: ignore[index]
        assert 110 < reference["baseline_us"] < 130 and reference["factors"]
        assert rack.broker.baseline("phone-1", "android-arm64") == reference["baseline_us"]


def test_a_device_of_its_own_name_can_be_asked_for(tmp_path: Path) -> None:
    with served(tmp_path, phones=2) as rack:
        rack.admin.add_device("sim:phone-3", name="desk")
        batch = rack.admin.submit(rack.admin.create_job("tune", "desk"), "1", rack.document())
        assert len(list(rack.admin.follow(batch))) == 6
        assert rack.admin.results(batch)["device"] == "phone-3"
        with pytest.raises(RackRefusal, match="another device has it"):
            rack.admin.add_device("sim:phone-4", name="desk")
