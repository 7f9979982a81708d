"""A phone that heats up, throttles its clock and cools down again: a model with a clock of its own, for what must be
tried without waiting and with the truth known.

    phone = ThermalModel(seed=1);  phone.run(200.0) -> 204.7 us, the clock being what it is;  phone.wait(30)

Two thermal masses in a row, each a first-order low pass: the chip above the body, which takes a second or two, and the
body above the room, which takes minutes. Power falls with the third power of the clock (voltage follows it). A governor
that looks every tenth of a second goes one step down above ``trip_celsius`` and one up below ``clear_celsius``.
The same seed and the same calls give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from random import Random

GOVERNOR_S = 0.1
_LONGEST_STEP_S = 0.02


@dataclass(frozen=True)
class Chip:
    """What a phone is made of: by default a big core of a phone that holds full speed for about ten seconds."""

    khz: tuple[int, ...] = (2_841_600, 2_534_400, 2_227_200, 1_920_000, 1_612_800, 1_305_600)  # fastest first
    room_celsius: float = 25.0
    watts: float = 5.0  # of the load at full clock
    idle_watts: float = 0.3
    chip_kelvin_per_watt: float = 6.0
    chip_seconds: float = 1.5
    body_kelvin_per_watt: float = 9.0
    body_seconds: float = 60.0
    trip_celsius: float = 68.0
    clear_celsius: float = 62.0
    throttles: bool = True
    jitter: float = 0.008  # standard deviation of a run's time, relative
    hiccups: float = 0.01  # share of the runs that something else interrupts
    hiccup_us: float = 300.0  # how long, at most


class ThermalModel:
    """One phone. ``now_s``: its clock, which only ``run`` and ``wait`` advance."""

    def __init__(self, chip: Chip | None = None, seed: int = 0) -> None:
        self.chip = chip or Chip()
        self.now_s = 0.0
        self.level = 0  # index in chip.khz
        self._body = self._above = 0.0  # kelvin: body above room, chip above body
        self._looked_s = 0.0
        self._random = Random(seed)
        self.wait(0.0)

    @property
    def celsius(self) -> float:
        """What its sensor shows: whole tenths."""
        return round(self.chip.room_celsius + self._body + self._above, 1)

    @property
    def khz(self) -> int:
        """Its clock now."""
        return self.chip.khz[self.level]

    @property
    def throttled(self) -> bool:
        """The clock is not the top one."""
        return self.level > 0

    def run(self, full_speed_us: float, clock_share: float = 1.0) -> float:
        """Run what takes ``full_speed_us`` at the top clock; return the microseconds that it took.

        ``clock_share`` [0, 1]: the share of that time which the clock decides; the rest is memory's.
        """
        jitter = max(self._random.gauss(1.0, self.chip.jitter), 0.5)
        left, took = full_speed_us * jitter / 1e6, 0.0  # seconds at full speed that are left
        while left > 0:
            slower = clock_share * self.chip.khz[0] / self.khz + 1 - clock_share
            step = min(left * slower, _LONGEST_STEP_S)
            left = left - step / slower if step < left * slower else 0.0
            took += step
            self._advance(step, self.chip.watts * (self.khz / self.chip.khz[0]) ** 3)
        if self._random.random() < self.chip.hiccups:
            pause = self._random.random() * self.chip.hiccup_us / 1e6
            took += pause
            self._advance(pause, self.chip.idle_watts)
        return took * 1e6

    def wait(self, seconds: float) -> None:
        """Let it idle."""
        while seconds > 0:
            step = min(seconds, GOVERNOR_S)
            self._advance(step, self.chip.idle_watts)
            seconds -= step

    def _advance(self, seconds: float, watts: float) -> None:
        chip = self.chip
        self.now_s += seconds
        self._body += (watts * chip.body_kelvin_per_watt - self._body) * (1 - exp(-seconds / chip.body_seconds))
        self._above += (watts * chip.chip_kelvin_per_watt - self._above) * (1 - exp(-seconds / chip.chip_seconds))
        if self.now_s - self._looked_s < GOVERNOR_S:
            return
        self._looked_s = self.now_s
        hot = chip.room_celsius + self._body + self._above
        if chip.throttles and hot > chip.trip_celsius:
            self.level = min(self.level + 1, len(chip.khz) - 1)
        elif hot < chip.clear_celsius:
            self.level = max(self.level - 1, 0)
