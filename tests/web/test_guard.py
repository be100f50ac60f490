"""Whom the server answers, how much it reads, and what it lets a browser do."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient
from torch import nn

from regard.web.app import FILES, make_app
from regard.web.guard import Guard
from regard.web.work import Work
from tests.web.small import served

HERE = "localhost:8000"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": HERE}, 200),
        ({"host": "LOCALHOST"}, 200),
        ({"host": "127.0.0.1:1"}, 200),
        ({"host": "[::1]:8000"}, 200),
        ({"host": "localhost."}, 200),
        ({"host": "my.machine:8000"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "localhost.evil.example"}, 403),
        ({"host": "127.0.0.1.nip.io"}, 403),
        ({"host": "evil.example:8000@localhost"}, 403),
        ({"host": "localhost@evil.example"}, 403),
        ({"host": "localhost/evil.example"}, 403),
        ({"host": "localhost:99999"}, 403),
        ({"host": "192.168.0.1"}, 403),
        ({"host": ""}, 403),
        ({"host": "\xff"}, 403),
        ({"host": HERE, "origin": f"http://{HERE}"}, 200),
        ({"host": HERE, "origin": "http://localhost:8001"}, 403),
        ({"host": HERE, "origin": "http://127.0.0.1:8000"}, 403),
        ({"host": HERE, "origin": "http://evil.example"}, 403),
        ({"host": HERE, "origin": "null"}, 403),
        ({"host": HERE, "origin": ""}, 403),
        ({"host": HERE, "origin": f"file://{HERE}"}, 403),
        ({"host": HERE, "sec-fetch-site": "same-origin"}, 200),
        ({"host": HERE, "sec-fetch-site": "none"}, 200),
        ({"host": HERE, "sec-fetch-site": "cross-site"}, 403),
        ({"host": HERE, "sec-fetch-site": "same-site"}, 403),
        ({"host": HERE, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 200),  # a link to the page
    ],
    ids=str,
)
def test_whose_request_this_is(headers, status):
    client = TestClient(make_app(hosts=["my.machine"]))
    answer = client.get("/api/health", headers={name: value.encode("latin-1") for name, value in headers.items()})
    assert answer.status_code == status
    if status == 403:
        assert "regard" in answer.json()["error"] or "its own page only" in answer.json()["error"]


def test_a_link_from_elsewhere_opens_the_page_but_posts_nothing():
    client = TestClient(make_app(), base_url=f"http://{HERE}")
    crossed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=crossed).status_code == 200
    assert client.post("/api/attend", json={"text": "a"}, headers=crossed).status_code == 403


def test_the_address_of_the_connection_is_ours_also_where_it_is_not_loopback():
    guard = Guard(None)
    scope = {"server": ("192.168.0.7", 80), "method": "GET", "headers": [(b"host", b"192.168.0.7")]}
    assert guard.foreign(scope) is None
    assert guard.foreign({**scope, "headers": [(b"host", b"192.168.0.8")]})
    assert guard.foreign({**scope, "headers": [(b"host", b"rebound.example")]})
    assert guard.foreign({**scope, "headers": []})
    assert guard.foreign({**scope, "headers": [(b"host", b"192.168.0.7"), (b"host", b"evil.example")]})


@pytest.mark.parametrize("path", [*FILES, "/view.js", "/api/health", "/nowhere", "/openapi.json"])
def test_every_answer_says_what_a_browser_may_do(path):
    answer = TestClient(make_app(), base_url=f"http://{HERE}").get(path)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "path", ["/../asked.py", "/%2e%2e/asked.py", "/page.js/../app.py", "//etc/passwd", "/page.js%00"]
)
def test_files_are_looked_up_never_joined(path):
    assert TestClient(make_app(), base_url=f"http://{HERE}").get(path).status_code == 404


# Over a socket: bodies that are too large, in pieces, slow


def talk(address: str, *parts: bytes, pause: float = 0.0) -> bytes:
    """Bytes as they are, and what comes back until the server closes."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as line:
        try:
            for part in parts:
                line.sendall(part.replace(b"HERE", f"{host}:{port}".encode()))
                time.sleep(pause)
        except (BrokenPipeError, ConnectionResetError):
            pass
        found = b""
        while True:
            try:
                data = line.recv(65536)
            except ConnectionResetError:
                break
            if not data:
                break
            found += data
        return found


POST = b"POST /api/attend HTTP/1.1\r\nHost: HERE\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def address(models):
    with served(models, seconds=1.0, largest=4096) as address:
        yield address


def test_too_large_is_refused_before_it_is_read(address):
    assert b" 413 " in talk(address, POST + b"Content-Length: 99999999999\r\n\r\n")
    assert b" 413 " in talk(address, POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n").replace(b" 400 ", b" 413 ")


def test_too_large_in_chunks_is_refused(address):
    chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
    assert b" 413 " in talk(address, POST + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 8)


def test_chunks_that_fit_are_answered(address):
    body = json.dumps({"text": "This is a cat"}).encode()
    chunks = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in body) + b"0\r\n\r\n"
    assert b" 200 " in talk(address, POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n", chunks)


def test_a_slow_body_is_not_waited_for(address):
    began = time.monotonic()
    found = talk(address, POST + b"Content-Length: 100\r\n\r\n", *[b"{"] * 16, pause=0.1)
    assert b" 408 " in found
    assert time.monotonic() - began < 5


def test_slow_headers_are_not_waited_for(address, monkeypatch):
    monkeypatch.setattr("regard.web.server.HEADERS", 0.3)
    began = time.monotonic()
    assert talk(address, *[b"GET / HTTP/1.1\r\nHost: HERE\r\nX: "] + [b"a"] * 8, pause=0.1) == b""
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "start",
    [b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n", b"GET /\r\n\r\n", b"A" * 70_000, b"GET / HTTP/1.1\r\n" + b"X: " + b"a" * 70_000],
    ids=["TLS", "no host", "no version", "no end", "large headers"],
)  # fmt: skip
def test_what_is_no_http_is_refused(address, start):
    found = talk(address, start)
    assert found == b"" or found.startswith(b"HTTP/1.1 400 ")
    with urlopen(f"{address}/api/health") as answer:
        assert answer.status == 200


def test_the_server_says_nothing_about_itself(address):
    with urlopen(f"{address}/api/health") as answer:
        assert "server" not in answer.headers


# When there is more than can be done


def test_more_than_may_wait_is_refused_at_once_and_health_still_answers(models):
    work = Work(threads=1, waiting=1, seconds=5)
    app = make_app(models, work=work)

    async def all_at_once():
        import httpx2 as httpx

        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{HERE}") as client:
            loud = [client.post("/api/attend", json={"text": "a b c " * 100}) for _ in range(12)]
            return await asyncio.gather(client.get("/api/health"), *loud, client.get("/api/health"))

    # In a thread of its own: the browser of other tests leaves a loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        first, *answers, last = thread.submit(asyncio.run, all_at_once()).result()
    assert first.status_code == last.status_code == 200
    statuses = [answer.status_code for answer in answers]
    assert set(statuses) == {200, 503}
    assert statuses.count(200) >= 2
    refused = next(answer for answer in answers if answer.status_code == 503)
    assert int(refused.headers["retry-after"]) > 0
    assert work.inside == 0


def test_what_takes_too_long_is_broken_off(models):
    """A network looks at the clock: the thread is free again, not only the client."""
    work = Work(threads=1, waiting=1, seconds=0.05)
    client = TestClient(make_app(models, work=work), base_url=f"http://{HERE}")
    work.seconds = 5
    assert client.post("/api/generate", json={"text": "the", "seed": 1}).status_code == 200
    work.seconds = 0.02
    network = models.entries["my generate"].loaded.network
    slow = next(m for m in network.modules() if isinstance(m, nn.Linear)).register_forward_pre_hook(
        lambda *_: time.sleep(0.1)
    )
    answer = client.post("/api/generate", json={"text": "the", "n_best": 8, "length": 256, "temperature": 5})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    deadline = time.monotonic() + 1
    while work.inside and time.monotonic() < deadline:
        time.sleep(0.01)
    slow.remove()
    assert work.inside == 0
    work.seconds = 5
    assert client.post("/api/generate", json={"text": "the", "seed": 1}).status_code == 200


def test_more_requests_at_once_than_the_guard_lets_in(models):
    app = make_app(models)
    app.at_once = 0
    client = TestClient(app, base_url=f"http://{HERE}")
    answer = client.get("/api/models")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert client.get("/api/health").status_code == 200  # who asks how it is shall hear it
    assert client.get("/api/models", headers={"host": "evil.example"}).status_code == 403  # and no one foreign more
