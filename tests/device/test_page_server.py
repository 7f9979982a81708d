"""The server of one page: what it was told to serve, to whom it was told, and nothing else."""

from __future__ import annotations

import queue
import socket
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from xnncc.device.page_server import GONE, PageServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PageServer]:
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "page.html").write_text("page")
    with PageServer({"page.html": tmp_path / "page.html", "artefact/a b.xnn": b"weights"}, ("done",)) as opened:
        yield opened


def request(server: PageServer, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    """Send exactly that path: no client of ours tidies it."""
    connection = HTTPConnection("127.0.0.1", urlsplit(server.address).port or 0, timeout=10)
    connection.request(method, path, body)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, data


def below(server: PageServer) -> str:
    return urlsplit(server.address).path


def test_serves_files_and_bytes_by_name(server: PageServer) -> None:
    assert request(server, below(server) + "page.html") == (200, b"page")
    assert request(server, below(server) + "artefact/a%20b.xnn?x=1") == (200, b"weights")
    assert not server.has_begun  # only a page that asks for "alive" has


@pytest.mark.parametrize(
    "path",
    ["secret.txt", "../secret.txt", "%2e%2e/secret.txt", "./page.html", "artefact/", "", "/etc/passwd", "page.html/"],
)
def test_serves_nothing_else(server: PageServer, path: str) -> None:
    status, data = request(server, below(server) + path)
    assert status == 404 and b"secret" not in data


@pytest.mark.parametrize("path", ["/page.html", "/", "/wrong/page.html", "//page.html"])
def test_needs_the_random_word(server: PageServer, path: str) -> None:
    status, _ = request(server, path)
    assert status == 404 and not server.has_begun


def test_a_path_of_any_bytes_is_only_wrong(server: PageServer) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(server.address).port or 0), timeout=10) as page:
        page.sendall(b"GET /\xc3\xa9/page.html HTTP/1.0\r\n\r\n")
        assert b" 404 " in page.makefile("rb").readline()


def test_hears_expected_posts_only(server: PageServer) -> None:
    assert request(server, below(server) + "other", "POST", b"x")[0] == 404
    assert request(server, "/wrong/done", "POST", b"x")[0] == 404
    assert server.heard.empty()
    assert request(server, below(server) + "done", "POST", b"words")[0] == 204
    assert server.heard.get(timeout=10) == ("done", b"words")


def test_listens_on_the_loopback_address_only(server: PageServer) -> None:
    assert server.address.startswith("http://127.0.0.1:")
    with socket.socket() as other, pytest.raises(OSError):
        other.settimeout(2)
        other.connect(("127.0.0.2", urlsplit(server.address).port or 0))


def test_notices_that_the_page_is_gone(server: PageServer) -> None:
    with socket.create_connection(("127.0.0.1", urlsplit(server.address).port or 0)) as page:
        page.sendall(f"GET {below(server)}alive HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        with pytest.raises(queue.Empty):
            server.heard.get(timeout=0.3)
    assert server.heard.get(timeout=10) == (GONE, b"")
