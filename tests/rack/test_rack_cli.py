"""xnncc rack, as typed: what it prints, what it says when something is wrong, and its help."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.served_broker import KEY, Served, served, until

from xnncc.rack.discover import Found

COMMANDS = ["serve", "add", "remove", "list", "release", "run", "doctor", "token add", "token revoke", "token list"]


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("rack")) as found:
        until(lambda: all(d["state"] == "free" for d in found.admin.devices()), "free")
        yield found


@pytest.fixture
def command(
    rack: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Return ``command("list") -> (code, stdout, stderr)`` of `xnncc rack list` as the rack's admin."""
    from xnncc.cli.main import app
    from xnncc.cli.messages import run_to_exit_code

    monkeypatch.setenv("XNNCC_RACK", rack.url)
    monkeypatch.setenv("XNNCC_RACK_TOKEN", rack.tokens["admin"])
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    def run(*words: str) -> tuple[int, str, str]:
        code = run_to_exit_code(app, ["rack", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_defaults_and_an_example(command: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, text, said = command(*name.split(), "--help")
    assert (code, said) == (0, "")
    assert f"Example: xnncc rack {name}" in text
    assert "--json" in text and "-q, --quiet" in text
    options = text.partition("Options:\n")[2].partition("Example: ")[0]
    for flag in re.split(r"\n(?=  -)", options):
        if "--help" not in flag:
            assert re.search(r"[Dd]efault|\[required\]", flag), flag


def test_lists_devices_and_jobs(command: Any, rack: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    rack.admin.quarantine("phone-2", "swollen")
    job = rack.admin.create_job("tune squeezenet", KEY, weight=2.0)
    with rack.admin.lease("phone-1"):
        rack.admin.submit(job, "1", rack.document())
        code, text, _ = command("list")
        assert code == 0
        assert re.search(r"phone-1 +sim9000-arm64-v8a +busy +\d+\.\d +\d+ s +leased by admin", text)
        assert re.search(r"phone-2 +sim9000-arm64-v8a +quarantined .*by admin: swollen", text)
        assert re.search(r"tune squeezenet +admin +sim9000-arm64-v8a +0 +2 +0 +1 +0 +0", text)
        assert "2 devices" in text and "1 jobs with work" in text
        code, text, _ = command("list", "--json")
        assert {d["serial"] for d in json.loads(text)["devices"]} == {"phone-1", "phone-2"}
    monkeypatch.setattr(
        "xnncc.rack.discover.found_phones", lambda: [Found("adb:R5", "it is unauthorised", "Tap Allow.")]
    )
    code, text, _ = command("doctor")
    assert code == 1
    assert re.search(r"WRONG +adb:R5 +it is unauthorised +Tap Allow", text)
    assert re.search(r"WRONG +phone-2 .*`xnncc rack release phone-2`", text)
    assert command("release", "phone-2")[0] == 0
    rack.admin.cancel_job(job)
    until(lambda: rack.device("phone-2")["state"] == "free", "released")


def test_adds_and_removes(command: Any, rack: Served) -> None:
    code, text, _ = command("add", "sim:phone-9", "--name", "desk")
    assert code == 0 and text.startswith("phone-9: sim9000-arm64-v8a")
    assert rack.device("phone-9")["name"] == "desk"
    code, _, said = command("add", "sim:phone-9")
    assert code == 1 and "it is in the rack already" in said
    assert command("remove", "phone-9")[0] == 0
    code, _, said = command("remove", "phone-8")
    assert code == 1 and "is not in the rack; did you mean 'phone-" in said


def test_a_wrong_token_and_a_broker_that_is_not_there(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XNNCC_RACK_TOKEN", "xr_wrong")
    code, _, said = command("list")
    assert code == 1 and "the token is missing or wrong" in said
    monkeypatch.delenv("XNNCC_RACK_TOKEN")
    code, _, said = command("list")
    assert code == 1 and "no token for it is known" in said
    monkeypatch.delenv("XNNCC_RACK")
    code, _, said = command("list")
    assert code == 1 and "`xnncc rack serve`" in said


def test_a_file_names_the_rack(command: Any, rack: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XNNCC_RACK_TOKEN")
    monkeypatch.delenv("XNNCC_RACK")
    (tmp_path / "xnncc").mkdir()
    file = tmp_path / "xnncc" / "rack.toml"
    file.write_text(f'url = "{rack.url}"\ntoken = "{rack.tokens["view"]}"\n')
    assert command("list")[0] == 0
    file.write_text("url = ")
    code, _, said = command("list")
    assert code == 1 and "rack.toml" in said and "Write TOML" in said


def test_tokens_come_and_go(command: Any, tmp_path: Path) -> None:
    state = ("--state", str(tmp_path / "state"))
    code, token, _ = command("token", "add", "ci", *state)
    assert code == 0 and token.startswith("xr_")
    assert "there is one of that name" in command("token", "add", "ci", *state)[2]
    assert "Known: view, run, admin" in command("token", "add", "x", "--role", "king", *state)[2]
    assert re.search(r"ci +run", command("token", "list", *state)[1])
    assert command("token", "revoke", "ci", *state)[0] == 0
    assert command("token", "revoke", "ci", *state)[0] == 1


@pytest.mark.parametrize("words", [("--bind", "0.0.0.0"), ("--cert", "c.pem"), ("--bind", "::", "--key", "k.pem")])
def test_serve_refuses_strangers_without_tls(command: Any, tmp_path: Path, words: tuple[str, ...]) -> None:
    code, _, said = command("serve", "--state", str(tmp_path / "state"), *words)
    assert code == 1 and said.startswith("error: ") and "--cert" in said
