"""The command line, assembled. Start-up is part of the product: nothing imported from here loads TVM or numpy."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from xnncc import __version__
from xnncc.cli.bench import bench
from xnncc.cli.build import build
from xnncc.cli.compress import compress
from xnncc.cli.doctor import doctor
from xnncc.cli.inspect import inspect
from xnncc.cli.messages import run_to_exit_code
from xnncc.cli.rack import rack
from xnncc.cli.run import run as run_once
from xnncc.cli.targets import targets
from xnncc.cli.tune import tune
from xnncc.cli.verify import verify

app = typer.Typer(
    name="xnncc",
    help="From a trained network to a tiny native library for one device.",
    epilog="Example: xnncc build model.onnx --target android-arm64",
    invoke_without_command=True,  # the bare `xnncc` shows its help
    add_completion=False,
    rich_markup_mode=None,  # rich help costs 0.2 s of start-up
    pretty_exceptions_enable=False,
)

_COMMANDS = (
    ("build", build, "xnncc build model.onnx --target android-arm64 --shape data=1,3,224,224"),
    ("verify", verify, "xnncc verify model.onnx model-android-arm64 --layers"),
    ("compress", compress, "xnncc compress model.onnx -o model.xq --calib samples.npz --max-loss 0.5%"),
    ("run", run_once, "xnncc run model-host -i data=photo.npy -o out.npz"),
    ("bench", bench, "xnncc bench model-host --threads 2 --per-op"),
    ("tune", tune, "xnncc tune model.onnx --target host --time 15m"),
    ("inspect", inspect, "xnncc inspect model.onnx"),
    ("targets", targets, "xnncc targets android-arm64"),
    ("doctor", doctor, "xnncc doctor"),
)
for _name, _command, _example in _COMMANDS:
    app.command(_name, epilog=f"Example: {_example}")(_command)
app.add_typer(rack, name="rack")


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print xnncc's version and stop.")] = False,
) -> None:
    if version:
        print(f"xnncc {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)


def run() -> None:
    """Entry point of the ``xnncc`` program."""
    sys.exit(run_to_exit_code(app, sys.argv[1:]))


if __name__ == "__main__":
    run()
