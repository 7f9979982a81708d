"""An adb server of the tests' own, and lets the tests of this folder import tests/*.py and fakes/."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from xnncc.errors import ToolchainError

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
if TYPE_CHECKING:
    from fakes.emulated_phone import EmulatedAndroid, EmulatedBoard


@pytest.fixture(scope="session")
def adb_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let ``adb`` of this process and its children use a server of its own, which is ended with the tests."""
    if shutil.which("adb") is None:
        pytest.skip("adb is missing: apt-get install adb")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    home = {name: str(tmp_path_factory.mktemp(f"adb-{name}")) for name in ("HOME", "TMPDIR")}  # its key and its log
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANDROID_ADB_SERVER_PORT", str(port))
        patch.setenv("ADB_MDNS", "0")  # no look at the network
        _adb("start-server", {**os.environ, **home})
        yield
        _adb("kill-server", {**os.environ, **home})


def _adb(word: str, environment: dict[str, str]) -> None:
    null = subprocess.DEVNULL
    subprocess.run(["adb", word], check=True, timeout=60, stdout=null, stderr=null, env=environment)


@pytest.fixture
def android(adb_server: None, tmp_path: Path) -> Iterator[EmulatedAndroid]:
    """Return an emulated Android phone behind the real adb client."""
    from fakes.emulated_phone import EmulatedAndroid

    phone = emulated(EmulatedAndroid, tmp_path / "android", "phone-1")
    yield phone
    phone.close()


@pytest.fixture
def board(tmp_path: Path) -> Iterator[EmulatedBoard]:
    """Return an emulated Linux board whose agent listens."""
    from fakes.emulated_phone import EmulatedBoard

    board = emulated(EmulatedBoard, tmp_path / "board", "board-1")
    yield board
    board.close()


def emulated(kind: Callable[..., Any], *arguments: object, **more: object) -> Any:
    """Return ``kind(*arguments)``, or skip the test and name what is not installed."""
    try:
        return kind(*arguments, **more)
    except (LookupError, ToolchainError) as error:
        pytest.skip(str(error))


@pytest.fixture
def emulated_phones(adb_server: None, tmp_path: Path) -> Iterator[Callable[..., list[Any]]]:
    """Return ``phones(boards=2, androids=2)``: that many EmulatedBoard, then EmulatedAndroid, all of one key.

    The boards run the Android agent too and listen by themselves (``spec``, ``token``, ``token_file``); the Androids
    are behind the real adb client. All of them are ended with the test.
    """
    from fakes.emulated_phone import EmulatedAndroid, EmulatedBoard

    made: list[Any] = []

    def phones(boards: int = 2, androids: int = 2) -> list[Any]:
        first = len(made)
        for _ in range(boards):
            name = f"phone-{len(made) + 1}"
            made.append(emulated(EmulatedBoard, tmp_path / name, name, "android-arm64"))
        for _ in range(androids):
            name = f"phone-{len(made) + 1}"
            made.append(emulated(EmulatedAndroid, tmp_path / name, name))
        return made[first:]

    yield phones
    for phone in made:
        phone.close()
