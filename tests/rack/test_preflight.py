"""Why a phone must not measure now, and the file that says when it may."""

from __future__ import annotations

from pathlib import Path

import pytest

from xnncc.errors import BadInput
from xnncc.rack.phone import Description, Status
from xnncc.rack.preflight import Limits, read_limits, reasons, unfit, warm

FIT = Status(38.0, 80, 30.0, "schedutil", (2400000,), load=0.5, screen_on=True, throttled=False)
PHONE = Description("R5CT10", "sm8550", "arm64-v8a", "Android 14")


def changed(**values: object) -> Status:
    return Status(**{**vars(FIT), **values})  # type: ignore[arg-type]


def test_a_fit_phone_has_no_reason() -> None:
    assert reasons(FIT, Limits()) == []


def test_what_a_phone_cannot_tell_is_no_reason() -> None:
    assert reasons(Status(), Limits()) == []


@pytest.mark.parametrize(
    ("status", "kind", "sentence"),
    [
        (changed(celsius=52.34), "warm", "the processor is at 52.3 °C; it may start below 45 °C"),
        (changed(battery_celsius=41.0), "warm", "the battery is at 41.0 °C; it may start below 38 °C"),
        (changed(throttled=True), "warm", "it says that it throttles its clocks"),
        (changed(battery_percent=12.4), "unfit", "the battery has 12 %; it needs 20 %: charge it"),
        (
            changed(governor="powersave"),
            "unfit",
            "the governor is 'powersave', which keeps the clocks down: turn power saving off",
        ),
        (changed(screen_on=False), "unfit", "the screen is off; it must be on"),
        (changed(load=5.0), "unfit", "5 threads want to run; at most 3 may"),
    ],
)
def test_each_limit_has_its_sentence(status: Status, kind: str, sentence: str) -> None:
    other = unfit if kind == "warm" else warm
    assert {"warm": warm, "unfit": unfit}[kind](status, Limits()) == [sentence]
    assert other(status, Limits()) == []


def test_limits_themselves_are_allowed() -> None:
    status = changed(celsius=45.0, battery_celsius=38.0, battery_percent=20.0, load=3.0)
    assert reasons(status, Limits()) == []


def test_all_reasons_are_told_at_once() -> None:
    assert len(reasons(changed(celsius=60.0, throttled=True, battery_percent=3, screen_on=False), Limits())) == 4


def test_the_screen_may_be_wanted_off_or_not_matter() -> None:
    assert reasons(FIT, Limits(screen="off")) == ["the screen is on; it must be off"]
    assert reasons(changed(screen_on=False), Limits(screen="any")) == []


def test_a_file_changes_everyones_limits_and_a_keys_and_one_phones(tmp_path: Path) -> None:
    path = tmp_path / "preflight.toml"
    path.write_text(
        'max_celsius = 50\nslow_governors = ["powersave"]\n'
        '[device."sm8550-arm64-v8a"]\nmax_celsius = 40.5\nscreen = "any"\n[device.R5CT10]\nmax_load = 1\n'
    )
    table = read_limits(path)
    assert table.every == Limits(max_celsius=50.0, slow_governors=("powersave",))
    own = table.of(PHONE)
    assert (own.max_celsius, own.screen, own.max_load) == (40.5, "any", 1.0)
    assert table.of(Description("other", "sm8550", "arm64-v8a", "")).max_load == 3.0
    assert table.of(Description("other", "mt6789", "arm64-v8a", "")) == table.every


def test_no_file_is_the_default(tmp_path: Path) -> None:
    assert read_limits(tmp_path / "preflight.toml").of(PHONE) == Limits()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_celcius = 50", "unknown limit 'max_celcius'; did you mean 'max_celsius'"),
        ("max_celsius = true", "'max_celsius' is True: expected a number"),
        ("max_celsius = nan", "'max_celsius' is nan: expected a number"),
        ('slow_governors = "powersave"', "expected a list of names"),
        ('screen = "bright"', "'screen' is 'bright'. Known: on, off, any"),
        ("max_celsius =", "preflight.toml"),
        ("device = 3", "'device' is no table of tables"),
        ("[device.A]\nallow_throttled = 1", "'allow_throttled' is 1: expected true or false"),
    ],
)
def test_a_wrong_file_is_told(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "preflight.toml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_limits(path)
    assert words in str(caught.value) and str(path) in str(caught.value)


def test_the_defaults_that_the_manual_shows_are_the_defaults(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "phones.md").read_text(encoding="utf-8")
    shown = text.split("```toml\n")[1].split("```")[0]
    (tmp_path / "preflight.toml").write_text(shown)
    table = read_limits(tmp_path / "preflight.toml")
    assert table.every == Limits()
    assert {name for name in vars(Limits()) if f"{name} = " in shown} == set(vars(Limits()))
    assert table.of(Description("R5CT10ABCDE", "sm8550", "arm64-v8a", "")).max_celsius == 50.0
