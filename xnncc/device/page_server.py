"""A web server for one page on this machine: it serves the files it was told by name, nothing else, and hears the page.

It listens on the loopback address, on a port that the system chooses, below a random word that only the page's address
contains: no other page or user of this machine can read the files or answer in the page's place.
"""

from __future__ import annotations

import queue
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote

_TYPES = {
    ".html": "text/html; charset=utf-8", ".json": "application/json", ".mjs": "text/javascript",
    ".wasm": "application/wasm",
}  # fmt: skip
GONE = "gone"  # what is heard when the page's "alive" ended


class PageServer:
    """Serves while it is open (``with``).

    ``files``: bytes, or the file that has them, by the name in the page's address. The page's posts arrive in ``heard``
    as (name, body), for the names of ``posts``; (GONE, b"") arrives when the page ends that asked for "alive".
    """

    def __init__(self, files: Mapping[str, bytes | Path], posts: tuple[str, ...]) -> None:
        self.heard: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self.has_begun = False  # the page's own script runs, so that its end will be heard
        self._files, self._posts, self._word = files, posts, secrets.token_hex(16)
        page = self

        class Handler(_Handler):
            server_page = page

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        """Where the files are, with a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}/{self._word}/"

    def named(self, path: str) -> str | None:
        """Return which name the path of a request means; None without the random word."""
        _, word, *rest = (*path.partition("?")[0].split("/", 2), "")
        return unquote(rest[0]) if secrets.compare_digest(word.encode(), self._word.encode()) else None

    def content(self, name: str) -> bytes | None:
        """Return the bytes of that name, or None."""
        source = self._files.get(name)
        return source.read_bytes() if isinstance(source, Path) else source

    def takes(self, name: str) -> bool:
        """A post of that name is expected."""
        return name in self._posts

    def __enter__(self) -> PageServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server_page: PageServer

    def do_GET(self) -> None:
        """Send a named file."""
        page, name = self.server_page, self.server_page.named(self.path)
        if name == "alive":
            page.has_begun = True
            self._wait_for_the_end()
            return
        data = page.content(name) if name is not None else None
        if name is None or data is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", _TYPES.get(Path(name).suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        # A page that no other one can reach into gets a clock of 5 us instead of 100 us.
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        """Hear what the page says."""
        page, name = self.server_page, self.server_page.named(self.path)
        length = self.headers.get("Content-Length", "")
        if name is None or not page.takes(name) or not length.isdigit():
            self.send_error(404)
            return
        body = self.rfile.read(int(length))
        if len(body) == int(length):  # else the page ended while it spoke
            page.heard.put((name, body))
            self.send_response(204)
            self.end_headers()

    def _wait_for_the_end(self) -> None:
        """Return when the other side is gone: a page that waits sends nothing more."""
        with suppress(OSError):  # reset is gone too
            self.connection.recv(1)
        self.server_page.heard.put((GONE, b""))

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""
