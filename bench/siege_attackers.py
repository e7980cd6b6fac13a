"""Who besieges a pool, one way each, in a process of its own; and how their processor time is capped.

An attack goes on until its process is ended. It comes again whenever it is refused, as fast as it is allowed to: what
keeps it within half a core is `capped`, which stops and continues the process so that its processor time stays below
a share of the time that passed. The same is done to the burner that an attack is compared with.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))
from siege_honest import API, JOBS, SLEEPING, bearer

from tests.worlds.pools.tus import BYTES, UPLOADS, VERSION, metadata
from tests.worlds.pools.wire_agents import Crowd, Door, WireAgent
from tidemill.core.nodes.machine.abilities import NodeAbilities, abilities_bytes
from tidemill.wire.messages import Assignment, BeatMessage, LogLines, ProgressMessage

GOVERNED_S = 0.01
BURST_S = 0.02
MIB = 1024 * 1024

ADDRESSES = 20
HALF_OPEN_EACH = 120
OWN_ADDRESS = "127.0.0.22"
"""Attackers with credentials do not share an address with those who must be served."""

HALF = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nX-Rest: "
STREAMS_EACH = 5
STALLED = 200
STALLED_BYTES = 4 * MIB
FLOOD_AHEAD = 200
FLOOD_LINES = 60
FLOOD_TASKS = 4
SLEEP_S = 4.0
SLEEPERS = 8
QUOTED = {"kind": "matmul", "parameters": {"m": 2048, "n": 2048, "k": 2048, "element": "int8", "seed": 7}}
FLOODED = abilities_bytes(NodeAbilities(("embed",), ()))
"""What nobody else carries out, so that only the flooding node is given it."""


@dataclass(frozen=True)
class Target:
    """What an attacker has: the pool's port, credentials of its own, and for a node what lets it in."""

    port: int
    tokens: Sequence[str]
    home: Path
    door: Door

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


# The attacks


async def half_open(target: Target) -> None:
    """Twenty addresses hold requests whose headers never end."""
    addresses = [f"127.0.0.{number}" for number in range(2, 2 + ADDRESSES)]
    await _all(_held(target, address, HALF) for _ in range(HALF_OPEN_EACH) for address in addresses)


async def many_keys(target: Target) -> None:
    """One account with as many keys as it may have asks for quotes and holds streams of events."""
    streams = [_stream_request(token) for token in target.tokens for _ in range(STREAMS_EACH)]
    held = [_held(target, OWN_ADDRESS, request) for request in streams]
    await _all([*held, *(_quotes(target, token) for token in target.tokens)])


async def stalled_uploads(target: Target) -> None:
    """Uploads send most of a body, and then nothing."""
    [token] = target.tokens
    async with _client(target, token) as client:
        begun = [await client.post(UPLOADS, headers=_new_upload()) for _ in range(STALLED)]
    paths = [answer.headers["location"] for answer in begun if answer.status_code == 201]
    await _all(_held(target, OWN_ADDRESS, _patch(token, path) + bytes(STALLED_BYTES)) for path in paths)


async def flooding_node(target: Target) -> None:
    """A node tells the same long lines, progress and beats without end, for tasks that it was given."""
    flood = _Flood(target)
    await _all([flood.crowd.run(), flood.run(), flood.order()])


async def sleeping_tasks(target: Target) -> None:
    """Programs sleep, and write something else each time, so that the house executes each of them twice."""
    await _all(_sleepers(target, token) for token in target.tokens)


async def burn(_: Target) -> None:
    """Nothing but processor time is taken."""
    while True:
        sum(range(10_000))
        await asyncio.sleep(0)


ATTACKS: dict[str, Callable[[Target], Coroutine[Any, Any, None]]] = {
    "half_open": half_open,
    "many_keys": many_keys,
    "stalled_uploads": stalled_uploads,
    "flooding_node": flooding_node,
    "sleeping_tasks": sleeping_tasks,
    "burn": burn,
}


def run_attack(name: str, target: Target) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(ATTACKS[name](target))


class _Flood:
    """The flooding node, and the customer who gives it tasks."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._offers: dict[bytes, Assignment] = {}
        self._received = 0
        self.crowd = Crowd(
            target.home, target.door, [9_000], Random(7), self._offered, safe=self._safe, carries=FLOODED
        )

    async def order(self) -> None:
        [token] = self._target.tokens
        parameters = {"texts": [f"text {number}" for number in range(FLOOD_TASKS)]}
        async with _client(self._target, token) as client:
            while True:
                await _ordered(client, {"kind": "embed", "parameters": parameters, "tasks": FLOOD_TASKS})
                await asyncio.sleep(5)

    async def run(self) -> None:
        number = 0
        while True:
            [agent] = self.crowd.agents or [None]
            if agent is None or not agent.is_linked or agent.last_number - self._received > FLOOD_AHEAD:
                await asyncio.sleep(0.01)
                continue
            number += 1
            assert agent.link
            agent.link.beat(BeatMessage(number, 20, 1_000, 500_000, 1, []))
            for offer in list(self._offers.values())[-FLOOD_TASKS:]:
                lines = LogLines(offer.attempt_id, offer.lease, 0, ["x" * 4_000] * FLOOD_LINES)
                agent.report(lines, ProgressMessage(offer.attempt_id, offer.lease, number % 1_000_000))
            agent.flush()
            await asyncio.sleep(0)

    def _offered(self, agent: WireAgent, offer: Assignment) -> None:
        agent.accept(offer)
        self._offers[offer.attempt_id] = offer

    def _safe(self, _: WireAgent, received: int) -> None:
        self._received = received


async def _held(target: Target, address: str, first: bytes) -> None:
    """A connection on which nothing more is sent; a new one whenever it is closed."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(address, 0))
            try:
                writer.write(first)
                while await reader.read(65_536):
                    pass
            finally:
                writer.close()
        await asyncio.sleep(0.2)


async def _quotes(target: Target, token: str) -> None:
    async with _client(target, token) as client:
        while True:
            with suppress(httpx2.HTTPError):
                answer = await client.post(JOBS, json=QUOTED)
                await asyncio.sleep(0 if answer.status_code == 201 else 0.2)


async def _sleepers(target: Target, token: str) -> None:
    parameters = {"program": f"{SLEEPING} {SLEEP_S}", "arguments": ["{task}"], "seconds": 60, "memory_mib": 64}
    async with _client(target, token) as client:
        while True:
            await _ordered(client, {"kind": "script", "parameters": parameters, "tasks": SLEEPERS})
            await asyncio.sleep(SLEEP_S)


def _client(target: Target, token: str) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport(local_address=OWN_ADDRESS)
    return httpx2.AsyncClient(base_url=target.url, headers=bearer(token), timeout=30, transport=transport)


async def _ordered(client: httpx2.AsyncClient, order: dict[str, Any]) -> None:
    with suppress(httpx2.HTTPError):
        made = await client.post(JOBS, json=order)
        assert made.status_code not in (400, 422), made.text  # an attack that is not understood attacks nobody
        if made.status_code == 201:
            await client.post(f"{JOBS}/{made.json()['id']}/confirm")


async def _all(works: Any) -> None:
    await asyncio.gather(*works)


def _stream_request(token: str) -> bytes:
    head = f"GET {API}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
    return f"{head}Authorization: Bearer {token}\r\n\r\n".encode()


def _new_upload() -> dict[str, str]:
    return {**VERSION, "Upload-Length": str(STALLED_BYTES + MIB), "Upload-Metadata": metadata(name="stalled")}


def _patch(token: str, path: str) -> bytes:
    headers = {**bearer(token), **VERSION, **BYTES, "Upload-Offset": "0", "Content-Length": str(STALLED_BYTES + MIB)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"PATCH {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode()


# The cap


@contextmanager
def capped(pid: int, share: float) -> Iterator[None]:
    """Keep a process within a share of one core, by stopping it whenever it has had more."""
    over = threading.Event()
    governing = threading.Thread(target=_govern, args=(psutil.Process(pid), share, over))
    governing.start()
    try:
        yield
    finally:
        over.set()
        governing.join()


def _govern(process: psutil.Process, share: float, over: threading.Event) -> None:
    began, before_s, is_stopped = time.monotonic(), cpu_s(process), False
    while not over.wait(GOVERNED_S):
        used_s = cpu_s(process) - before_s
        is_over = used_s > share * (time.monotonic() - began) + BURST_S
        if is_over != is_stopped:
            os.kill(process.pid, signal.SIGSTOP if is_over else signal.SIGCONT)
            is_stopped = is_over
    os.kill(process.pid, signal.SIGCONT)


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
