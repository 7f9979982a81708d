"""xnncc targets: what can be built, and how well each is proven."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output

TIERS = {1: "run by the tests", 2: "built by the tests", 3: "unproven"}


def targets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="TARGET", help="One target, in full. Default: a line for each.", show_default=False),
    ] = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """List the targets, or show one in full."""
    from xnncc.errors import BadTarget
    from xnncc.target import list_targets, load_target

    out = Output(json_only=json_only, quiet=quiet)
    if name is None:
        found = [load_target(known) for known in list_targets() if known != "host"]
        with suppress(BadTarget):  # this machine is no host of xnncc's: it still builds for the others
            found.append(load_target("host"))
        out.document([asdict(target) for target in found])
        out.table(
            ("target", ">tier", "meaning", "what"),
            [(target.name, target.tier, TIERS[target.tier], target.summary) for target in found],
        )
        out.next("xnncc targets android-arm64")
        return
    target = load_target(name)
    facts = asdict(target)
    out.document(facts)
    out.table(("key", "value"), list(_flat(facts)))
    out.next(f"xnncc build MODEL --target {name}")


def _flat(facts: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested tables as dotted rows."""
    rows: list[tuple[str, str]] = []
    for key, value in facts.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{prefix}{key}.")
        elif value not in ("", None, ()):
            rows.append(
                (f"{prefix}{key}", ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))
            )
    return rows
