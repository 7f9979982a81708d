"""Write report.json and report.html: the page is one file that works offline, in light and in dark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xnncc.report.data import ReportData, document
from xnncc.report.memory_chart import draw_memory
from xnncc.report.template import render_template
from xnncc.report.words import count, shape, share, size

SHIPPED = {"library": "library: kernels, graph, runtime", "package": "package: weights, names"}  # role -> contents
Words = Callable[[int], str]  # a number as a person reads it
TOP = 12  # layers with a bar of their own


def write(directory: Path, data: ReportData) -> dict[str, Any]:
    """Write ``report.json`` and ``report.html`` into ``directory``; return the JSON document. Same data, same bytes."""
    facts = document(data)
    text = json.dumps(facts, indent=1, sort_keys=True, ensure_ascii=False)
    (directory / "report.json").write_text(text + "\n", encoding="utf-8")
    (directory / "report.html").write_text(render(facts), encoding="utf-8")
    return facts


def render(facts: dict[str, Any]) -> str:
    """Return the page for a document that ``document`` made."""
    totals = facts["totals"]
    drawn = {
        "shipped": _shipped(facts["files"]),
        "weight_bars": _bars(facts["ops"], "weights_bytes", totals["weights_bytes"], size),
        "mac_bars": _bars(facts["ops"], "macs", totals["macs"], count),
        "rule_bars": _rule_bars(facts["ops"], totals["macs"]),
        "chart": draw_memory(facts["memory"], totals),
    }
    return render_template("page.html", {"size": size, "count": count, "shape": shape}, {**facts, **drawn})


def _shipped(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the files an app ships, largest first, with their part of the sum and what is in them."""
    shipped = [{**f, "holds": SHIPPED[f["role"]]} for f in files if f["role"] in SHIPPED]
    total = sum(f["bytes"] for f in shipped) or 1
    return [{**f, "percent": 100 * f["bytes"] / total} for f in sorted(shipped, key=lambda f: (-f["bytes"], f["path"]))]


def _bars(ops: list[dict[str, Any]], key: str, total: int, words: Words) -> list[dict[str, Any]]:
    """Return a bar for each of the layers with the most of ``key``, and a line without a bar for all the others."""
    ranked = sorted((op for op in ops if op[key]), key=lambda op: (-op[key], op["index"]))
    shared = _shared_prefix([layer_name(op) for op in ops])
    bars = [
        _bar(layer_name(op)[shared:], op[key], total, words, f"{layer_name(op)} ({op['kernel']})")
        for op in ranked[:TOP]
    ]
    bars = _scaled(bars)
    rest = ranked[TOP:]
    if rest:
        name = "1 more layer" if len(rest) == 1 else f"{len(rest)} more layers"
        bars.append({**_bar(name, sum(op[key] for op in rest), total, words, name), "percent": None})
    return bars


def _shared_prefix(names: list[str]) -> int:
    """Return how many characters of the path ("net/block1/") all names share; 0 when they are too few to tell."""
    if len(names) < 3:
        return 0
    low, high = min(names), max(names)  # what these two share, all share
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[:same].rfind("/") + 1


def _rule_bars(ops: list[dict[str, Any]], total: int) -> list[dict[str, Any]]:
    """Return a bar for each schedule rule, by the MACs it runs."""
    macs: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for op in ops:
        macs[op["rule"]] += op["macs"]
        calls[op["rule"]] += 1
    ranked = sorted(((rule, work) for rule, work in macs.items() if work), key=lambda item: (-item[1], item[0]))
    names = {rule: f"{rule} × {calls[rule]}" for rule in macs}
    return _scaled([_bar(names[rule], work, total, count, f"{calls[rule]} operators") for rule, work in ranked])


def _bar(name: str, value: int, total: int, words: Words, hint: str) -> dict[str, Any]:
    return {"name": name, "value": value, "text": words(value), "share": share(value, total), "hint": hint}


def _scaled(bars: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add each bar's length in percent of the longest."""
    longest = max((bar["value"] for bar in bars), default=0) or 1
    return [{**bar, "percent": 100 * bar["value"] / longest} for bar in bars]


def layer_name(op: dict[str, Any]) -> str:
    """Return what a person calls this operator: the last tensor of the model that it completes, or its kernel."""
    return op["source"][-1] if op["source"] else op["kernel"]
