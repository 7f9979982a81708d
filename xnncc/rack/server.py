"""The broker as a server: where it may listen, with what, and its end.

    with running(broker, listen("127.0.0.1", 0)) as url: ...      in a thread, for tests and tools
    serve(broker, listen("127.0.0.1", 8470))                      until a signal

It listens on loopback unless told otherwise, and elsewhere only with TLS.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from xnncc.errors import BadInput, OutputError
from xnncc.rack.api import make_app
from xnncc.rack.broker import Broker

PORT = 8470
_DRAIN_SECONDS = 3


@dataclass(frozen=True)
class Endpoint:
    """A socket that listens, and how it is called."""

    socket: socket.socket
    url: str
    cert: Path | None = None
    key: Path | None = None


def listen(host: str, port: int, cert: Path | None = None, key: Path | None = None) -> Endpoint:
    """Return a socket that listens at ``host:port``; port 0 is any free one.

    Raises: BadInput for an address beyond loopback without TLS, or half of a certificate; OutputError when it is taken.
    """
    if (cert is None) != (key is None):
        raise BadInput("TLS", "--cert and --key belong together", "Give both.")
    if cert is None and not is_loopback(host):
        why = "others could read tokens on an address that is not loopback"
        raise BadInput(f"--bind {host}", why, "Give --cert FILE and --key FILE, or bind to 127.0.0.1.")
    for path in (cert, key):
        if path is not None and not path.is_file():
            raise BadInput(f"'{path}'", "there is no such file", "Give a certificate and its key as PEM files.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's algorithm off only where the protocol is named; with it every answer takes 40 ms longer.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(256)
    except OSError as error:
        sock.close()
        why = str(error.strerror or error).lower()
        raise OutputError(f"{host}:{port}", why, "Take another --port, or see which program has it.") from error
    shown = f"[{host}]" if ":" in host else host
    url = f"{'https' if cert else 'http'}://{shown}:{sock.getsockname()[1]}"
    return Endpoint(sock, url, cert, key)


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(broker: Broker, endpoint: Endpoint) -> None:
    """Serve until SIGINT or SIGTERM."""
    broker.start()
    try:
        _server(broker, endpoint).run(sockets=[endpoint.socket])
    finally:
        broker.stop()
        endpoint.socket.close()


@contextmanager
def running(broker: Broker, endpoint: Endpoint) -> Iterator[str]:
    """Serve in a thread; give the URL."""
    server = _server(broker, endpoint)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [endpoint.socket]}, daemon=True)
    broker.start()
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield endpoint.url
    finally:
        server.should_exit = True
        thread.join(_DRAIN_SECONDS + 5)
        broker.stop()
        endpoint.socket.close()


def _server(broker: Broker, endpoint: Endpoint) -> uvicorn.Server:
    config = uvicorn.Config(
        make_app(broker),
        log_level="warning",
        access_log=False,
        ssl_certfile=endpoint.cert,
        ssl_keyfile=endpoint.key,
        ws_max_size=64 << 10,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
        h11_max_incomplete_event_size=64 << 10,
        limit_concurrency=1000,
        server_header=False,
    )
    return uvicorn.Server(config)
