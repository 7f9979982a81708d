"""Four emulated phones at once, two of them through adb: equal to whoever asks, apart in everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakes.batches import kernels
from fakes.emulated_phone import SOC

from xnncc.device.bench import Measurement
from xnncc.rack.open_phone import open_phone
from xnncc.rack.phone import Phone
from xnncc.rack.preflight import Limits, reasons, warm


def opened(emulated: list[Any]) -> list[Phone]:
    return [open_phone(phone.spec, getattr(phone, "token", b"")) for phone in emulated]


def test_four_phones_of_one_key_measure_at_once(emulated_phones: Callable[..., list[Any]], tmp_path: Path) -> None:
    phones = opened(emulated_phones(boards=2, androids=2))
    who = [phone.describe() for phone in phones]
    assert {w.key for w in who} == {f"{SOC}-arm64-v8a"}
    assert [w.serial for w in who] == ["phone-1", "phone-2", "phone-3", "phone-4"]
    batch, blobs = kernels(tmp_path, "android-arm64")
    results: list[list[Any]] = [[] for _ in phones]

    def work(index: int) -> None:
        results[index] = list(phones[index].measure(batch, blobs))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(phones))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for found in results:
        assert [r.candidate for r in found] == [0, 1, 2, 3]
        assert all(isinstance(r, Measurement) and r.error == 0 for r in found)
    assert len({phone.outputs for phone in phones}) == 1
    for phone in phones:
        phone.close()


def test_the_gate_opens_and_closes_with_what_each_phone_says(emulated_phones: Callable[..., list[Any]]) -> None:
    board, android = emulated_phones(boards=1, androids=1)
    phones = opened([board, android])
    assert [reasons(phone.status(), Limits()) for phone in phones] == [[], []]
    board.sysfs.celsius(70.0)
    android.system.battery(level=5, celsius=45.0)
    android.sysfs.battery(5, 45.0)
    android.system.screen(on=False, wakes=False)
    hot, weak = (phone.status() for phone in phones)
    assert warm(hot, Limits()) == ["the processor is at 70.0 °C; it may start below 45 °C"]
    assert reasons(weak, Limits()) == [
        "the battery is at 45.0 °C; it may start below 38 °C",
        "the battery has 5 %; it needs 20 %: charge it",
        "the screen is off; it must be on",
    ]
    for phone in phones:
        phone.close()
