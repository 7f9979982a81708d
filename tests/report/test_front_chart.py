"""The front of size against loss."""

from __future__ import annotations

from typing import Any
from xml.dom.minidom import parseString

from xnncc.report.front_chart import draw_front, front


def _trial(size: int, loss: float | None, is_chosen: bool = False) -> dict[str, Any]:
    return {"bytes": size, "loss": loss, "holds": loss is not None and loss < 0.1, "is_chosen": is_chosen}


def test_the_front_is_what_nothing_beats() -> None:
    trials = [_trial(100, 0.5), _trial(200, 0.1), _trial(250, 0.2), _trial(300, 0.05), _trial(200, 0.3)]
    assert [trial["bytes"] for trial in front(trials)] == [100, 200, 300]


def test_every_trial_with_a_loss_is_a_dot() -> None:
    picture = draw_front([_trial(100, 0.5), _trial(200, 0.01, True), _trial(300, None)], True)
    document = parseString(picture)
    assert [dot.getAttribute("class") for dot in document.getElementsByTagName("circle")] == ["misses", "chosen"]
    assert "200 B, loss 1 %" in picture


def test_one_trial_is_no_picture() -> None:
    assert draw_front([_trial(100, 0.5)], True) == ""
    assert draw_front([_trial(100, None), _trial(90, None)], True) == ""
