"""Placing: gives waiting tasks to nodes, in batches. One process of the pool places at a time.

The others check whether it still does, so that another takes over within a second when it dies. While it has the duty,
it keeps the candidates in memory: loads them from the database at first and every so often, follows changes by events,
and corrects them by the leases. Decisions are checked again when they are applied, in a transaction that proves that
the duty is still ours.
"""

import asyncio
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from functools import partial
from typing import TypeAlias
from uuid import UUID

import structlog

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.control.placement.placement_policies import placement_policies
from tidemill.control.placement.queue_front import DemandClass, DemandMemory, QueueFront
from tidemill.control.terms import selling_terms, work_terms
from tidemill.core.accounts.events import AccountBlocked
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import RecordedEvent
from tidemill.core.jobs.events import JobConfirmed, TasksEnded
from tidemill.core.nodes.challenge.events import NodeChallengeFailed, NodeChallengePassed
from tidemill.core.nodes.events import NodeRemoved, NodeRulesChanged, NodeSuspended, NodeVersionRefused
from tidemill.core.nodes.health.events import (
    NodeAlertCleared,
    NodeAlertRaised,
    NodeHardwareChanged,
    NodeOffline,
    NodeOnline,
)
from tidemill.core.operations.switches import Switch
from tidemill.core.placement.explainer import Explainer
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.placer import Placer
from tidemill.core.placement.plan import PlacementPlan, PlannedAttempt, QueuedTask, inputs_of
from tidemill.store.jobs import leases
from tidemill.store.jobs.leases import AttemptAssignment
from tidemill.store.nodes import node_cache
from tidemill.store.operations import duties
from tidemill.store.operations.duties import DutyLease
from tidemill.store.placement import explanations, placements, sellers

log = structlog.get_logger()

EVERY_S = 0.2
LEASE_US = 700_000
REFILL_US = 15 * SECOND
BATCH = 2_000
REST_MAX_US = SECOND // 10
"""A tick rests as long as it took, at most this: a full pool places many at a time, and an empty one at once."""

PAGES = 5
"""How many pages of the queue a tick reads behind tasks that find no room."""

PlacedListener: TypeAlias = Callable[[Sequence[AttemptAssignment], Instant], None]
"""Is given what was placed, ordered by number, and when."""

_NODE = "node:"
_NODE_CHANGES = frozenset(
    {
        NodeAlertCleared,
        NodeAlertRaised,
        NodeChallengeFailed,
        NodeChallengePassed,
        NodeHardwareChanged,
        NodeOffline,
        NodeOnline,
        NodeRemoved,
        NodeRulesChanged,
        NodeSuspended,
        NodeVersionRefused,
    }
)
"""Events after which a node may sell its time or no longer may, or sells something else."""


class PlacingLoop(Loop):
    """Places waiting tasks, as long as this process has the duty. `on_placed` is called after each commit."""

    name = "placing"
    obeys = Switch.PLACEMENT
    wakes_on = frozenset({JobConfirmed, TasksEnded, AccountBlocked, *_NODE_CHANGES})

    def __init__(self, parts: Parts, on_placed: PlacedListener) -> None:
        super().__init__(parts, every_s=EVERY_S)
        self._on_placed = on_placed
        self._policies = placement_policies(parts.settings)
        self._plan = work_terms(parts.settings).plan
        self._terms = selling_terms(parts.settings)
        self._oldest = parts.settings.nodes.agent_oldest
        self._factor = parts.settings.jobs.deadline_factor
        self._duty: DutyLease | None = None
        self._placer = self._new_placer()
        self._explainer = Explainer()
        self._filled_at: Instant | None = None
        self._loaded = 0
        """How many candidates there were when all of them were last loaded."""

        self._changed: set[UUID] = set()
        self._demands = DemandMemory()
        self._front = QueueFront(parts.loop_database, self._demands)

    def heard(self, recorded: Sequence[RecordedEvent]) -> bool:
        """Note the nodes that have changed."""
        self._changed.update(
            UUID(event.subject.removeprefix(_NODE)) for event in recorded if event.subject.startswith(_NODE)
        )
        if any(event.kind == AccountBlocked.kind for event in recorded):
            self._filled_at = None  # no node of a blocked account gets work
        return True

    async def tick(self, now: Instant) -> Tick:
        if not await self._is_in_charge(now):
            return Tick()
        await self._catch_up(now)
        done = await self._place(now)
        await explanations.keep(self.parts.loop_database, *self._explainer.take(), self.parts.ids, now)
        await asyncio.sleep(min(REST_MAX_US, max(0, self.parts.clock.now() - now)) / SECOND)
        return done

    async def _is_in_charge(self, now: Instant) -> bool:
        database = self.parts.loop_database
        if self._duty and await duties.extend(database, self._duty, lease_us=LEASE_US, now=now):
            return True
        self._duty = await duties.take(
            database, self.name, self.parts.process_id, every_us=0, lease_us=LEASE_US, now=now
        )
        if self._duty:
            log.info("placing here", token=self._duty.token)
            self._placer, self._filled_at = self._new_placer(), None
        return self._duty is not None

    async def _catch_up(self, now: Instant) -> None:
        """Bring the candidates up to date, and their free capacity."""
        changed, self._changed = sorted(self._changed), set()
        if self._is_refill_due(bool(changed), now):
            every = await sellers.every(self.parts.loop_database, self._terms, self._oldest, self._extend_duty, now)
            self._placer.refill(every)
            self._filled_at, self._loaded = now, len(every)
        elif changed:
            sellers_now = await sellers.some(self.parts.loop_database, changed, self._terms, self._oldest, now)
            for node_id, seller in sellers_now.items():
                self._placer.know(node_id, seller)
        async with self.parts.loop_database.transaction() as transaction:
            at_work = await leases.at_work(transaction)
            known = {attempt_id.bytes: attempt_id for attempt_id in self._placer.attempts}
            self._placer.release(known[key] for key in known.keys() - at_work)
            if strange := at_work - known.keys():
                reserved = await leases.reserved(transaction, list(strange))
                demands = await self._demands.find(transaction, {attempt.demand_id for attempt in reserved})
                for attempt in reserved:
                    self._placer.reserve(
                        attempt.attempt_id,
                        attempt.node_id,
                        demands[attempt.demand_id],
                        attempt.account_id,
                        attempt.audited_id,
                    )

    def _is_refill_due(self, is_changed: bool, now: Instant) -> bool:
        """Whether to load all candidates: now and then; while tasks wait and nobody can take them; and after each
        change if they are few, since that takes no longer than to load one, and keeps median prices current."""
        if self._filled_at is None or not 0 <= now - self._filled_at <= REFILL_US:
            return True
        return (is_changed and self._loaded < sellers.PAGE) or (self._loaded == 0 and len(self._front) > 0)

    async def _place(self, now: Instant) -> Tick:
        await self._front.look(now)
        seen = applied = 0
        hopeless: set[DemandClass] = set()
        for _ in range(PAGES):
            page = self._front.page(BATCH, hopeless)
            queued = [task.queued_task for task in page]
            holders = await self._holders(queued)
            plan = self._placer.decide(queued, now, holders=holders, listener=self._explainer)
            assignments = await self._apply(plan, now)
            self._explainer.applied(plan, {assigned.task_id for assigned in assignments}, self._placer, now)
            seen, applied = seen + len(page), applied + len(assignments)
            placed = {placement.task.task_id for placement in plan.placements}
            hopeless.update(task.demand_class for task in page if task.queued_task.task_id not in placed)
            if len(page) < BATCH or self._duty is None:
                break
        return Tick(seen=seen, applied=applied, more=applied >= BATCH)

    async def _holders(self, queued: Sequence[QueuedTask]) -> Mapping[Digest, Collection[UUID]]:
        """Which nodes have the tasks' inputs in their caches: they are preferred."""
        inputs = inputs_of(queued)
        if not inputs:
            return {}
        async with self.parts.loop_database.connection() as connection:
            return await node_cache.holders(connection, inputs)

    async def _apply(self, plan: PlacementPlan, now: Instant) -> Sequence[AttemptAssignment]:
        """Returns what was applied."""
        assert self._duty, "only the process in charge decides"
        decisions = [
            PlannedAttempt(
                placement,
                self.parts.ids.new(now),
                Instant(now + placement.demand.within_us(placement.terms.quoted_ms, self._factor)),
            )
            for placement in plan.placements
        ]
        if not decisions:
            return ()
        async with self.parts.loop_database.transaction() as transaction:
            placed = await placements.apply(
                transaction, self._duty, decisions, lease_us=LEASE_US, ids=self.parts.ids, now=now
            )
        if placed is None:
            self._duty = None
        self._front.forget(placement.task for placement in plan.placements)
        self._note(decisions, {assignment.attempt_id for assignment in placed or ()})
        if placed:
            self._on_placed(placed, now)
        return placed or ()

    def _note(self, decisions: Sequence[PlannedAttempt], placed: Container[UUID]) -> None:
        for decision in decisions:
            if decision.attempt_id in placed:
                self._placer.keep(decision.attempt_id, decision.placement)
            else:
                self._placer.take_back(decision.placement)
                self._changed.add(decision.placement.seller.node_id)

    async def _extend_duty(self) -> None:
        """Extend the duty while candidates are loaded, which takes long in a large pool."""
        if self._duty:
            await duties.extend(self.parts.loop_database, self._duty, lease_us=LEASE_US, now=self.parts.clock.now())

    def _new_placer(self) -> Placer:
        settings = self.parts.settings
        new_pool = partial(CandidatePool, self._policies, newcomers_share=settings.newcomers.placements)
        share = settings.audit.customer_share
        return Placer(new_pool, self._plan, settings.scheduling.policy.value, share, self._policies)
