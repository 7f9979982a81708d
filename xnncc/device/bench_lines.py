"""What runtime/tools/measure.c says, line by line, made into measurements; the same for every way to reach it.

progress = Progress(groups)
for line in lines: yield from progress.take(line)
progress.fault_of_exit(code, signal) or an infrastructure fault; then groups_left(groups, progress.done, fault)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from xnncc.device.bench import Fault, Group, Measurement

# Signals that a kernel earns; any other one came from outside.
KERNEL_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGXCPU", "SIGSYS")
_MOST_WORDS = 400  # characters of an unknown line that are kept


class Progress:
    """One run of the program over ``groups``: how many of them it finished, and what it is at."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups
        self.done = 0
        self.running = -1  # the candidate that runs
        self.last_words = ""
        self._ns: dict[int, list[int]] = {}
        self._errors: dict[int, float] = {}

    @property
    def is_complete(self) -> bool:
        """Every group is done."""
        return self.done == len(self.groups)

    def take(self, line: str) -> Iterator[Measurement]:
        """Take one line; yield the measurements of a group that it ends. A line of another form is kept as words."""
        words = line.split()
        numbers = [int(word) for word in words[1:] if word.isascii() and word.isdecimal() and len(word) < 20]
        if len(numbers) != len(words) - 1:
            words, numbers = [], []
        if numbers and (self.is_complete or numbers[0] not in self.groups[self.done].candidates):
            words, numbers = [], []
        if words[:1] == ["run"] and len(numbers) == 1:
            self.running = numbers[0]
        elif words[:1] == ["error"] and len(numbers) == 2:
            self._errors[numbers[0]] = numbers[1] / 1e9
        elif words[:1] == ["ns"] and len(numbers) == 2:
            self.running = numbers[0]
            self._ns.setdefault(self.running, []).append(numbers[1])
        elif words == ["end"] and not self.is_complete:
            self.done += 1
            for candidate in self.groups[self.done - 1].candidates:
                ns = tuple(self._ns.get(candidate, ())) or (0,)
                yield Measurement(candidate, ns, self._errors.get(candidate, float("inf")))
            self._ns, self._errors, self.running = {}, {}, -1
        else:
            self.last_words = line[:_MOST_WORDS]

    def fault_of_exit(self, signal_name: str) -> Fault | None:
        """Return the fault of the candidate that ended the program, or None when it was no candidate's doing.

        ``signal_name``: "SIGSEGV", or "" for an exit code.
        """
        if self.running < 0 or not (signal_name in KERNEL_SIGNALS or self.last_words.startswith("run: ")):
            return None
        return Fault(self.running, "crash", f"ended by {signal_name}" if signal_name else self.last_words)


def groups_left(groups: Sequence[Group], done: int, fault: Fault | None) -> list[Group]:
    """Return what is still to be measured after a run that finished ``done`` groups and ended with ``fault``."""
    left = list(groups[done:])
    if fault is None or not left:
        return left
    rest = tuple(c for c in left[0].candidates if c != fault.candidate)
    # Without its first candidate a group has nothing to be compared with.
    is_first = fault.candidate == left[0].candidates[0]
    return left[1:] if is_first or not rest else [replace(left[0], candidates=rest), *left[1:]]


def job_lines(groups: Sequence[Group], dumps: bool) -> str:
    """Return the program's list of jobs; ``dumps``: what each group's first candidate wrote is wanted."""
    lines = []
    for group in groups:
        lines.append(f"g {group.floats} {group.out_offset} {group.out_bytes} {int(dumps)}\n")
        lines += [f"c {candidate}\n" for candidate in group.candidates]
    return "".join(lines)
