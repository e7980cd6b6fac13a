"""Tasks a second through a whole pool, beside a warmed-up Ray's no-op tasks on the same machine in the same run.

Prints one line of JSON. A task goes all the way: submitted with its money held, placed, offered over the link, its
receipt signed by the node and checked, judged, and paid; each step durable in PostgreSQL. Agents are simulated at the
wire, over real sockets with real signatures; what they would compute is known before. `tasks_per_s` counts tasks that
were paid while the queue was never empty, `p99_ms` is the time from placing to being paid, and `receipts_per_frame`
says how many receipts share a signature and a frame. `ratio_one_receipt_a_frame` is the same pool with agents that send
every receipt by itself. `cpu_us_per_task` is the processor time of a task in the control process, in PostgreSQL, and in
what stands for agents and customer. With `--history` the pool is filled with so many ended tasks after that, and
`history_ratio` is its speed then over its speed before. Ray is measured before and after the pool, and the mean counts,
because a machine is not always as fast. It is installed into an environment of its own, under the user's cache
directory; where that cannot be done its figures are null.

Left out: what a customer's program does to describe tasks, which differ in a seed alone; the way of an order through
HTTP and its quote; and the sandbox. Whoever orders calls what the route calls, in a process of its own.
"""

import argparse
import asyncio
import hashlib
import json
import multiprocessing
import os
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import psutil
import uvloop
from link import Agent, Crowd, await_links, cpu_s, join_token
from pools import pool_of_its_own
from task_history import fill

from tidemill.core.clock import SECOND, Instant
from tidemill.core.ids import Ids, uuid_of
from tidemill.core.jobs.kinds import matmul
from tidemill.core.jobs.kinds.matmul import Element, Matmul
from tidemill.core.jobs.kinds.needs import limits_of
from tidemill.core.jobs.kinds.task_body import Task, task_bytes
from tidemill.core.jobs.plans.job_changes import JobPlan, NewTask
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt, batch_bytes, sign_batch
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.core.nodes.machine.abilities import NodeAbilities, abilities_bytes
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine, facts_of
from tidemill.core.placement.task_demand import TaskDemand, demand_of
from tidemill.core.settings.sections.work import ContainersSettings
from tidemill.core.settlement.obligations import PlannedHold
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits, connect
from tidemill.store.embedded.attachment import attach
from tidemill.store.jobs import jobs
from tidemill.store.jobs.job_views import Job
from tidemill.store.jobs.jobs import Draft
from tidemill.store.ledger import ledger
from tidemill.wire.link import Instructed, Joined, LinkEvent
from tidemill.wire.messages import Assignment, Facts, ReceiptsMessage

AGENTS = 40
CORES = 128
SIDE = 4
JOB_TASKS = 1_000
WAITING_MAX = 12_000
COST_MAX_UC = 2_000_000
OPS_PER_S = 10**12
PRICE_UC = 200_000
GATHERED_MAX = 64
GATHER_S = 0.02
WARM_S = 4.0
RAY_TASKS = 5_000

RAY = """
import json, sys, time, ray
ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)

@ray.remote
def nothing():
    return None

ray.get([nothing.remote() for _ in range(2_000)])
best = []
for _ in range(3):
    began = time.perf_counter()
    ray.get([nothing.remote() for _ in range(int(sys.argv[1]))])
    best.append(int(sys.argv[1]) / (time.perf_counter() - began))
ray.shutdown()
print(json.dumps(sorted(best)[1]))
"""


# What the tasks are


def _first_task() -> Task:
    work = Matmul(SIDE, SIDE, SIDE, Element.INT8, 0)
    parameters = {"m": SIDE, "n": SIDE, "k": SIDE, "element": "int8", "seed": 0}
    return Task("matmul", parameters, limits_of(matmul.needs(work), 60.0, ContainersSettings()))


BEFORE_SEED, AFTER_SEED = task_bytes(_first_task()).split(b'"seed":0')
DEMAND = cast(TaskDemand, demand_of(_first_task()))


def body_of(seed: int) -> bytes:
    return b'%b"seed":%d%b' % (BEFORE_SEED, seed, AFTER_SEED)


def result_of(seed: int) -> bytes:
    """What stands for the result, which agents need not compute. It is sent in its receipt, and hashed by the pool."""
    return b"result %d" % seed


def result_sha256(seed: int) -> bytes:
    """Its hash, which the customer knows beforehand."""
    return hashlib.sha256(result_of(seed)).digest()


CARRIES = abilities_bytes(NodeAbilities(("matmul",), ()))


# The agents


def machine(number: int) -> bytes:
    """A machine of many processors."""
    device = Device(0, DeviceKind.CPU, "a simulated processor", f"simulated-{number}", 4_000_000, "6.1")
    sizes = (CORES, 4_000_000, 4_000_000)
    return facts_of(Machine("Linux", "6.1", "x86_64", "a simulated processor", *sizes, (device,)))


class Working(Agent):
    """An agent that is done with a task as soon as it hears of it, and delivers what has gathered."""

    def __init__(self, crowd: Crowd, number: int) -> None:
        super().__init__(crowd, number)
        self.number = number
        self.offers: list[Assignment] = []
        self.gathering: asyncio.TimerHandle | None = None

    def meant(self, event: LinkEvent) -> None:
        super().meant(event)
        match event:
            case Joined():
                assert self.link
                self.link.report(Facts("machine", machine(self.number)))
                self.link.report(Facts("sandbox", CARRIES))
            case Instructed(orders):
                self.offers += [order for order in orders if isinstance(order, Assignment)]
                if self.offers and self.gathering is None:
                    self.gathering = asyncio.get_running_loop().call_later(GATHER_S, self.deliver)

    def deliver(self) -> None:
        assert self.link
        self.gathering = None
        offers, self.offers = self.offers, []
        assert isinstance(self.crowd, Workers)
        most = 1 if self.crowd.alone else GATHERED_MAX
        self.crowd.frames += -(-len(offers) // most)
        self.crowd.receipts += len(offers)
        for start in range(0, len(offers), most):
            sent = batch_bytes([self.receipt(offer) for offer in offers[start : start + most]])
            self.link.report(ReceiptsMessage(sent, sign_batch(self.identity, sent)))
            if most == 1:
                self.flush()
        self.flush()

    def receipt(self, offer: Assignment) -> Receipt:
        assert self.node_id
        seed = int(offer.task[len(BEFORE_SEED) + 7 : -len(AFTER_SEED)])
        at = Instant(time.time_ns() // 1_000)
        return Receipt(
            task_id=uuid_of(int.from_bytes(offer.task_id, "big")),
            attempt_id=uuid_of(int.from_bytes(offer.attempt_id, "big")),
            node_id=uuid_of(int.from_bytes(self.node_id, "big")),
            lease=offer.lease,
            result_sha256=result_sha256(seed),
            artefact=None,
            inline=result_of(seed),
            envelopes=(),
            started_at=Instant(at - 1_000),
            finished_at=at,
            device_ms=1,
            numeric_class="exact",
            proof=b"",
            outcome=AttemptOutcome.DONE,
            exit_code=0,
            reason="",
        )


class Workers(Crowd):
    """The agents of one client process. `alone` says that each receipt is sent by itself."""

    def __init__(self, port: int, known_by: str, token: str, numbers: range) -> None:
        super().__init__(port, known_by, token, range(0))
        self.agents = [Working(self, number) for number in numbers]
        self.alone = False
        self.frames = self.receipts = 0


def run_client(pipe: Connection, port: int, known_by: str, token: str, numbers: range) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def run() -> None:
        crowd, loop = Workers(port, known_by, token, numbers), asyncio.get_running_loop()
        while asked := await loop.run_in_executor(None, pipe.recv):
            match asked:
                case ("join",):
                    pipe.send(await crowd.join(1.0))
                case ("alone", alone):
                    crowd.alone, crowd.frames, crowd.receipts = alone, 0, 0
                    pipe.send(None)
                case ("frames",):
                    pipe.send((crowd.receipts, crowd.frames))
        crowd.stopping = True
        for agent in crowd.agents:
            if agent.transport:
                agent.transport.abort()

    uvloop.run(run())


# The customer


@dataclass
class Customer:
    """Orders jobs so that the queue is never empty, and never long."""

    database: Database
    account_id: UUID
    ids: Ids
    seed: int = 0

    async def earn(self) -> None:
        """Money from outside, so that every task can be paid."""
        bank, account = LedgerAccount(AccountKind.EXTERNAL, name="bank"), self._account
        async with self.database.transaction() as transaction:
            now = await read_clock(transaction)
            await ledger.open_accounts(transaction, [bank, account], now)
            deposit = Transfer(self.ids.new(now), bank.id, account.id, 10**15, "credit", "deposit", "bench")
            await ledger.post(transaction, [deposit], self.ids, now)

    @property
    def _account(self) -> LedgerAccount:
        return LedgerAccount(AccountKind.CUSTOMER, self.account_id)

    async def order(self) -> None:
        """One job of many tasks, quoted and confirmed."""
        async with self.database.transaction() as transaction:
            now = await read_clock(transaction)
            later, job_id = Instant(now + 3_600 * SECOND), self.ids.new(now)
            new = [self._task(now) for _ in range(JOB_TASKS)]
            hold = PlannedHold(self.ids.new(now), self._account, COST_MAX_UC * JOB_TASKS, later, f"job:{job_id}")
            plan = JobPlan(job_id, self.account_id, new, rank=1, deadline_at=later, hold=hold)
            await jobs.make(transaction, Draft(job_id, self.account_id, "matmul", {}), now)
            await jobs.set_quote(transaction, job_id, {}, later)
            confirmed = await jobs.confirm(transaction, plan, self.ids, now)
            assert isinstance(confirmed, Job), confirmed

    def _task(self, now: Instant) -> NewTask:
        self.seed += 1
        return NewTask(self.ids.new(now), body_of(self.seed), DEMAND, COST_MAX_UC, result_sha256(self.seed))

    async def keep_ordering(self, enough: asyncio.Event) -> None:
        while not enough.is_set():
            async with self.database.connection() as connection:
                waiting = await connection.fetchval("SELECT count(*) FROM task_queue")
            if waiting < WAITING_MAX:
                await self.order()
            else:
                await asyncio.sleep(0.05)


async def paid(database: Database) -> int:
    async with database.connection() as connection:
        return int(await connection.fetchval("SELECT coalesce(sum(completed), 0) FROM job"))


async def p99_ms(database: Database, since: Instant) -> float:
    async with database.connection() as connection:
        return float(
            await connection.fetchval(
                "SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM ended_at - offered_at) * 1000) "
                "FROM attempt WHERE ended_at >= $1",
                since,
            )
        )


# The pool


async def activate(home: Path) -> None:
    """The agents hold no hardware, so nobody can challenge it: as if each had shown what it claims."""
    owner = await connect(attach(home).owner)
    try:
        await owner.execute("TRUNCATE challenge_answer, challenge, challenge_round, node_challenge")
        await owner.execute(
            "UPDATE node SET life = 'active', measured_cores = (machine->>'cores')::integer, "
            "measured_mib = (machine->>'memory_mib')::bigint"
        )
        await owner.execute(
            "UPDATE device SET measured_mib = memory_mib, measured_ops_per_s = $1, measured_at = now()", OPS_PER_S
        )
        await owner.execute(
            "INSERT INTO node_challenge (node_id, due_at, begun_at, passed_at) "
            "SELECT id, now() + interval '1 day', now(), now() FROM node "
            "ON CONFLICT (node_id) DO UPDATE SET due_at = excluded.due_at, passed_at = excluded.passed_at"
        )
    finally:
        await owner.close()


async def customer_of(database: Database) -> Customer:
    async with database.connection() as connection:
        now = await read_clock(connection)
        account_id = Ids(secrets.randbits).new(now)
        await connection.execute(
            "INSERT INTO account (id, address, address_key, password_hash, password_at, roles, language, created_at) "
            "VALUES ($1, 'customer@pool.example', 'customer@pool.example', '', $2, '{customer}', 'en', $2)",
            *(account_id, now),
        )
    customer = Customer(database, account_id, Ids(secrets.randbits))
    await customer.earn()
    return customer


@dataclass(frozen=True)
class Measured:
    """Tasks that were paid a second, how long 99 of 100 took, and the processor time of each by who took it."""

    tasks_per_s: float
    p99_ms: float
    cpu_us_per_task: dict[str, int]


def cpu_seconds(pool_pid: int) -> dict[str, float]:
    """Processor time by whose it is: everything of the pool that is not its control process is PostgreSQL."""
    control, ours = psutil.Process(pool_pid), psutil.Process()
    database = control.children(recursive=True)
    agents = [one for one in ours.children() if one.pid != pool_pid]
    return {
        "control": cpu_s(control),
        "postgresql": sum(map(cpu_s, database)),
        "agents": sum(map(cpu_s, agents)),
        "customer": cpu_s(ours),
    }


async def measured(database: Database, pool_pid: int, seconds: float) -> Measured:
    while not await paid(database):  # noqa: ASYNC110  # nobody says when the first was paid
        await asyncio.sleep(0.2)
    await asyncio.sleep(WARM_S)
    async with database.connection() as connection:
        since = await read_clock(connection)
    before, began, spent_s = await paid(database), time.monotonic(), cpu_seconds(pool_pid)
    await asyncio.sleep(seconds)
    took_s, done = time.monotonic() - began, await paid(database) - before
    cpu = {whose: (now_s - spent_s[whose]) * 1e6 / done for whose, now_s in cpu_seconds(pool_pid).items()}
    return Measured(done / took_s, await p99_ms(database, since), {whose: round(us) for whose, us in cpu.items()})


async def bench(home: Path, pipe: Connection, pool_pid: int, seconds: float, history: int) -> dict[str, Any]:
    loop = asyncio.get_running_loop()

    async def tell(*asked: object) -> Any:
        pipe.send(asked)
        return await loop.run_in_executor(None, pipe.recv)

    say(f"joined in {await tell('join'):.1f} s")
    await asyncio.sleep(2)
    await activate(home)
    database = await Database.open(attach(home).program, DatabaseLimits(4, 60, 60), "bench")
    enough = asyncio.Event()
    customer = await customer_of(database)
    ordering = asyncio.create_task(customer.keep_ordering(enough))
    try:
        await tell("alone", False)
        together = await measured(database, pool_pid, seconds)
        receipts, frames = await tell("frames")
        say(f"{together.tasks_per_s:.0f} tasks/s, {receipts / max(1, frames):.1f} receipts a frame")
        await tell("alone", True)
        alone = await measured(database, pool_pid, seconds)
        later = None
        if history:
            await tell("alone", False)
            await fill(home, history, customer.account_id, body_of(0))
            later = await measured(database, pool_pid, seconds)
    finally:
        enough.set()
        await ordering
        await database.close()
    return {
        "tasks_per_s": round(together.tasks_per_s),
        "alone_per_s": round(alone.tasks_per_s),
        "receipts_per_frame": round(receipts / max(1, frames), 1),
        "p99_ms": round(together.p99_ms),
        "cpu_us_per_task": together.cpu_us_per_task,
        "history_ratio": later and round(later.tasks_per_s / together.tasks_per_s, 2),
    }


# Ray


def ray_tasks_per_s() -> float | None:
    """No-op tasks a second of a warmed-up Ray; None where it cannot be installed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidemill-bench" / "ray"
    python = cache / "bin" / "python"
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(cache)], check=True)
        if subprocess.run([python, "-c", "import ray"], capture_output=True, check=False).returncode:
            subprocess.run([python, "-m", "pip", "install", "-q", "ray"], check=True, timeout=600)
        said = subprocess.run(
            [python, "-c", RAY, str(RAY_TASKS)], check=True, capture_output=True, text=True, timeout=300
        )
    except (OSError, subprocess.SubprocessError) as error:
        say(f"Ray cannot be used here: {error}")
        return None
    return float(said.stdout.strip().splitlines()[-1])


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def pool_figures(options: Any) -> dict[str, Any]:
    """A pool of its own, with its database, and a join token that is good for every agent."""
    start = multiprocessing.get_context("spawn")
    with pool_of_its_own() as pool:
        ours, theirs = start.Pipe()
        agents = None
        try:
            await_links(pool.port)
            _, secret, known_by = join_token(pool.url, pool.setup_token, options.agents).split(".")
            agents = start.Process(target=run_client, args=(theirs, pool.port, known_by, secret, range(options.agents)))
            agents.start()
            return uvloop.run(bench(pool.home, ours, pool.pid, options.seconds, options.history))
        finally:
            if agents:
                ours.send(None)
                agents.join(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--agents", type=int, default=AGENTS, help="how many agents work")
    parser.add_argument("--seconds", type=float, default=15, help="how long each way of delivering is measured")
    parser.add_argument("--history", type=int, default=0, help="measure again with so many ended tasks; thousands")
    parser.add_argument("--without-ray", action="store_true", help="the pool's own figures only")
    options = parser.parse_args()
    ray_before = None if options.without_ray else ray_tasks_per_s()
    figures = pool_figures(options)
    alone = figures.pop("alone_per_s")
    ray_after = None if ray_before is None else ray_tasks_per_s()
    ray = ray_after and (ray_before + ray_after) / 2
    figures |= {
        "ray_tasks_per_s": ray and round(ray),
        "ratio": ray and round(figures["tasks_per_s"] / ray, 2),
        "ratio_one_receipt_a_frame": ray and round(alone / ray, 2),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
