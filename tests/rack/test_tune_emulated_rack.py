"""A rack of four emulated arm64 phones, two of them over the real adb client, from the model to a verified library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.known_phone import KnownTimes
from fakes.tuned_rack import Rack, entries_of, small_model

from xnncc.build import build
from xnncc.device import open_device
from xnncc.errors import DeviceError
from xnncc.pack import read_manifest
from xnncc.tune import tune
from xnncc.verify import verify

TARGET, KEY = "android-arm64", "emu9000-arm64-v8a"
TRIALS = 4


def test_tunes_builds_verifies_and_runs(
    emulated_phones: Callable[..., list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phones = emulated_phones(boards=2, androids=2)
    model = small_model(tmp_path)
    rack = Rack(tmp_path)
    rack.wrap = KnownTimes  # winners are known: an emulator's own times are luck
    with rack.serving(monkeypatch) as client:
        for phone in phones:
            client.add_device(phone.spec, getattr(phone, "token", b"").decode(), is_steady=False)
        outcome = tune(model, TARGET, devices=[f"rack:{KEY}"], trials=TRIALS, output=tmp_path / "records")
        rows = rack.broker.store.rows("SELECT device FROM batches WHERE state='done'")
        assert len({row["device"] for row in rows}) >= 2, "the work was not shared"
        assert outcome.records and not {kind for kind in outcome.faults if kind}
        assert all(entry[2] > 0 for entry in entries_of(tmp_path / "records"))

        build(model, TARGET, tmp_path / "built", records=tmp_path / "records", verify=False)
        assert verify(model, tmp_path / "built", device="emulator").passed

        device = open_device(f"rack:{KEY}", manifest := read_manifest(tmp_path / "built"))
        x = np.linspace(-1, 1, 16 * 8 * 8, dtype="float32").reshape(1, 16, 8, 8)
        emulator = open_device("emulator", manifest)
        np.testing.assert_array_equal(device.run(tmp_path / "built", [x])[0], emulator.run(tmp_path / "built", [x])[0])
        assert len(device.time(tmp_path / "built", [x], repeat=3).ms) == 3
        ops = manifest["ops"]
        ours, theirs = (list(one.trace(tmp_path / "built", [x], ops)) for one in (device, emulator))
        assert [(n, [r.tobytes() for r in out]) for n, out in ours] == [
            (n, [r.tobytes() for r in out]) for n, out in theirs
        ]
        with pytest.raises(DeviceError, match="its devices run arm64-v8a and not"):
            open_device(f"rack:{KEY}", {**manifest, "target": "linux-x86-64"})
