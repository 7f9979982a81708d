"""How commands speak: the result on stdout, the talk on stderr, one JSON document for machines."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[..., None]  # progress(text: str, done: int = 0, total: int = 0); total 0 = unknown

_QUIET_SECONDS = 1.0  # work shorter than this is not announced


class Output:
    """One command's voice. ``json_only``: stdout carries one document and nothing else. ``quiet``: no talk."""

    def __init__(self, *, json_only: bool = False, quiet: bool = False) -> None:
        self.json_only, self.quiet = json_only, quiet

    def result(self, text: str = "") -> None:
        """Print a line of the result; silent when a JSON document is asked for."""
        if not self.json_only:
            print(text)

    def document(self, document: Any) -> None:
        """Print the JSON document, when that is what was asked for."""
        if self.json_only:
            print(json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, default=str))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]], *, mark: int | None = None) -> None:
        """Print ``rows`` under ``columns``; a column named ``">x"`` is aligned right. Row ``mark`` stands out."""
        if self.json_only:
            return
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name in columns:
            table.add_column(name.lstrip(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
        for index, row in enumerate(rows):
            table.add_row(*(Text(str(cell)) for cell in row), style="bold red" if index == mark else None)
        console = _console(sys.stdout)
        with console.capture() as captured:
            console.print(table)
        print("\n".join(line.rstrip() for line in captured.get().splitlines()))

    def say(self, text: str) -> None:
        """Tell a person something, on stderr."""
        if not self.quiet:
            print(text, file=sys.stderr)

    def warn(self, text: str) -> None:
        """Tell a person something that must not be missed: ``-q`` keeps it."""
        print(f"warning: {text}", file=sys.stderr)

    def next(self, command: str) -> None:
        """Name the next useful command."""
        self.say(f"next: {command}")

    @contextmanager
    def progress(self, title: str) -> Iterator[Progress]:
        """Yield a callback ``progress(text, done=0, total=0)``; what takes over a second is shown on stderr."""
        if self.quiet:
            yield lambda text, done=0, total=0: None
        elif sys.stderr.isatty():
            with _bar(title) as update:
                yield update
        else:
            yield _lines(title)


def _console(file: Any) -> Console:
    """Return a rich console for ``file``; where no person reads, lines are as long as they need to be."""
    from rich.console import Console

    return Console(file=file, highlight=False, emoji=False, markup=False, width=None if file.isatty() else 10_000)


@contextmanager
def _bar(title: str) -> Iterator[Progress]:
    """A spinner and a bar that appear after a second and leave nothing behind."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), MofNCompleteColumn())
    bar = RichProgress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=None)

    def update(text: str, done: int = 0, total: int = 0) -> None:
        bar.update(task, description=f"{title}: {text}", completed=done, total=total or None)

    appear = threading.Timer(_QUIET_SECONDS, bar.start)
    appear.daemon = True
    appear.start()
    try:
        yield update
    finally:
        appear.cancel()
        appear.join()
        bar.stop()


def _lines(title: str) -> Progress:
    """For logs: each new text once, with the seconds since the start, from one second on."""
    start, last = time.monotonic(), ""

    def update(text: str, done: int = 0, total: int = 0) -> None:
        nonlocal last
        seconds = time.monotonic() - start
        if text != last and seconds >= _QUIET_SECONDS:
            last = text
            print(f"[{seconds:5.1f} s] {title}: {text}", file=sys.stderr)

    return update
