"""xnncc rack token: who may use the rack. Works on the state folder, so it needs this user and no running broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output
from xnncc.cli.rack_serve import State

if TYPE_CHECKING:
    from xnncc.rack.tokens import Tokens

tokens = typer.Typer(
    help="Tokens of the rack: who may view, run, administer.", no_args_is_help=True, rich_markup_mode=None
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose it is.", show_default=False)]


@contextmanager
def _opened(state: Path | None, who: str) -> Iterator[Tokens]:
    """Give the tokens of a state folder; what is done is audited. Raises: OutputError."""
    from xnncc.device.rack_config import state_folder
    from xnncc.rack.audit import Audit
    from xnncc.rack.store import Store
    from xnncc.rack.tokens import Tokens

    store = Store(state or state_folder())
    try:
        yield Tokens(store)
        if who:
            Audit(store).note("command line", who)
    finally:
        store.close()


def add(
    name: Name,
    role: Annotated[str, typer.Option(metavar="ROLE", help="view, run or admin.")] = "run",
    state: State = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Make a token and print it: only its hash is kept, it cannot be shown again."""
    out = Output(json_only=json_only, quiet=quiet)
    with _opened(state, f"token add {name} {role}") as known:
        token = known.create(name, role)
    out.document({"name": name, "role": role, "token": token})
    out.result(token)
    out.say("keep it: it cannot be shown again")
    out.next("XNNCC_RACK=http://HOST:8470 XNNCC_RACK_TOKEN=... xnncc rack list")


def revoke(name: Name, state: State = None, json_only: flags.Json = False, quiet: flags.Quiet = False) -> None:
    """Make a token worthless, at once."""
    out = Output(json_only=json_only, quiet=quiet)
    with _opened(state, f"token revoke {name}") as known:
        known.revoke(name)
    out.document({"revoked": name})
    out.result(f"{name} has no token any more")


def list_tokens(state: State = None, json_only: flags.Json = False, quiet: flags.Quiet = False) -> None:
    """Show whose tokens there are."""
    import time

    out = Output(json_only=json_only, quiet=quiet)
    with _opened(state, "") as known:
        found = known.list()
    out.document({"tokens": found})
    shown = [time.strftime("%Y-%m-%d", time.localtime(float(str(one["created"])))) for one in found]
    out.table(
        ("name", "role", "since"), [(one["name"], one["role"], day) for one, day in zip(found, shown, strict=True)]
    )
    out.result(f"{len(found)} tokens")


_COMMANDS = (
    ("add", add, "xnncc rack token add ci --role run"),
    ("revoke", revoke, "xnncc rack token revoke ci"),
    ("list", list_tokens, "xnncc rack token list"),
)
for _name, _command, _example in _COMMANDS:
    tokens.command(_name, epilog=f"Example: {_example}")(_command)
