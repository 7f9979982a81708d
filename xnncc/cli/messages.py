"""How every run ends: the one place where exceptions become sentences and exit codes.

0 done   1 the user can fix it   2 wrong usage   3 our bug (traceback kept in a file)   130 Ctrl-C   143 SIGTERM
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from xnncc.errors import BadModel, BadPackage, BadTarget, DeviceError, ToolchainError, XnnccError

# What to do next, for errors that do not say it themselves. The first class that fits.
_NEXT_STEPS: tuple[tuple[type[XnnccError], str], ...] = (
    (ToolchainError, "Run `xnncc doctor` for what is missing and how to install it."),
    (DeviceError, "Run `xnncc doctor` for what is missing and how to install it."),
    (BadTarget, "Run `xnncc targets` for what can be built."),
    (BadPackage, "Build it again with `xnncc build`."),
    (BadModel, "Run `xnncc inspect FILE` for what is in the file."),
)
_INTERRUPTED = "interrupted: nothing half-written was left behind; tune and compress go on where they stopped."
_ISSUES = "please report it with that file"
_FULL = {errno.ENOSPC, errno.EDQUOT}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}


def run_to_exit_code(app: Callable[..., Any], arguments: Sequence[str]) -> int:
    """Run the command line ``arguments`` and return the exit code; everything a run can raise is said here, once."""
    from typer import Abort
    from typer.exceptions import TyperException

    signals = _Signals()
    try:
        code = app(args=list(arguments), prog_name="xnncc", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:  # typer's own translation of KeyboardInterrupt
            print(_INTERRUPTED, file=sys.stderr)
        return code if isinstance(code, int) else 0
    except XnnccError as error:
        return _report(arguments, _kind(error), error.what, error.why, error.next or _next_step(error), 1)
    except TyperException as error:
        return _usage(error)
    except (KeyboardInterrupt, Abort):
        print(_INTERRUPTED, file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our stdout has gone: `xnncc inspect m.onnx | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        sentence = _os_sentence(error)
        return _report(arguments, "OutputError", *sentence, 1) if sentence else _bug(arguments, error)
    except MemoryError:
        return _report(arguments, "MemoryError", "out of memory", "this machine has too little for it", "", 1)
    except Exception as error:
        if signals.interrupted:  # inside the import of a C extension Ctrl-C comes out as that extension's ImportError
            print(_INTERRUPTED, file=sys.stderr)
            return 130
        return _bug(arguments, error)
    finally:
        signals.restore()


def _report(arguments: Sequence[str], kind: str, what: str, why: str, step: str, code: int) -> int:
    """Say one error: a sentence on stderr, and a document on stdout when JSON was asked for. Return ``code``."""
    print(f"error: {XnnccError(what, why, step)}", file=sys.stderr)
    print(f"  see docs/errors.md#{kind.lower()}", file=sys.stderr)
    if "--json" in arguments:
        document = {"error": {"kind": kind, "what": what, "why": why, "next": step}, "exit_code": code}
        print(json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False))
    return code


def _kind(error: XnnccError) -> str:
    """Return the error's class that docs/errors.md has: a room's own subclass is told as the one it refines."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == XnnccError.__module__)


def _next_step(error: XnnccError) -> str:
    """Return the known next step of the error's class, or nothing."""
    return next((step for kind, step in _NEXT_STEPS if isinstance(error, kind)), "")


def _usage(error: Any) -> int:
    """Say how the command line was wrong; return its exit code, 2."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "xnncc"
    print(f"error: {error.format_message()}", file=sys.stderr)
    print(f"  see {command} --help", file=sys.stderr)
    return int(error.exit_code)


def _os_sentence(error: OSError) -> tuple[str, str, str] | None:
    """Return what, why, next for a full disk or a place that cannot be written; None when it is none of these."""
    what = f"'{error.filename}'" if error.filename else "the output"
    if error.errno in _FULL:
        return what, "the disk is full", "Free some space, or write elsewhere with --output; nothing was left behind."
    if error.errno in _DENIED:
        why = "the file system is read-only" if error.errno == errno.EROFS else "permission denied"
        return what, why, "Change its permissions, or choose another place."
    return None


def _bug(arguments: Sequence[str], error: BaseException) -> int:
    """Keep the traceback of our own mistake in a file and say where; return 3."""
    import platform
    import tempfile
    import traceback

    from xnncc import __version__

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    head = f"xnncc {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    last = text.strip().splitlines()[-1]
    print(f"error: xnncc made a mistake: {last}", file=sys.stderr)
    try:
        handle, name = tempfile.mkstemp(prefix="xnncc-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{head}xnncc {' '.join(arguments)}\n\n{text}")
        print(f"  the traceback is in {Path(name)}; {_ISSUES}", file=sys.stderr)
    except OSError:
        print(text, file=sys.stderr)
    if "--json" in arguments:
        print(json.dumps({"error": {"kind": "Bug", "what": last, "why": "", "next": _ISSUES}, "exit_code": 3}))
    return 3


class _Signals:
    """Lets SIGTERM unwind like Ctrl-C, so that half-written folders are removed, and remembers that Ctrl-C came."""

    def __init__(self) -> None:
        import threading

        self.interrupted = False
        self.previous: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number, handler in ((signal.SIGTERM, self._terminate), (signal.SIGINT, self._interrupt)):
                self.previous[number] = signal.signal(number, handler)

    def _terminate(self, number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    def _interrupt(self, number: int, frame: object) -> None:
        self.interrupted = True
        raise KeyboardInterrupt

    def restore(self) -> None:
        """Put the handlers back that were there before."""
        for number, handler in self.previous.items():
            signal.signal(number, handler)
