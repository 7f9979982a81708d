"""xnncc rack: phones and boards that measure for everyone, and the broker that owns them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from xnncc.cli import flags
from xnncc.cli.output import Output
from xnncc.cli.rack_doctor import doctor
from xnncc.cli.rack_serve import Rack, serve
from xnncc.cli.rack_token import tokens

if TYPE_CHECKING:
    from xnncc.device.rack_client import RackClient

rack = typer.Typer(
    help="The lab rack: devices that are shared, watched and recovered.",
    epilog="Example: xnncc rack serve",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Serial = Annotated[str, typer.Argument(metavar="SERIAL", help="As `xnncc rack list` says.", show_default=False)]
_QUICK_S = 3.0  # for an answer: a person waits


def open_client(url: str | None, patience_s: float = _QUICK_S) -> RackClient:
    """Return a client of the rack. Raises: BadInput, DeviceError when httpx is missing."""
    from xnncc.errors import DeviceError

    try:
        from xnncc.device.rack_client import RackClient
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        step = "Install it: python3 -m pip install 'xnncc[rack]'."
        raise DeviceError("rack", "the package 'httpx' is missing", step) from None
    return RackClient(url, patience_s=patience_s)


def add(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="adb:SERIAL or tcp:HOST:PORT.", show_default=False)],
    name: Annotated[str, typer.Option(metavar="NAME", help="Call it so: pixel-3. Default: its serial number.")] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What the tcp agent's --token-file holds. Default: $XNNCC_AGENT_TOKEN or ~/.config/xnncc/agent-token.",
            show_default=False,
        ),
    ] = None,
    may_reboot: Annotated[
        bool, typer.Option("--may-reboot", help="When nothing else helps, reboot it. Default: never.")
    ] = False,
    no_reference: Annotated[
        bool,
        typer.Option("--no-reference", help="Take its times as they come: an emulator is never steady. Default: off."),
    ] = False,
    url: Rack = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Add a device to the rack; a phone that adb sees is found by itself."""
    out = Output(json_only=json_only, quiet=quiet)
    token = _agent_token(spec, token_file)
    with open_client(url) as client, out.progress(f"asking {spec}"):
        device = client.add_device(spec, token, name, may_reboot, not no_reference)
    out.document(device)
    out.result(f"{device['serial']}: {device['key']}, {device['system']}")
    out.next(f"xnncc tune MODEL --target TARGET --device rack:{device['key']}")


def _agent_token(spec: str, path: Path | None) -> str:
    """Return the token of a tcp agent, "" for other devices. Raises: BadInput, DeviceError."""
    from xnncc.errors import BadInput

    if path is not None:
        try:
            return path.read_bytes()[:1000].decode("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = str(getattr(error, "strerror", "") or "it is no text").lower()
            raise BadInput(f"--token-file '{path}'", why, "Give the file that the agent was started with.") from None
    if not spec.startswith("tcp:"):
        return ""
    from xnncc.device.agent_token import agent_token

    return agent_token(spec).decode("utf-8", "replace")


def remove(
    serial: Serial,
    url: Rack = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Take a device out of the rack; what it measures goes back to the queue."""
    out = Output(json_only=json_only, quiet=quiet)
    with open_client(url) as client:
        client.remove_device(serial)
    out.document({"removed": serial})
    out.result(f"{serial} is not in the rack any more")


def list_devices(url: Rack = None, json_only: flags.Json = False, quiet: flags.Quiet = False) -> None:
    """Show the devices of the rack, what they do, and the jobs."""
    out = Output(json_only=json_only, quiet=quiet)
    with open_client(url) as client:
        devices, jobs, health = client.devices(), client.jobs(), client.health()
    out.document({"rack": client.config.url, "health": health, "devices": devices, "jobs": jobs})
    rows = [
        (d["name"] or d["serial"], d["key"], d["state"], _celsius(d), _since(d), d["reason"] or d["system"])
        for d in devices
    ]
    out.table(("device", "key", "state", ">°C", ">for", "what"), rows)
    open_jobs = [job for job in jobs if job["state"] in ("running", "queued")]
    if open_jobs:
        out.result()
        names = ("running", "queued", "done", "failed")
        rows = [
            (j["name"], j["owner"], j["key"], j["priority"], f"{j['weight']:g}", *(j["batches"][n] for n in names))
            for j in open_jobs
        ]
        out.table(("job", "of", "key", ">priority", ">weight", *(f">{n}" for n in names)), rows)
    free = health.get("devices", {}).get("free", 0)
    out.result(f"{len(devices)} devices, {free} free; {len(open_jobs)} jobs with work")
    if not devices:
        out.next("xnncc rack add adb:SERIAL")


def release(
    serial: Serial,
    url: Rack = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """End the quarantine of a device."""
    out = Output(json_only=json_only, quiet=quiet)
    with open_client(url) as client:
        out.document(client.release_device(serial))
    out.result(f"{serial} is looked at and used again")


def run_artefact(
    artefact: flags.Artefact,
    key: Annotated[
        str, typer.Option(metavar="KEY", help="The device's key, serial number or name: sm8550-arm64-v8a. [required]")
    ],
    threads: flags.Threads = 1,
    url: Rack = None,
    json_only: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Time an artefact folder on a device of the rack: xnncc bench DIR --device rack:KEY."""
    import os

    from xnncc.cli.bench import bench

    if url is not None:
        os.environ["XNNCC_RACK"] = url
    bench(artefact, device=f"rack:{key}", threads=threads, json_only=json_only, quiet=quiet)


def _celsius(device: dict[str, Any]) -> str:
    reading = device["reading"] or {}
    return f"{reading['celsius']:.1f}" if reading.get("celsius") is not None else ""


def _since(device: dict[str, Any]) -> str:
    """Return how long the state has lasted, as "5 s", "3 min" or "2 h"."""
    import time

    seconds = max(time.time() - float(device["since"]), 0.0)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"


_COMMANDS = (
    ("serve", serve, "xnncc rack serve"),
    ("add", add, "xnncc rack add tcp:board.lab:9100 --name board-1"),
    ("remove", remove, "xnncc rack remove R5CT1000001"),
    ("list", list_devices, "xnncc rack list"),
    ("release", release, "xnncc rack release R5CT1000001"),
    ("run", run_artefact, "xnncc rack run model-android-arm64 --key sm8550-arm64-v8a"),
    ("doctor", doctor, "xnncc rack doctor"),
)
for _name, _command, _example in _COMMANDS:
    rack.command(_name, epilog=f"Example: {_example}")(_command)
rack.add_typer(tokens, name="token")
