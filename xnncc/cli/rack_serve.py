"""xnncc rack serve: the broker, until Ctrl-C."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output

if TYPE_CHECKING:
    from xnncc.rack.broker import Broker
    from xnncc.rack.server import Endpoint

State = Annotated[
    Path | None,
    typer.Option(
        "--state",
        metavar="DIR",
        help="Folder of everything the broker keeps. Default: ~/.local/share/xnncc/rack.",
        show_default=False,
    ),
]
Rack = Annotated[
    str | None,
    typer.Option(
        "--rack",
        metavar="URL",
        help="The broker: http://127.0.0.1:8470. Default: $XNNCC_RACK, ~/.config/xnncc/rack.toml, or the one that this "
        "user has started here.",
        show_default=False,
    ),
]
_LOCAL_TOKEN = "local"  # the name of this user's own token, made anew with each start


def serve(
    bind: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; beyond loopback only with TLS.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="TCP port; 0 = any free one.")] = 8470,
    state: State = None,
    cert: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certificate for TLS, PEM. Default: no TLS.", show_default=False),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Private key of --cert, PEM. Default: none.", show_default=False),
    ] = None,
    faults: Annotated[
        int, typer.Option(metavar="K", min=1, help="Infrastructure faults in a row until quarantine.")
    ] = 3,
    tell: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Program, with arguments, that is told of a device which needs a person; it gets serial number, state "
            "and reason as further arguments. No shell. Default: only the log.",
        ),
    ] = "",
    blob_mib: Annotated[int, typer.Option(metavar="N", min=16, help="Most MiB of files that are kept.")] = 4096,
    no_adb: Annotated[
        bool, typer.Option("--no-adb", help="Do not look for phones that adb sees. Default: look.")
    ] = False,
    no_reference: Annotated[
        bool,
        typer.Option(
            "--no-reference", help="Time no reference kernel between batches: drift goes unnoticed. Default: off."
        ),
    ] = False,
    simulate: Annotated[
        int, typer.Option(metavar="N", min=0, max=1000, help="Instead of real devices, N simulated ones, to look at.")
    ] = 0,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Own the devices and share them, until Ctrl-C.

    The page is at the address that is printed. Who works on this machine as this user needs no token; others get theirs
    from `xnncc rack token add NAME --role run`.
    """
    import logging
    import shlex
    import sys

    from xnncc.errors import ToolchainError

    out = Output(json_only=json_only, quiet=quiet)
    try:
        from xnncc.rack.broker import Broker
        from xnncc.rack.server import listen
        from xnncc.rack.server import serve as serve_until_signal
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "starlette", "uvicorn", "pydantic"):
            raise
        step = "Install it: python3 -m pip install 'xnncc[rack]'."
        raise ToolchainError("rack", f"the package '{error.name}' is missing", step) from None
    from dataclasses import replace

    from xnncc.device.rack_config import state_folder
    from xnncc.rack.preflight import read_limits
    from xnncc.rack.settings import Settings
    from xnncc.rack.simulated import open_simulated

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    folder = state or state_folder()
    settings = Settings(
        folder, finds_adb=not no_adb, faults_until_quarantine=faults, webhook=tuple(shlex.split(tell)),
        limits=read_limits(folder / "preflight.toml"), blob_bytes=blob_mib << 20,
    )  # fmt: skip
    if no_reference or simulate:
        settings = replace(settings, reference_of=None)
    if simulate:
        settings = replace(settings, open_phone=open_simulated, finds_adb=False)
    endpoint = listen(bind, port, cert, key)
    broker = Broker(settings)
    _leave_token(broker, endpoint, folder)
    for number in range(simulate):
        if f"simulated-{number + 1}" not in broker.workers:
            broker.add(f"sim:simulated-{number + 1}")
    out.document({"url": endpoint.url, "state": str(folder)})
    out.result(f"listening {endpoint.url}")
    sys.stdout.flush()
    out.say(f"state in {folder}; this user's commands find it by themselves")
    out.next("xnncc rack list")
    with suppress(KeyboardInterrupt):
        serve_until_signal(broker, endpoint)
    out.say("ended; batches that ran are queued again for the next start")


def _leave_token(broker: Broker, endpoint: Endpoint, folder: Path) -> None:
    """Leave address and a fresh admin token where only this user can read them. Raises: OutputError."""
    import json
    import os

    from xnncc.device.rack_config import LOCAL_FILE
    from xnncc.errors import BadInput

    with suppress(BadInput):  # at the first start there is none
        broker.tokens.revoke(_LOCAL_TOKEN)
    token = broker.tokens.create(_LOCAL_TOKEN, "admin")
    found = {"url": endpoint.url, "token": token, **({"ca": str(endpoint.cert.absolute())} if endpoint.cert else {})}
    path = folder / LOCAL_FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(found, file)
