"""The rack's page in a real browser: what it shows, that it follows, that nothing it is told becomes a script."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from devtools import Tab, open_tab
from fakes.canned_broker import EVIL, CannedBroker, rack

from xnncc.device.rack_client import RackClient
from xnncc.rack.broker import Broker
from xnncc.rack.server import listen, running
from xnncc.rack.settings import Settings
from xnncc.rack.simulated import open_simulated
from xnncc.rack.web import FILES, HEADERS

PICTURES = os.environ.get("XNNCC_PICTURES")  # a folder: screenshots of the page, for a person to look at


@pytest.fixture
def broker() -> Iterator[CannedBroker]:
    with CannedBroker(rack()) as broker:
        yield broker


def sign_in(tab: Tab, token: str = "xr_view") -> None:
    tab.until("document.activeElement?.id === 'token'")
    tab.type(token)
    tab.press("Enter")


def words(tab: Tab, selector: str) -> list[str]:
    return list(tab.evaluate(f"[...document.querySelectorAll({selector!r})].map((e) => e.textContent)"))


def keep_picture(tab: Tab, name: str) -> None:
    if PICTURES:
        (Path(PICTURES) / f"{name}.png").write_bytes(tab.picture())


def test_shows_the_rack_and_follows_it(broker: CannedBroker) -> None:
    with open_tab(broker.address) as tab:
        sign_in(tab)
        tab.until("document.body.dataset.link === 'live' && document.body.dataset.shown === '6 4 2 0'")
        tab.until("document.querySelectorAll('#device-cards path[d]').length === 12")
        keep_picture(tab, "desktop")
        assert words(tab, "#device-cards .state")[:4] == ["quarantined", "offline", "cooling", "busy"]
        assert "check its cable" in words(tab, "#device-cards .reason")[0]
        assert words(tab, "#tiles li")[:5] == ["2free", "1busy", "1cooling", "1offline", "1quarantined"]
        assert words(tab, "#job-cards .reason")[0] == "measuring · 75 min left"
        assert tab.evaluate("document.querySelector('#job-cards progress').value") == 128
        assert words(tab, "#queue-rows tr:first-child td") == [
            "tune squeezenet1_1 (2)", "sm8550-arm64-v8a", "5", "1", "8", "0",
        ]  # fmt: skip
        assert "R5CT10003quarantined: 3 infrastructure faults" in words(tab, "#error-lines li")[0]
        assert tab.evaluate("document.getElementById('audit-section').hidden")
        label = tab.evaluate("document.querySelector('#device-cards > li:nth-child(4) svg').ariaLabel")
        assert label == "Temperature: now 37.5 °C, between 32.3 °C and 43.7 °C"

        broker.said["devices"][0].update(state="free", reason="")
        broker.tell({"type": "device", "serial": "R5CT10001"})
        tab.until("document.querySelector('#tiles li').textContent === '3free'", 10)
        assert tab.problems == []


def test_nothing_it_is_told_becomes_a_script(broker: CannedBroker) -> None:
    with open_tab(broker.address) as tab:
        sign_in(tab, "xr_admin")
        tab.until("document.body.dataset.shown === '6 4 2 3'")
        assert EVIL in words(tab, "#device-cards .head b")
        assert EVIL in words(tab, "#error-lines b")[1]
        assert tab.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert tab.evaluate("window.hacked === undefined")
        tab.evaluate(f"document.body.insertAdjacentHTML('beforeend', {EVIL!r})")  # even if it did, the page forbids it
        assert tab.evaluate("new Promise((done) => setTimeout(() => done(window.hacked === undefined), 300))")


def test_admin_sees_who_did_what_on_a_phone_in_the_dark(broker: CannedBroker) -> None:
    with open_tab(broker.address, width=360, height=740, is_dark=True) as tab:
        sign_in(tab, "xr_admin")
        tab.until("document.body.dataset.shown === '6 4 2 3'")
        tab.until("document.querySelectorAll('#device-cards path[d]').length === 12")
        keep_picture(tab, "phone")
        assert len(words(tab, "#audit-lines li")) == 3
        assert tab.evaluate("document.documentElement.scrollWidth") == 360  # nothing is cut off
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 21, 28)"


def test_polls_while_the_socket_is_gone_and_comes_back(broker: CannedBroker) -> None:
    with open_tab(broker.address) as tab:
        sign_in(tab)
        tab.until("document.body.dataset.link === 'live'")
        broker.takes_sockets = False
        broker.hang_up()
        tab.until("document.body.dataset.link === 'polling'")
        asked = broker.asked
        broker.said["devices"].pop()
        tab.until("document.body.dataset.shown === '5 4 2 0'", 20)
        assert broker.asked > asked
        broker.takes_sockets = True
        tab.until("document.body.dataset.link === 'live'", 60)


def test_token_is_entered_once_a_tab_and_a_wrong_one_is_refused(broker: CannedBroker) -> None:
    with open_tab(broker.address) as tab:
        sign_in(tab, "xr_wrong")
        refused = tab.until("document.getElementById('refused').textContent")
        assert refused == "The broker does not know this token."
        assert tab.evaluate("document.getElementById('rack').hidden && sessionStorage.length === 0")
        sign_in(tab)
        tab.until("document.body.dataset.shown")
        tab.command("Page.reload")
        tab.until("document.body.dataset.shown")
        assert tab.evaluate("localStorage.length === 0 && document.cookie === ''")


def test_reached_by_keyboard_alone(broker: CannedBroker) -> None:
    with open_tab(broker.address) as tab:
        sign_in(tab)
        tab.until("document.body.dataset.shown")
        tab.command("Page.reload")  # the token is known: nothing has the focus
        tab.until("document.body.dataset.shown")
        reached = []
        for _ in range(3):
            tab.press("Tab")
            reached.append(tab.evaluate("document.activeElement.id || document.activeElement.className"))
        assert reached == ["skip", "leave", "queue-card"]
        tab.evaluate("document.getElementById('leave').focus()")
        tab.press("Enter")
        tab.until("document.activeElement.id === 'token' && document.body.dataset.link === 'signed-out'")
        assert words(tab, "#device-cards li") == []


def test_shows_a_real_broker(tmp_path: Path) -> None:
    broker = Broker(Settings(tmp_path, open_simulated, None, finds_adb=False))
    token = broker.tokens.create("someone", "admin")
    with running(broker, listen("127.0.0.1", 0)) as url:
        broker.add("sim:first")
        broker.add("sim:second")
        with open_tab(f"{url}/") as tab, RackClient(url, token) as client:
            sign_in(tab, token)
            tab.until("document.body.dataset.link === 'live' && document.querySelectorAll('.state').length === 2")
            job = client.create_job("tune <b>net</b>", "sim9000-arm64-v8a")
            client.progress(job, text="measuring", done=3, total=9, best=12.5, unit="us", left_s=60.0)
            tab.until("document.querySelector('#job-cards .reason')?.textContent.startsWith('measuring')")
            assert words(tab, "#job-cards figcaption b") == ["12.5 us"]
            client.quarantine("first", "its battery is swollen")
            tab.until("document.querySelector('#device-cards .state').textContent === 'quarantined'")
            tab.until("document.querySelector('#error-lines li')?.textContent.includes('its battery is swollen')")
            tab.until("document.querySelector('#audit-lines li')?.textContent.includes('someone')")
            keep_picture(tab, "broker")
            assert tab.problems == []


def test_page_asks_nobody_else() -> None:
    for file, _ in FILES.values():
        content = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        without = content.replace("// ", "").replace("://${", "").replace('"https:"', "")
        assert "http:" not in without and "//" not in without
        assert "innerHTML" not in content and "eval(" not in content
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]
