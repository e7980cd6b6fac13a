"""Who must be served while a pool is besieged: customers who read and order, and agents who beat, work and report.

Each kind runs in a process of its own. Requests go out by a schedule, whether or not earlier ones were answered, and
their time counts from when they were due: a pool that stops answering cannot hide it by being asked less.
"""

import asyncio
import hashlib
import itertools
import json
import secrets
import sys
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path, PurePosixPath
from random import Random
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.worlds.pools.wire_agents import Crowd, Door, WireAgent
from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.result_archives import archive
from tidemill.core.nodes.machine.abilities import NodeAbilities, abilities_bytes
from tidemill.wire.messages import Assignment, Facts

API = "/api/v1"
JOBS = f"{API}/marketplace/jobs"
READS = (f"{API}/account", f"{JOBS}?limit=5", f"{API}/marketplace/cluster/status")
PATIENCE_S = 10.0
ORDER_S = 60.0
POLL_S = 0.2
CONNECTIONS = httpx2.Limits(max_connections=2)
SIDE = 16
WORK_S = 0.01
REPORTS_PER_S = 5
SLEEPING = "sleep"
"""A word in a program; its number of seconds follows."""

CARRIES = abilities_bytes(NodeAbilities(("matmul", "script"), ()))


@dataclass
class Served:
    """How long things took that were done, and how many were not."""

    took_s: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __add__(self, other: "Served") -> "Served":
        return Served(self.took_s + other.took_s, self.failed + other.failed)

    @property
    def success(self) -> float:
        return len(self.took_s) / max(1, len(self.took_s) + len(self.failed))

    @property
    def p99_s(self) -> float:
        """Of those that were done; what was not done in time counts as failed."""
        ordered = sorted(self.took_s)
        return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] if ordered else PATIENCE_S

    def figures(self) -> dict[str, Any]:
        ordered = sorted(self.took_s) or [PATIENCE_S]
        return {
            "count": len(self.took_s) + len(self.failed),
            "success": round(self.success, 5),
            "p50_ms": round(1000 * ordered[len(ordered) // 2], 1),
            "p99_ms": round(1000 * self.p99_s, 1),
            "failures": sorted(set(self.failed))[:5],
        }


# Customers


@dataclass(frozen=True)
class Rates:
    """Reads and orders a second, of all customers together."""

    reads: float
    orders: float
    seconds: float


class Customers:
    """Everybody reads in turn, and orders products and programs in turn, until they are paid."""

    def __init__(self, url: str, tokens: Sequence[str], rates: Rates) -> None:
        self._clients = itertools.cycle(
            [
                httpx2.AsyncClient(base_url=url, headers=bearer(token), timeout=PATIENCE_S, limits=CONNECTIONS)
                for token in tokens
            ]
        )
        self._rates = rates
        self.reads, self.orders = Served(), Served()

    async def run(self) -> tuple[Served, Served]:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._by_schedule(group, self._rates.reads, self._read))
            group.create_task(self._by_schedule(group, self._rates.orders, self._order))
        return self.reads, self.orders

    async def _by_schedule(self, group: asyncio.TaskGroup, per_s: float, act: Any) -> None:
        began = time.monotonic()
        for number in range(round(per_s * self._rates.seconds)):
            due = began + number / per_s
            await asyncio.sleep(due - time.monotonic())
            group.create_task(act(next(self._clients), number, due))

    async def _read(self, client: httpx2.AsyncClient, number: int, due: float) -> None:
        try:
            answer = await client.get(READS[number % len(READS)])
        except httpx2.HTTPError as error:
            self.reads.failed.append(type(error).__name__)
            return
        if answer.status_code == 200:
            self.reads.took_s.append(time.monotonic() - due)
        else:
            self.reads.failed.append(_problem(answer))

    async def _order(self, client: httpx2.AsyncClient, number: int, due: float) -> None:
        try:
            async with asyncio.timeout(ORDER_S):
                state = await self._until_paid(client, product(number) if number % 2 else program(number))
        except httpx2.HTTPStatusError as error:
            state = _problem(error.response)
        except (httpx2.HTTPError, TimeoutError) as error:
            state = type(error).__name__
        if state == "completed":
            self.orders.took_s.append(time.monotonic() - due)
        else:
            self.orders.failed.append(state)

    async def _until_paid(self, client: httpx2.AsyncClient, order: dict[str, Any]) -> str:
        job = (await client.post(JOBS, json=order)).raise_for_status().json()
        (await client.post(f"{JOBS}/{job['id']}/confirm")).raise_for_status()
        while not job["ended_at"]:
            await asyncio.sleep(POLL_S)
            job = (await client.get(f"{JOBS}/{job['id']}")).raise_for_status().json()
        return str(job["state"])


def _problem(answer: httpx2.Response) -> str:
    return f"{answer.status_code} {answer.headers.get('tidemill-problem', '')}"


def product(number: int) -> dict[str, Any]:
    parameters = {"m": SIDE, "n": SIDE, "k": SIDE, "element": "int8", "seed": number}
    return {"kind": "matmul", "parameters": parameters}


def program(number: int) -> dict[str, Any]:
    return {"kind": "script", "parameters": {"program": f"print({number})", "seconds": 5, "memory_mib": 64}}


def run_customers(pipe: Connection, url: str) -> None:
    """Serve the benchmark: tokens and rates in, reads and orders out, until nothing comes."""
    while asked := pipe.recv():
        tokens, rates = asked
        pipe.send(asyncio.run(Customers(url, tokens, rates).run()))


# Agents


class Agents:
    """Owners' nodes and the house, at the wire. They do what a task asks for as fast as it says, and report a fact
    several times a second, which is how it is known whether the pool listens."""

    def __init__(self, home: Path, owners: tuple[Door, range], house: tuple[Door, range]) -> None:
        parts: list[tuple[Door, range]] = [owners, house]
        self._crowds = [
            Crowd(home, door, numbers, Random(7), self._offered, safe=self._safe, carries=CARRIES)
            for door, numbers in parts
        ]
        self.reports = Served()
        self._told: dict[WireAgent, deque[tuple[int, float]]] = defaultdict(deque)
        self._working: set[asyncio.Task[None]] = set()

    async def run(self, pipe: Connection) -> None:
        """Report for so long as is asked, and answer how it went, until nothing is asked any more."""
        loop = asyncio.get_running_loop()
        running = [asyncio.create_task(crowd.run()) for crowd in self._crowds]
        while seconds := await loop.run_in_executor(None, pipe.recv):
            self.reports = Served()
            await self._report_for(seconds)
            pipe.send(self.reports)
        for task in running:
            task.cancel()
        for crowd in self._crowds:
            for agent in crowd.agents:
                crowd.send_away(agent)

    async def _report_for(self, seconds: float) -> None:
        agents = [agent for crowd in self._crowds for agent in crowd.agents]
        began = time.monotonic()
        for number in range(round(seconds * REPORTS_PER_S)):
            due = began + number / REPORTS_PER_S
            await asyncio.sleep(due - time.monotonic())
            for agent in agents:
                agent.report(Facts("clock", json.dumps({"utc_offset_s": number % 60}).encode()))
                self._told[agent].append((agent.last_number, due))
        deadline = time.monotonic() + PATIENCE_S
        while any(self._told.values()) and time.monotonic() < deadline:  # noqa: ASYNC110  # it may never be heard
            await asyncio.sleep(POLL_S)
        self.reports.failed += ["not heard" for told in self._told.values() for _ in told]
        self._told.clear()

    def _safe(self, agent: WireAgent, received: int) -> None:
        told = self._told[agent]
        while told and told[0][0] <= received:
            _, due = told.popleft()
            self.reports.took_s.append(time.monotonic() - due)

    def _offered(self, agent: WireAgent, offer: Assignment) -> None:
        working = asyncio.ensure_future(self._work(agent, offer))
        self._working.add(working)
        working.add_done_callback(self._working.discard)

    async def _work(self, agent: WireAgent, offer: Assignment) -> None:
        agent.accept(offer)
        task = json.loads(offer.task)
        if task["kind"] == "matmul":
            await asyncio.sleep(WORK_S)
            agent.deliver(agent.receipt(offer))
            return
        words = str(task["parameters"]["program"]).split()
        slept_s = float(words[1]) if words[0] == SLEEPING else WORK_S
        await asyncio.sleep(slept_s)
        answer = secrets.token_bytes(64) if words[0] == SLEEPING else words[0].encode()
        agent.deliver(answered(agent.receipt(offer, failure="replaced"), answer, slept_s))


def answered(receipt: Receipt, answer: bytes, took_s: float) -> Receipt:
    """The receipt of a program that wrote this."""
    result = archive({PurePosixPath("answer"): answer})
    return receipt._replace(
        result_sha256=hashlib.sha256(result).digest(),
        inline=result,
        started_at=Instant(receipt.finished_at - int(took_s * SECOND)),
        device_ms=int(took_s * 1000),
        numeric_class="device; simulated",
        outcome=AttemptOutcome.DONE,
        exit_code=0,
        reason="",
    )


def run_agents(pipe: Connection, home: Path, owners: tuple[Door, range], house: tuple[Door, range]) -> None:
    asyncio.run(Agents(home, owners, house).run(pipe))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
