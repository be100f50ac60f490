"""What stands before the application: whose request this is, how large it is and how fast it comes, and the headers
that keep a browser from running or loading anything else."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

logger = logging.getLogger(__name__)

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
HEALTH = "/api/health"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Guard:
    """An ASGI application around another one."""

    def __init__(
        self,
        app: Any,
        hosts: Collection[str] = (),
        largest: int = 64 * 1024,
        seconds: float = 10.0,
        at_once: int = 128,
    ) -> None:
        self.app, self.largest, self.seconds, self.at_once = app, largest, seconds, at_once
        self.hosts = {host.lower().strip("[]") for host in (*LOOPBACK, *hosts)}
        self.inside = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send) if scope["type"] == "lifespan" else None
        started = False

        async def armed(message: Any) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        reason = self.foreign(scope)  # first: whoever is foreign is told so, however busy it is
        if reason:
            return await refuse(armed, 403, reason, CLOSE)
        if self.inside >= self.at_once and scope["path"] != HEALTH:  # who asks how it is shall hear it
            return await refuse(
                armed, 503, "too many requests at once; try again in a second", [(b"retry-after", b"1")]
            )
        self.inside += 1
        try:
            await self._let_in(scope, receive, armed)
        except Exception:
            logger.exception("%s %s", scope["method"], scope["path"])
            if not started:
                await refuse(armed, 500, "an error of the server; its log says which")
        finally:
            self.inside -= 1

    async def _let_in(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await asyncio.wait_for(self._body(scope, receive), self.seconds)
        except TimeoutError:
            return await refuse(send, 408, f"the request was not whole after {self.seconds:g} s", CLOSE)
        except TooLargeError:
            return await refuse(send, 413, f"the request is larger than {self.largest:,} bytes; send less", CLOSE)
        except GoneError:
            return None
        await self.app(scope, replayed(body, receive), send)

    def foreign(self, scope: Any) -> str | None:
        """Why this request is none of ours. A name that somebody points at this address (DNS rebinding) is not among
        our hosts, and a page of somebody else says so in Origin or Sec-Fetch-Site."""
        headers = _gathered(scope["headers"])
        hosts, origins = headers.get(b"host", []), headers.get(b"origin", [])
        if len(hosts) != 1 or not self._own(hosts[0], scope):
            return "Host is not a name of this server; regard serve --allow-host NAME adds one"
        if len(origins) > 1 or (origins and not _same(origins[0], hosts[0])):
            return "Origin is another site; this server answers its own page only"
        site = headers.get(b"sec-fetch-site", [b"none"])[-1]
        opens = headers.get(b"sec-fetch-mode", [b""])[-1] == b"navigate" and scope["method"] == "GET"
        if site not in (b"same-origin", b"none") and not opens:
            return "Sec-Fetch-Site is another site; this server answers its own page only"
        return None

    def _own(self, host: bytes, scope: Any) -> bool:
        name = _name(host)
        if name is None:
            return False
        if name in self.hosts:
            return True
        # The address at which this connection arrived: a number, so nobody can point a name at it.
        server = (scope.get("server") or ("",))[0]
        try:
            return ipaddress.ip_address(name) == ipaddress.ip_address(server)
        except ValueError:
            return False

    async def _body(self, scope: Any, receive: Any) -> bytes:
        told = _gathered(scope["headers"]).get(b"content-length", [])
        if any(not size.isdigit() or len(size) > 12 or int(size) > self.largest for size in told):
            raise TooLargeError
        found = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            found += message.get("body", b"")
            if len(found) > self.largest:
                raise TooLargeError
            if not message.get("more_body", False):
                return bytes(found)


CLOSE = [(b"connection", b"close")]


class TooLargeError(Exception):
    pass


class GoneError(Exception):
    pass


def replayed(body: bytes, receive: Any) -> Any:
    """The body once, then whatever comes: a client that goes away."""
    given = False

    async def again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def refuse(send: Any, status: int, reason: str, headers: Any = ()) -> None:
    body = json.dumps({"error": reason}).encode()
    said = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": said})
    await send({"type": "http.response.body", "body": body})


def _gathered(headers: Any) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    return found


def _name(host: bytes) -> str | None:
    """The name in a Host header, without its port; None where it is none."""
    try:
        parts = urlsplit(f"//{host.decode('ascii')}")
        _ = parts.port  # raises where it is no port
    except ValueError:
        return None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return None
    return (parts.hostname or "").rstrip(".") or None


def _same(origin: bytes, host: bytes) -> bool:
    scheme, _, rest = origin.partition(b"://")
    return scheme in (b"http", b"https") and rest.lower() == host.lower()
