"""Write the report of a squeeze beside its file: ``X.xq.report.json`` and ``X.xq.report.html``, one page, offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from xnncc.report.front_chart import draw_front
from xnncc.report.template import render_template
from xnncc.report.words import count, size


def write_squeeze_report(path: Path, document: dict[str, Any]) -> None:
    """Write both files beside ``path``, the compressed model. Same document, same bytes."""
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
    path.with_name(path.name + ".report.json").write_text(text + "\n", encoding="utf-8")
    path.with_name(path.name + ".report.html").write_text(render_squeeze(document), encoding="utf-8")


def render_squeeze(document: dict[str, Any]) -> str:
    """Return the page for a document that ``compress/report.py`` made."""
    is_share = document["is_share"]

    def loss(value: float | None) -> str:
        """Return a loss in words; None: not measured."""
        return "not measured" if value is None else loss_words(value, is_share)

    filters = {"size": size, "count": count, "loss": loss, "percent": lambda share: f"{100 * share:.1f} %"}
    chart = draw_front(document["trials"], is_share)
    return render_template("squeeze_page.html", filters, {**document, "chart": chart})


def loss_words(value: float, is_share: bool) -> str:
    """Return ``value`` as a person reads it: ``0.31 %`` for shares, else the number."""
    return f"{100 * value:.3g} %" if is_share else f"{value:.3g}"
