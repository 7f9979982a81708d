"""xnncc doctor: what this machine can build and run, and what installs the rest."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output


@dataclass(frozen=True)
class Check:
    """One line: ``found`` says what is there ("" = missing), ``install`` the command that brings it."""

    subject: str
    found: str
    purpose: str
    install: str
    needed: bool = False  # nothing can be built without it


def doctor(json_only: flags.Json = False, quiet: flags.Quiet = False) -> None:
    """Say what this machine can build, and what is missing.

    Checks Python, the pinned packages, compilers, linkers and emulators; each missing thing is shown with the command
    that installs it. Exit code 1 when nothing can be built.
    """
    out = Output(json_only=json_only, quiet=quiet)
    with out.progress("looking for compilers and emulators"):
        checks = [*_python(), *_packages(), *_toolchains(), *_programs()]
    broken = [check for check in checks if check.needed and not check.found]
    out.document(
        {
            "ok": not broken,
            "checks": [{**vars(check), "ok": bool(check.found)} for check in checks],
        }
    )
    rows = [
        ("ok" if check.found else "MISSING", check.subject, check.purpose, check.found or check.install)
        for check in checks
    ]
    first_broken = checks.index(broken[0]) if broken else None
    out.table(("", "what", "for", "found, or the command that installs it"), rows, mark=first_broken)
    if broken:
        out.result(f"nothing can be built before this is repaired: {', '.join(c.subject for c in broken)}")
        raise typer.Exit(1)
    missing = sum(not check.found for check in checks)
    out.result(
        "everything is there" if not missing else f"{missing} missing; each is needed only for what its line says"
    )
    out.next("xnncc build model.onnx --target host")


def _python() -> list[Check]:
    import platform
    import sys

    good = (3, 10) <= sys.version_info[:2] <= (3, 13)
    found = f"{platform.python_version()} at {sys.executable}" if good else ""
    return [Check("python", found, "everything", "install Python 3.10 to 3.13", needed=True)]


def _packages() -> list[Check]:
    """Return a line for each package that xnncc asks for: there, and of the pinned version."""
    from importlib.metadata import PackageNotFoundError, requires, version

    checks = []
    for requirement in requires("xnncc") or ():
        wanted, _, marker = requirement.partition(";")
        if marker:
            continue  # extras, and what other Python versions need
        name, bounds = _split(wanted.strip())
        try:
            have = version(name)
        except PackageNotFoundError:
            have = ""
        exact = bounds.removeprefix("==") if bounds.startswith("==") else ""
        good = bool(have) and (not exact or have == exact)
        purpose = f"everything; xnncc is pinned to {exact}" if exact else "everything"
        checks.append(Check(name, have if good else "", purpose, f"python3 -m pip install '{wanted.strip()}'", True))
    return checks


def _split(requirement: str) -> tuple[str, str]:
    """Return name and bounds of a requirement such as ``"onnx>=1.17"``."""
    for index, letter in enumerate(requirement):
        if letter in "<>=!~[ ":
            return requirement[:index], requirement[index:].strip()
    return requirement, ""


def _toolchains() -> list[Check]:
    from xnncc.codegen.toolchain import describe_toolchains

    return [Check(fact.subject, fact.found, fact.purpose, fact.install) for fact in describe_toolchains()]


def _programs() -> list[Check]:
    """Return the lines of what no target asks for by itself: what shows web-wasm, and what reaches phones."""
    import shutil

    from xnncc.codegen.emulators import find_browser

    browser = find_browser()
    return [
        Check("browser", browser.found, "web-wasm in a page: --device browser", browser.install),
        Check("adb", shutil.which("adb") or "", "phones: --device adb:SERIAL, xnncc rack", "apt-get install adb"),
    ]
