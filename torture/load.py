"""Many clients at once, few of them friendly: the server sheds what is too much, answers the rest, and ends in time.

Loopback only, and a server of its own, which this row starts and ends. Every client stops by the clock.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from torture.service import Service, models, serving
from torture.table import Figure

NAME = "load"
BAR = "256 clients, 10 minutes: only 503 sheds, memory grows ≤ 10%, health p99 ≤ 1 s, drained within 30 s, foreign Host or Origin → 403"
CLIENTS, SECONDS = 256, 600.0
FEW, SHORT = 48, 6.0  # where it must be quick
WARM = 0.2  # of the time, before memory is looked at
PATIENCE = 60.0  # for one answer: more than the server's own limits together
DRAIN, GROWTH, HEALTH = 30.0, 1.10, 1.0
SHED = {429, 503}
CUT = 0  # in the place of a status: the server closed the connection without one


@dataclass
class Seen:
    """What came back, by what was sent; and what should not have."""

    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    drained: int = 0  # answers to requests that were on their way when the server was asked to end


def run(quick: bool) -> Figure:
    with TemporaryDirectory(prefix="torture-") as folder:
        places = {} if quick else models(Path(folder))
        with serving(places, Path(folder) / "log") as service:
            figure = measured(service, quick)
        said = (Path(folder) / "log").read_text()
    if "Traceback" in said:
        return Figure(NAME, figure.figure, False, [*figure.detail, *said.splitlines()[-20:]])
    return figure


def measured(service: Service, quick: bool) -> Figure:
    clients, seconds = (FEW, SHORT) if quick else (CLIENTS, SECONDS)
    command = [sys.executable, "-m", "torture.prober", service.host, str(service.port)]
    root = Path(__file__).parents[1]
    prober = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    seen, memory = Seen(), list[tuple[float, int]]()
    try:
        # In a thread of its own: a browser that other tests drive may have left a loop running in this one.
        with ThreadPoolExecutor(1) as alone:
            running = alone.submit(asyncio.run, crowd(service, clients, seconds, seen, memory, prober))
            status, took, waited = running.result()
        told, _ = prober.communicate(timeout=PATIENCE)
    finally:
        if prober.poll() is None:
            prober.kill()
        prober.wait()
    health = json.loads(told)
    p99 = sorted(health["seconds"])[int(0.99 * len(health["seconds"]))] if health["seconds"] else float("inf")
    grown = growth(memory, seconds)
    wrong = [f"{count} times: {what}" for what, count in seen.wrong.most_common()]
    wrong += [f"health failed {len(health['failures'])} times: {Counter(health['failures'])}"] * bool(
        health["failures"]
    )
    wrong += [f"health p99 {p99:.2f} s; for {100 * waited:.0f}% of the time the server waited for a core"] * (
        p99 > HEALTH
    )
    wrong += [f"memory grew by {100 * (grown - 1):.0f}%"] * (grown > GROWTH and not quick)
    wrong += [f"after SIGTERM: exit status {status}, {took:.0f} s"] * (status != 0 or took > DRAIN)
    answers, shed = sum(seen.counts.values()), sum(n for (_, code), n in seen.counts.items() if code in SHED)
    foreign = seen.counts["foreign", 403]
    wrong += ["no foreign request was answered"] * (not foreign)
    figure = (
        f"{clients} clients, {seconds:.0f} s: {answers:,} answers, {shed:,} shed, {foreign:,} foreign → 403, "
        f"memory {100 * (grown - 1):+.0f}%, health p99 {1000 * p99:.0f} ms, drained in {took:.1f} s"
    )
    every = [f"{what}: {code or 'cut off'}: {count:,}" for (what, code), count in sorted(seen.counts.items())]
    return Figure(NAME, figure, not wrong, wrong + every * bool(wrong))


def growth(memory: list[tuple[float, int]], seconds: float) -> float:
    """The last tenth's median over that of the tenth after warming up."""

    def middle(start: float, end: float) -> float:
        return statistics.median([size for at, size in memory if start <= at / seconds < end] or [1])

    return middle(0.9, 1.01) / max(middle(WARM, WARM + 0.1), 1)


async def crowd(
    service: Service,
    clients: int,
    seconds: float,
    seen: Seen,
    memory: list[tuple[float, int]],
    prober: subprocess.Popen,
) -> tuple[int | None, float, float]:
    started = time.monotonic()
    until = started + seconds
    everybody = [asyncio.create_task(client(service, random.Random(n), until, seen)) for n in range(clients)]
    while time.monotonic() < until:
        await asyncio.sleep(min(1.0, seconds / 20))
        memory.append((time.monotonic() - started, service.memory))
    assert prober.stdin
    prober.stdin.close()  # health is asked for while the server is there
    prober.stdin = None
    waited = service.waited / (time.monotonic() - started)
    asked = [asyncio.create_task(draining(service, seen)) for _ in range(4)]
    await asyncio.sleep(0.05)
    status, took = await asyncio.to_thread(service.end, DRAIN + 10)
    _, left = await asyncio.wait([*everybody, *asked], timeout=PATIENCE)
    for each in left:
        each.cancel()
        seen.wrong["a client that was never answered"] += 1
    return status, took, waited


async def draining(service: Service, seen: Seen) -> None:
    """A request that is on its way when the server is asked to end."""
    with suppress(OSError, EOFError, TimeoutError):
        seen.drained += await ask(service, ordinary(random.Random(0))) == 200


async def client(service: Service, chance: random.Random, until: float, seen: Seen) -> None:
    """One request after another, each on a connection of its own, of any kind."""
    while time.monotonic() < until:
        name = chance.choices(list(KINDS), [weight for weight, *_ in KINDS.values()])[0]
        _, make, expected = KINDS[name]
        try:
            code = await asyncio.wait_for(make(service, chance), PATIENCE)
        except (OSError, EOFError):
            code = CUT
        except TimeoutError:
            seen.wrong[f"{name}: no answer in {PATIENCE:.0f} s"] += 1
            continue
        if time.monotonic() > until and code == CUT:
            return  # the server is ending
        seen.counts[name, code] += 1
        if code not in expected:
            seen.wrong[f"{name}: {code or 'cut off'}, expected one of {sorted(expected)}"] += 1
        await asyncio.sleep(chance.uniform(0, 0.2))


# What is sent


def request(
    method: str, path: str, body: bytes = b"", host: str = "localhost", *headers: str, length: int | None = None
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", "Content-Type: application/json"]
    lines += [f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def ordinary(chance: random.Random, *headers: str, host: str = "localhost") -> bytes:
    text = " ".join(chance.choices(["the", "black", "cat", "sees", "dog", "____", "नमस्ते"], k=chance.randrange(2, 20)))
    path = chance.choice(["attend", "attend", "walk", "translate", "tag", "classify", "fill", "denoise", "generate"])
    asked = {"text": f"{text} ____"} | ({"length": 5} if path == "generate" else {})
    if chance.random() < 0.2:
        return request("GET", chance.choice(["/", "/page.js", "/api/models", "/api/mechanisms"]), b"", host, *headers)
    query = chance.choice(["", "", "", "?as=svg"]) if path == "attend" else ""
    return request("POST", f"/api/{path}{query}", json.dumps(asked).encode(), host, *headers)


async def connected(service: Service) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(service.host, service.port)


async def status(reader: asyncio.StreamReader) -> int:
    """The status, once all of the answer is there."""
    line = await reader.readline()
    if not line:
        return CUT
    while await reader.read(65536):
        pass
    return int(line.split()[1])


async def ask(service: Service, data: bytes) -> int:
    return await sent(service, _at_once(data))


async def _at_once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def sent(service: Service, parts: AsyncIterator[bytes]) -> int:
    """Also where the server answers before it has read all."""
    reader, writer = await connected(service)
    answer = asyncio.create_task(status(reader))
    try:
        with suppress(OSError):
            async for part in parts:
                if answer.done():
                    break
                writer.write(part)
                await writer.drain()
        return await answer
    finally:
        answer.cancel()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def friendly(service: Service, chance: random.Random) -> int:
    return await ask(service, ordinary(chance))


async def oversized(service: Service, chance: random.Random) -> int:
    """Announced, or only sent."""
    if chance.random() < 0.5:
        return await ask(service, request("POST", "/api/attend", b"{", length=chance.choice([65537, 10**9, 10**11])))
    head = request("POST", "/api/attend", b"", "localhost", "Transfer-Encoding: chunked").replace(
        b"Content-Length: 0\r\n", b""
    )

    async def parts() -> AsyncIterator[bytes]:
        yield head
        for _ in range(200):
            yield b"4000\r\n" + b"a" * 0x4000 + b"\r\n"

    return await sent(service, parts())


async def chunked(service: Service, chance: random.Random) -> int:
    body = json.dumps({"text": "this is a cat"}).encode()
    head = request("POST", "/api/attend", b"", "localhost", "Transfer-Encoding: chunked").replace(
        b"Content-Length: 0\r\n", b""
    )

    async def parts() -> AsyncIterator[bytes]:
        yield head
        for byte in body:
            yield b"1\r\n%c\r\n" % byte
        yield b"0\r\n\r\n"

    return await sent(service, parts())


async def slow(service: Service, chance: random.Random) -> int:
    """A body, or headers, that come a byte at a time and never end."""
    whole = request("POST", "/api/attend", b"", length=60000)
    head = whole[:20] if chance.random() < 0.5 else whole

    async def parts() -> AsyncIterator[bytes]:
        yield head
        for byte in whole[20:] * 50 if head != whole else b"a" * 50:
            yield bytes([byte])
            await asyncio.sleep(0.5)

    return await sent(service, parts())


FOREIGN = (
    "evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "localhost@evil.example", "169.254.169.254", "[::2]", "0.0.0.0",
    "localhost:99999",
)  # fmt: skip


async def foreign(service: Service, chance: random.Random) -> int:
    """Somebody else's name for this machine, or somebody else's page."""
    if chance.random() < 0.5:
        return await ask(service, ordinary(chance, host=chance.choice(FOREIGN)))
    other = chance.choice(
        ["http://evil.example", "null", "http://localhost:1", "https://localhost.evil.example", "file://"]
    )
    return await ask(service, ordinary(chance, f"Origin: {other}"))


PATHS = (
    "/../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/..%2f..%2fetc", "/%00", "//evil.example/", "/api/translate/../../x",
    "/" + "a" * 3000, "/api/\xff\xfe", "/api/models?x=" + "%00" * 900, "/page.js/..", "/\\..\\..", "/api/attend;a=b", "/?" + "&" * 3000,
)  # fmt: skip


async def strange(service: Service, chance: random.Random) -> int:
    return await ask(service, request(chance.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS"]), chance.choice(PATHS)))


async def garbage(service: Service, chance: random.Random) -> int:
    whole = [
        chance.randbytes(500) + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + chance.randbytes(200),
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        request("POST", "/api/attend", b"{}", "localhost", "Transfer-Encoding: chunked", "Content-Length: 9"),
    ]
    return await ask(service, chance.choice(whole))


async def gone(service: Service, chance: random.Random) -> int:
    """Asks, and does not wait for the answer."""
    _, writer = await connected(service)
    writer.write(ordinary(chance))
    await asyncio.sleep(chance.uniform(0, 0.1))
    writer.transport.abort()
    return CUT


Kind = tuple[int, Callable[[Service, random.Random], Awaitable[int]], set[int]]
KINDS: dict[str, Kind] = {  # how often, what, and what may come back
    "friendly": (40, friendly, {200, 404, 409, *SHED}),  # 404: no model of this task
    "oversized": (6, oversized, {413, CUT, *SHED}),
    "chunked": (6, chunked, {200, *SHED}),
    "slow": (6, slow, {408, CUT, *SHED}),
    "foreign": (12, foreign, {403}),
    "strange path": (8, strange, {200, 400, 403, 404, 405, 422, *SHED}),
    "garbage": (6, garbage, {400, 403, 431, CUT, *SHED}),
    "gone": (6, gone, {CUT}),
}
