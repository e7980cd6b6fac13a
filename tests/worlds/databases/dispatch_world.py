"""A pool for tests of dispatch: a customer with money, and nodes that sell their time, each with a key of its own."""

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from uuid import UUID

import numpy as np

from tests.control.test_loops import parts_of
from tests.worlds.clocks import HandClock
from tests.worlds.databases.node_rows import an_owner
from tidemill.control.jobs.attempt_reports import AttemptReportIntake
from tidemill.control.nodes.node_registry import LinkRefusals, NodeRegistry
from tidemill.control.parts import Parts
from tidemill.control.placement.placing_loop import PlacedListener, PlacingLoop
from tidemill.core.clock import SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs import result_archives
from tidemill.core.jobs.kinds import matmul
from tidemill.core.jobs.kinds.matmul import Element, Matmul
from tidemill.core.jobs.kinds.needs import limits_of
from tidemill.core.jobs.kinds.task_body import Task, read_task, task_bytes
from tidemill.core.jobs.plans.job_changes import HELD_LONGER_US, JobPlan, NewTask
from tidemill.core.jobs.receipts import AttemptOutcome as Done
from tidemill.core.jobs.receipts import Receipt, batch_bytes, sign_batch
from tidemill.core.jobs.results import ReaderKey
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.core.matrices.npy import MatrixLayout, header_of
from tidemill.core.matrices.seeded_matrices import LEFT, RIGHT, drawn_rows
from tidemill.core.placement.plan import QueuedTask
from tidemill.core.placement.task_demand import TaskDemand, demand_of
from tidemill.core.settings.sections.work import ContainersSettings
from tidemill.core.settlement.obligations import PlannedHold
from tidemill.core.settlement.rewards import customer_account
from tidemill.core.signatures import Identity
from tidemill.link.held.registry import LinkGeneration, ReportsAnswer, ReportsArrival
from tidemill.store.database import Database
from tidemill.store.jobs import jobs, leases
from tidemill.store.jobs.job_views import Job
from tidemill.store.jobs.jobs import Draft
from tidemill.store.jobs.leases import AttemptAssignment
from tidemill.store.ledger import books, ledger
from tidemill.store.nodes import nodes
from tidemill.wire import messages

SIDE = 24
COST_MAX_UC = 2_000_000
MACHINE = {"cores": 8, "memory_mib": 32_000, "disk_mib": 500_000, "devices": [], "links": []}
VERIFICATION = ReaderKey(b"the key of the pool's own checks")
CARRIES = {"kinds": ["matmul", "script", "embed"], "abilities": []}


@dataclass
class Node:
    """A node's own end."""

    id: UUID
    owner_id: UUID
    identity: Identity
    generation: int = 1
    sent: int = 0


@dataclass
class World:
    parts: Parts
    customer: UUID
    nodes: dict[UUID, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.receiving = AttemptReportIntake(self.parts)
        self.registry = NodeRegistry(self.parts, LinkRefusals(), self.receiving)

    @property
    def now(self) -> Instant:
        return self.parts.clock.now()

    async def job(
        self,
        count: int,
        *,
        expected: bool = True,
        cost_max_uc: int = COST_MAX_UC,
        body: bytes | None = None,
        asked: dict[str, object] | None = None,
        customer: UUID | None = None,
    ) -> UUID:
        """A confirmed job of so many small products."""
        customer = customer or self.customer
        job_id, now = self.parts.ids.new(self.now), self.now
        later = Instant(now + 3_600 * SECOND)
        new = [
            NewTask(
                self.parts.ids.new(now),
                body or body_of(seed),
                demand_of_body(body or body_of(seed)),
                cost_max_uc,
                result_sha256(seed) if expected else None,
            )
            for seed in range(count)
        ]
        held_until = Instant(later + HELD_LONGER_US)
        hold = PlannedHold(
            self.parts.ids.new(now), customer_account(customer), cost_max_uc * count, held_until, f"job:{job_id}"
        )
        plan = JobPlan(job_id, customer, new, rank=1, deadline_at=later, hold=hold)
        async with self.parts.loop_database.transaction() as transaction:
            await jobs.make(transaction, Draft(job_id, customer, new[0].demand.demand.kind, asked or {}), now)
            await jobs.set_quote(transaction, job_id, {}, Instant(now + 60 * SECOND))
            confirmed = await jobs.confirm(transaction, plan, self.parts.ids, now)
            assert isinstance(confirmed, Job), confirmed
        return job_id

    async def node(self, *, price_uc: int = 1_000_000, house: bool = False, owner_id: UUID | None = None) -> Node:
        """A node that has shown what it claims and is linked to this process."""
        database, now = self.parts.loop_database, self.now
        owner_id = owner_id or await an_owner(database, now)
        node = Node(self.parts.ids.new(now), owner_id, Identity(secrets.token_bytes(32)))
        async with database.transaction() as connection:
            await connection.execute(
                "INSERT INTO node (id, account_id, key, join_token_id, name, house, life, agent, rules, joined_at) "
                "VALUES ($1, $2, $3, $2, 'node', $4, 'active', 'tidemill/0.1', '{}', $5)",
                *(node.id, owner_id, node.identity.key, house, now),
            )
            await connection.execute(
                "UPDATE node SET machine = $2, carries = $3, measured_cores = $4, measured_mib = $5 WHERE id = $1",
                *(node.id, MACHINE, CARRIES, MACHINE["cores"], MACHINE["memory_mib"]),
            )
            await connection.execute(
                "INSERT INTO presence (node_id, generation, process_id, linked_at, heard_at) "
                "VALUES ($1, 1, $2, $3, $3)",
                *(node.id, self.parts.process_id, now),
            )
            await connection.execute(
                "INSERT INTO device (node_id, index, kind, name, uuid, memory_mib, driver, measured_mib, "
                "measured_ops_per_s, measured_at) VALUES ($1, 0, 'cpu', 'a processor', '', 32000, '', 32000, $3, $2)",
                *(node.id, now, 10**10),
            )
            await connection.execute(
                "INSERT INTO node_challenge (node_id, due_at, begun_at, passed_at) VALUES ($1, $2, $3, $3)",
                *(node.id, Instant(now + 86_400 * SECOND), now),
            )
            wishes = {"price": str(price_uc / 1_000_000)}
            await nodes.change_rules(connection, node.id, wishes, owner=None, by="test", ids=self.parts.ids, now=now)
        self.nodes[node.id] = node
        return node

    def placing(self, on_placed: PlacedListener = lambda *_: None) -> PlacingLoop:
        return PlacingLoop(self.parts, on_placed)

    async def place(self) -> list[AttemptAssignment]:
        """Place what waits, and answer what nodes are offered."""
        await self.placing().tick(self.later(1))
        return await self.offers()

    async def offers(self) -> list[AttemptAssignment]:
        async with self.parts.loop_database.transaction() as transaction:
            every = await leases.placed_behind(transaction, 0, 10_000)
            return await leases.assignments(transaction, [one.attempt_id for one in every])

    async def say(self, node: Node, *reports: messages.Report) -> list[ReportsAnswer]:
        """What a node reports on its link."""
        heard = ReportsArrival(LinkGeneration(node.id, node.generation), messages.Reports(node.sent + 1, list(reports)))
        answers = await self.registry.reported([heard])
        node.sent += len(reports)
        return list(answers)

    async def deliver(self, *offers: AttemptAssignment) -> None:
        """Each node delivers what it was offered, and all of it is right."""
        for node_id in sorted({one.node_id for one in offers}):
            node = self.nodes[node_id]
            receipts = [self.receipt(one) for one in offers if one.node_id == node_id]
            await self.say(node, signed_by(node, *receipts))

    def receipt(self, offer: AttemptAssignment, *, sha256: bytes | None = None, reason: str | None = None) -> Receipt:
        seed = json.loads(offer.body)["parameters"]["seed"]
        done = reason is None
        return Receipt(
            task_id=offer.task_id,
            attempt_id=offer.attempt_id,
            node_id=offer.node_id,
            lease=offer.lease,
            result_sha256=(sha256 or result_sha256(seed)) if done else b"",
            artefact=None,
            inline=result_of(seed) if done else b"",
            envelopes=(),
            started_at=Instant(self.now - SECOND),
            finished_at=self.now,
            device_ms=1_000,
            numeric_class="exact",
            proof=b"",
            outcome=Done.DONE if done else Done.FAILED,
            exit_code=0 if done else 1,
            reason=reason or "",
        )

    def later(self, seconds: float) -> Instant:
        assert isinstance(self.parts.clock, HandClock)
        self.parts.clock.at = Instant(int(self.parts.clock.at + seconds * SECOND))
        return self.parts.clock.at

    async def balance(self, account: LedgerAccount) -> int:
        async with self.parts.loop_database.connection() as connection:
            found = await books.balances(connection, ids=[account.id])
            return found[0].posted_uc if found else 0

    async def earned(self, node: Node) -> int:
        return await self.balance(LedgerAccount(AccountKind.PROVIDER_LOCKED, node.owner_id))

    async def value(self, sql: str, *values: object) -> object:
        async with self.parts.loop_database.connection() as connection:
            return await connection.fetchval(sql, *values)


async def make_world(database: Database, home: Path) -> World:
    """A customer with money, and nobody else yet."""
    parts = await parts_of(database, Ids(secrets.randbits), home)
    return World(parts, await a_customer(parts))


async def a_customer(parts: Parts) -> UUID:
    """Somebody with money."""
    database, now = parts.loop_database, parts.clock.now()
    customer = await an_owner(database, now)
    bank = LedgerAccount(AccountKind.EXTERNAL, name="bank")
    account = LedgerAccount(AccountKind.CUSTOMER, customer)
    async with database.transaction() as transaction:
        await ledger.open_accounts(transaction, [bank, account], now)
        deposit = Transfer(parts.ids.new(now), bank.id, account.id, 10_000 * COST_MAX_UC, "credit", "deposit", "test")
        await ledger.post(transaction, [deposit], parts.ids, now)
    return customer


@cache
def demand_of_body(body: bytes) -> TaskDemand:
    """What a task demands, from what its node is told."""
    task = read_task(body)
    assert isinstance(task, Task)
    demand = demand_of(task)
    assert isinstance(demand, TaskDemand)
    return demand


def queued(number: int, job: int, customer: int, demand: TaskDemand, cost_max_uc: int) -> QueuedTask:
    """A task that waits for the first time, since the beginning."""
    ids = (UUID(int=number), UUID(int=job), UUID(int=customer), UUID(int=customer))
    return QueuedTask(1, *ids, 0, 0, Instant(0), b"", cost_max_uc, demand.id, demand)


def body_of(seed: int, side: int = SIDE) -> bytes:
    work = Matmul(side, side, side, Element.INT8, seed)
    parameters = {"m": side, "n": side, "k": side, "element": "int8", "seed": seed}
    return task_bytes(Task("matmul", parameters, limits_of(matmul.needs(work), 10.0, ContainersSettings())))


@cache
def result_of(seed: int, side: int = SIDE) -> bytes:
    """The archive that an honest node delivers."""
    left = drawn_rows(seed, LEFT, "int8", side, range(side)).astype(np.int32)
    right = drawn_rows(seed, RIGHT, "int8", side, range(side)).astype(np.int32)
    body = header_of(MatrixLayout("int32", side, side)) + np.ascontiguousarray(left @ right).tobytes()
    return result_archives.archive({PurePosixPath("c.npy"): body})


def result_sha256(seed: int) -> bytes:
    return hashlib.sha256(result_of(seed)).digest()


def signed_by(node: Node, *receipts: Receipt) -> messages.ReceiptsMessage:
    sent = batch_bytes(receipts)
    return messages.ReceiptsMessage(sent, sign_batch(node.identity, sent))
