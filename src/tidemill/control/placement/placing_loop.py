"""Placing: gives waiting tasks to nodes, in batches. One process of the pool places at a time.

The others check whether it still does, so that another takes over within a second when it dies. While it has the duty,
it keeps the candidates in memory: loads them from the database at first and every so often, follows changes by events,
and corrects them by the leases. Decisions are checked again when they are applied, in a transaction that proves that
the duty is still ours.
"""

import asyncio
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from uuid import UUID

import structlog

from tidemill.control.jobs.attempt_reports import work_terms
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.control.placement.placement_policies import placement_policies
from tidemill.control.placement.queue_front import DemandClass, QueueFront
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import RecordedEvent
from tidemill.core.jobs.events import AttemptsPaid
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.core.operations.switches import Switch
from tidemill.core.placement.explanations import ExplanationMemory
from tidemill.core.placement.placer import Placer
from tidemill.core.placement.plan import PlacementPlan, QueuedTask, inputs_of
from tidemill.core.placement.seller import SellerDefaults
from tidemill.core.settings import Settings
from tidemill.store.jobs import leases
from tidemill.store.jobs.leases import AttemptAssignment
from tidemill.store.jobs.tasks import QueueRow
from tidemill.store.nodes import node_cache
from tidemill.store.operations import duties
from tidemill.store.operations.duties import DutyLease
from tidemill.store.placement import explanations, placements, sellers
from tidemill.store.placement.placements import NewAttempt

log = structlog.get_logger()

EVERY_S = 0.2
LEASE_US = 700_000
REFILL_US = 15 * SECOND
BATCH = 2_000
REST_MAX_US = SECOND // 10
"""A tick rests as long as it took, at most this: a full pool places many at a time, and an empty one at once."""

PAGES = 5
"""How many pages of the queue a tick reads behind tasks that find no room."""

_NODE = "node:"


class PlacingLoop(Loop):
    """Places waiting tasks, as long as this process has the duty."""

    name = "placing"
    obeys = Switch.PLACEMENT

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=EVERY_S)
        self._policies = placement_policies(parts.settings)
        self._plan = work_terms(parts.settings).plan
        self._terms = selling_terms(parts.settings)
        self._oldest = parts.settings.nodes.agent_oldest
        self._factor = parts.settings.jobs.deadline_factor
        self._duty: DutyLease | None = None
        self._placer = self._new_placer()
        self._explaining = ExplanationMemory()
        self._filled_at: Instant | None = None
        self._changed: set[UUID] = set()
        self._front = QueueFront(parts.loop_database)
        self.on_placed: Callable[[Sequence[AttemptAssignment], Instant], None] = lambda *_: None
        """Called with the placed attempts, after the commit."""

    @property
    def in_charge(self) -> bool:
        """Whether this process places, as far as it knows."""
        return self._duty is not None

    def heard(self, batch: Sequence[RecordedEvent]) -> bool:
        """Note the nodes that events are about. Answers whether there may be something to place."""
        self._changed.update(
            UUID(event.subject.removeprefix(_NODE)) for event in batch if event.subject.startswith(_NODE)
        )
        if any(event.subject.startswith("account:") and event.kind != AttemptsPaid.kind for event in batch):
            self._filled_at = None  # no node of a blocked account gets work
        return any(event.subject.startswith(("job:", _NODE)) for event in batch)

    async def tick(self, now: Instant) -> Tick:
        if not await self._is_in_charge(now):
            return Tick()
        await self._catch_up(now)
        done = await self._place(now)
        await explanations.keep(self.parts.loop_database, *self._explaining.take(), self.parts.ids, now)
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
        if self._filled_at is None or not 0 <= now - self._filled_at <= REFILL_US:
            self._placer.refill(
                await sellers.every(self.parts.loop_database, self._terms, self._oldest, self._extend_duty, now)
            )
            self._filled_at = now
        elif changed:
            sellers_now = await sellers.some(self.parts.loop_database, changed, self._terms, self._oldest, now)
            for node_id, seller in sellers_now.items():
                self._placer.know(node_id, seller)
        async with self.parts.loop_database.transaction() as transaction:
            at_work = await leases.at_work(transaction)
            known = {attempt_id.bytes: attempt_id for attempt_id in self._placer.attempts}
            self._placer.release(known[key] for key in known.keys() - at_work)
            if strange := at_work - known.keys():
                for reserved in await leases.reserved(transaction, list(strange)):
                    self._placer.reserve(*reserved)

    async def _place(self, now: Instant) -> Tick:
        await self._front.look(now)
        seen = applied = 0
        hopeless: set[DemandClass] = set()
        for _ in range(PAGES):
            page = self._front.page(BATCH, hopeless)
            queued = [task.queued_task for task in page]
            holders, to_weigh = await self._holders(queued), self._explaining.choose(queued, now)
            plan = self._placer.decide(queued, now, holders=holders, to_weigh=to_weigh)
            seen += len(page)
            applied += await self._apply(plan, {task.queued_task.task_id: task.row for task in page}, now)
            self._explaining.waiting(plan, self._placer, now)
            placed = {placement.task.task_id for placement in plan.placements}
            hopeless.update(task.demand_class for task in page if task.queued_task.task_id not in placed)
            if len(page) < BATCH or not self.in_charge:
                break
        return Tick(seen=seen, applied=applied, more=applied >= BATCH)

    async def _holders(self, queued: Sequence[QueuedTask]) -> Mapping[Digest, Collection[UUID]]:
        """Which nodes have the tasks' inputs in their caches: they are preferred."""
        inputs = inputs_of(queued)
        if not inputs:
            return {}
        async with self.parts.loop_database.connection() as connection:
            return await node_cache.holders(connection, inputs)

    async def _apply(self, plan: PlacementPlan, waiting: Mapping[UUID, QueueRow], now: Instant) -> int:
        assert self._duty, "only the process in charge decides"
        decisions = []
        for placement in plan.placements:
            deadline_at = Instant(now + placement.demand.within_us(placement.quoted_ms, self._factor))
            decisions.append(
                NewAttempt(waiting[placement.task.task_id], placement, self.parts.ids.new(now), deadline_at)
            )
        if not decisions:
            return 0
        async with self.parts.loop_database.transaction() as transaction:
            placed = await placements.apply(
                transaction, self._duty, decisions, lease_us=LEASE_US, ids=self.parts.ids, now=now
            )
        if placed is None:
            self._duty = None
        self._front.forget(decision.row for decision in decisions)
        self._note(decisions, {assignment.attempt_id for assignment in placed or ()})
        if placed:
            self.on_placed(placed, now)
        if placed and plan.comparisons:
            self._explaining.placed(plan, {assignment.task_id for assignment in placed}, now)
        return len(placed or ())

    def _note(self, decisions: Sequence[NewAttempt], placed: Container[UUID]) -> None:
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
        return Placer(self._policies, self._plan, settings.scheduling.policy.value, settings.newcomers.placements)


def selling_terms(settings: Settings) -> SellerDefaults:
    heat = HeatLimits(settings.nodes.pause_above_c, settings.nodes.resume_at_c)
    newcomers = settings.newcomers
    return SellerDefaults(
        settings.market.default_hourly_uc,
        settings.reputation.start_points,
        heat,
        int(newcomers.new_for_s * SECOND),
        newcomers.new_for_results,
    )
