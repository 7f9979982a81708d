"""The thermal model behind an emulated phone: shown in its ``/sys``."""

from __future__ import annotations

from fakes.sysfs import Sysfs

from xnncc.rack.thermal_model import ThermalModel


class ThermalSysfs:
    """Shows a model's temperature and clock in ``sysfs``, which the emulated phone's agent reads."""

    def __init__(self, sysfs: Sysfs, model: ThermalModel) -> None:
        self.sysfs, self.model = sysfs, model
        self.show()

    def show(self) -> None:
        """Write what the model says now."""
        self.sysfs.celsius(self.model.celsius)
        self.sysfs.speed(self.model.khz / self.model.chip.khz[0])

    def work(self, seconds: float) -> None:
        """Compute for so long, by the model's clock."""
        until = self.model.now_s + seconds
        while self.model.now_s < until:
            self.model.run(10_000.0)
        self.show()

    def rest(self, seconds: float) -> None:
        """Idle for so long, by the model's clock."""
        self.model.wait(seconds)
        self.show()
