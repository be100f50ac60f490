"""The application on a socket: slow and idle connections are closed, a signal lets what runs end first."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from regard.core.shapes import InputError

DRAIN = 25  # seconds that requests have to end after SIGTERM
HEADERS = 10.0  # seconds that a connection may take to send a request's headers
CONNECTIONS = 512
SWITCH = 0.0005  # seconds
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 2\r\nconnection: close\r\n"
    b'content-length: 47\r\n\r\n{"error": "too many connections; try again soon"}'
)


class Connection(H11Protocol):
    """One connection. It is closed where no request is being answered for longer than headers may take."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.write(FULL)
            transport.close()
            return
        self._watch = self.loop.call_later(HEADERS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if hasattr(self, "_watch"):
            self._watch.cancel()

    def _look(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self._watch = self.loop.call_later(HEADERS, self._look)


class Server(uvicorn.Server):
    """Ends by itself after a signal, with status 0; a second Ctrl-C does not wait."""

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound, so that the address is known, and an error is one line."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
    except (OSError, UnicodeError, OverflowError) as error:
        raise InputError(f"--host {host}: {getattr(error, 'strerror', None) or error}; expected an address") from None
    made = socket.socket(family, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(address)
        made.listen(1024)  # who comes before the server is ready waits
    except OSError as error:
        made.close()
        raise InputError(
            f"{host}:{port}: {error.strerror}; choose another with --port, or end what runs there"
        ) from None
    return made


def make_server(app: Any) -> Server:
    # Threads that compute give way to the one that answers: at Python's usual 5 ms it would wait that long after
    # every read and write, and health would take seconds in a crowd.
    sys.setswitchinterval(SWITCH)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # what strangers send is no news
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=DRAIN,
        backlog=1024,
    )
    return Server(config)
