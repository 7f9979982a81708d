"""A page in headless Chromium, and a visitor around it: a script that drops files on it and reads what it shows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from xnncc.codegen.emulators import find_browser
from xnncc.device.browser import Browser
from xnncc.device.page_server import PageServer

_VISITOR = """<!doctype html>
<iframe id="frame" width="1000" height="700" src=PAGE></iframe>
<script type="module">
  const frame = document.getElementById("frame");
  const page = () => frame.contentDocument;
  const until = async (fact) => { while (!fact()) await new Promise((done) => setTimeout(done, 20)); };
  const file = async (name) => new File([await (await fetch(name)).blob()], name);
  const filesOf = (list) => { const data = new DataTransfer(); for (const f of list) data.items.add(f); return data; };
  const drop = (...list) => {
    const event = new DragEvent("drop", { dataTransfer: filesOf(list), bubbles: true, cancelable: true });
    page().getElementById("drop").dispatchEvent(event);
  };
  const choose = (input, f) => {
    input.files = filesOf([f]).files;
    input.dispatchEvent(new Event("change"));
  };
  const ready = () => until(() => page()?.body?.dataset.ready || page()?.body?.dataset.done);
  const answer = async () => {
    await until(() => page().body.dataset.done);
    const answered = page().body.dataset.done;
    delete page().body.dataset.done;
    const rows = [...page().querySelectorAll("#result li")].map((row) => ({
      index: +row.dataset.index, score: +row.dataset.score, bar: row.querySelector("i").style.width,
      name: row.querySelector("span").textContent, share: row.querySelector(".share").textContent,
    }));
    return { answered, rows, status: page().getElementById("status").textContent };
  };
  const say = (what) => fetch("said", { method: "POST", body: JSON.stringify(what) });
  try {
    await ready();
    await say(await (async () => { SCRIPT })());
  } catch (error) {
    await say({ error: error.message });
  }
</script>
"""


def need_chromium() -> str:
    """Return the browser; skip when there is none, and say what installs it."""
    browser = find_browser()
    if browser.missing:
        pytest.skip(f"{browser.missing} is missing: {browser.install}")
    return browser.found


def visit(files: Mapping[str, bytes | Path], page: str, script: str) -> Any:
    """Open ``page`` of ``files``, run ``script`` around it, and return what the script returns.

    The script is the body of an async function that knows ready, drop, choose, file, answer and page.
    """
    html = _VISITOR.replace("PAGE", json.dumps(page)).replace("SCRIPT", script)
    with (
        PageServer({**files, "visitor.html": html.encode()}, ("said",)) as server,
        tempfile.TemporaryDirectory(prefix="xnncc-", ignore_cleanup_errors=True) as scratch,
        Browser(need_chromium(), Path(scratch), f"{server.address}visitor.html"),
    ):
        _, body = server.heard.get(timeout=120)
        said = json.loads(body)
        assert "error" not in said, said
        return said
