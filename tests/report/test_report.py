"""The report: right sums, one file that works offline, the same bytes twice."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from xnncc import report
from xnncc.ir.plan import MemoryPlan
from xnncc.report import ReportData
from xnncc.report.memory_chart import draw_memory

VOID = {"meta", "input", "br", "link", "img", "hr"}


class _Balanced(HTMLParser):
    """Fails on a tag that closes another one than the last opened; collects what the page would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [f"{tag} {name}={value}" for name, value in attrs if name in ("src", "href") and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"line {self.getpos()[0]}"


def _page(data: ReportData, tmp_path: Path) -> str:
    report.write(tmp_path, data)
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_json_file_is_the_returned_document(data: ReportData, tmp_path: Path) -> None:
    document = report.write(tmp_path, data)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == document


def test_totals(data: ReportData, tmp_path: Path) -> None:
    assert report.write(tmp_path, data)["totals"] == {
        "op_count": 3, "macs": 76_288, "weights_bytes": 10_752, "arena_bytes": 1216, "peak_live_bytes": 1152,
        "thread_scratch_bytes": 0,
    }  # fmt: skip


def test_shared_weights_count_for_the_first_operator_that_reads_them(data: ReportData) -> None:
    assert [op["weights_bytes"] for op in report.document(data)["ops"]] == [496, 10_240, 0]


def test_live_bytes_are_the_sum_of_the_buffers_alive(data: ReportData) -> None:
    assert report.document(data)["memory"]["live_bytes"] == [1152, 1088, 64]


def test_same_data_same_bytes(data: ReportData, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        report.write(tmp_path / folder, data)
    for name in ("report.json", "report.html"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_page_is_balanced_and_loads_nothing(data: ReportData, tmp_path: Path) -> None:
    parser = _Balanced()
    page = _page(data, tmp_path)
    parser.feed(page)
    assert parser.open == []
    assert parser.loads == []
    assert "http" not in re.sub(r"<script>.*</script>", "", page, flags=re.S)
    assert "url(" not in page
    assert "@import" not in page


def test_page_shows_names_numbers_warnings_and_tools(data: ReportData, tmp_path: Path) -> None:
    page = _page(data, tmp_path)
    for words in ("net/relu", "conv_relu", "NCHW8c", "73.7 k", "0.27.0.post1", "20.0 KiB", "3e-07", "1×3×8×8"):
        assert words in page
    assert "1 warning</h2>" in page


def test_names_from_the_model_are_escaped(data: ReportData, tmp_path: Path) -> None:
    page = _page(data, tmp_path)
    assert "small &lt;net&gt;" in page
    assert "<net>" not in page
    assert "NaN &amp; more" in page


def test_page_follows_the_systems_light_or_dark(data: ReportData, tmp_path: Path) -> None:
    assert "prefers-color-scheme: dark" in _page(data, tmp_path)


def test_memory_chart_has_a_box_a_buffer_and_the_peak(data: ReportData) -> None:
    document = report.document(data)
    svg = ElementTree.fromstring(draw_memory(document["memory"], document["totals"]))
    boxes = list(svg.iter("rect"))
    assert [box.get("class") for box in boxes] == ["tensor", "scratch", "tensor"]
    titles = [box.find("title").text for box in boxes]
    assert titles[0] == "net/relu: 1.0 KiB at 0 B, operators 0 to 1"
    assert titles[1] == "scratch of conv_relu: 128 B at 1.0 KiB, operator 0"
    assert "peak 1.1 KiB live at operator 0" in [text.text for text in svg.iter("text")]


def test_boxes_stay_inside_the_plot(data: ReportData) -> None:
    from xnncc.report import memory_chart as chart

    document = report.document(data)
    for box in ElementTree.fromstring(draw_memory(document["memory"], document["totals"])).iter("rect"):
        x, y, width, height = (float(box.get(key)) for key in ("x", "y", "width", "height"))
        assert chart.LEFT <= x <= x + width <= chart.LEFT + chart.WIDTH + 0.01
        assert chart.TOP - 0.01 <= y <= y + height <= chart.TOP + chart.HEIGHT + 0.01


def test_network_without_arena_operators_or_weights(data: ReportData, tmp_path: Path) -> None:
    bare = dataclasses.replace(data, ops=(), memory=MemoryPlan(0, 0, 0, 0), files=(), warnings=())
    page = _page(bare, tmp_path)
    assert "This network needs no arena." in page
    assert "No layer has weights." in page


def test_many_layers_share_one_line(data: ReportData, tmp_path: Path) -> None:
    op = data.ops[0]
    ops = tuple(dataclasses.replace(op, index=i, source=(f"net/conv{i}",)) for i in range(20))
    page = _page(dataclasses.replace(data, ops=ops), tmp_path)
    assert "8 more layers" in page
    assert "<bdi>conv0</bdi>" in page  # what all names share is left out of the bars


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (4_960_000, "4.73 MiB")]
)
def test_sizes_in_words(number: int, words: str) -> None:
    from xnncc.report.words import size

    assert size(number) == words


@pytest.mark.parametrize(
    ("number", "words"), [(999, "999"), (1000, "1 k"), (385_900_000, "386 M"), (1_234_567_890, "1.23 G")]
)
def test_counts_in_words(number: int, words: str) -> None:
    from xnncc.report.words import count

    assert count(number) == words
