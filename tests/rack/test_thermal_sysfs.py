"""The thermal model as the real agent sees it: work closes the gate before a batch, rest opens it."""

from __future__ import annotations

from fakes.emulated_phone import EmulatedBoard
from fakes.thermal_sysfs import ThermalSysfs

from xnncc.rack.open_phone import open_phone
from xnncc.rack.preflight import Limits, reasons
from xnncc.rack.thermal_model import ThermalModel


def test_work_closes_the_gate_and_rest_opens_it(board: EmulatedBoard) -> None:
    chip = ThermalSysfs(board.sysfs, ThermalModel(seed=1))
    phone = open_phone(board.spec, board.token)
    assert reasons(phone.status(), Limits()) == []
    chip.work(60)
    hot = phone.status()
    assert hot.celsius == chip.model.celsius > 60 and hot.throttled is True
    assert hot.core_khz[0] < board.sysfs.core_khz[0]
    assert [sentence.split(";")[0] for sentence in reasons(hot, Limits())] == [
        f"the processor is at {hot.celsius:.1f} °C", "it says that it throttles its clocks"
    ]  # fmt: skip
    chip.rest(300)
    assert reasons(phone.status(), Limits()) == []
    phone.close()
