"""Placing: tasks that wait go to nodes, in batches. One process of the pool places at a time.

The others look whether it still does, so that another goes on within a second when it dies. Candidates are kept in
memory while the duty is held: filled from the database when it is taken and every so often, told of changes by events,
and corrected by the leases there are. What was decided is checked again when it is applied, in a transaction that shows
that the duty is still ours.
"""

import asyncio
from collections.abc import Callable, Container, Mapping, Sequence
from uuid import UUID

import structlog

from tidemill.control.jobs.attempt_reports import work_terms
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.control.placement.placement_policies import placement_policies
from tidemill.control.placement.queue_front import DemandClass, QueueFront
from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import RecordedEvent
from tidemill.core.jobs.task_events import AttemptsPaid
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.core.operations.switches import Switch
from tidemill.core.placement.explanations import ExplanationMemory
from tidemill.core.placement.placer import PlacementDecisions, Placer, QueuedTask
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
"""A tick rests as long as it took: a pool that is full places many at a time, and an empty one at once."""

PAGES = 5
"""So often a tick goes on behind tasks that found no room, and no further."""

_NODE = "node:"


class PlacingLoop(Loop):
    """Places what waits, as long as this process has the duty."""

    name = "placing"
    obeys = Switch.PLACEMENT

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=EVERY_S)
        self._policies = placement_policies(parts.settings)
        self._plan = work_terms(parts.settings).plan
        self._terms = selling_terms(parts.settings)
        self._oldest = parts.settings.nodes.agent_oldest
        self._factor = parts.settings.jobs.deadline_factor
        self._held: DutyLease | None = None
        self._placer = self._new_placer()
        self._explaining = ExplanationMemory()
        self._filled_at: Instant | None = None
        self._changed: set[UUID] = set()
        self._front = QueueFront(parts.loop_database)
        self.on_placed: Callable[[Sequence[AttemptAssignment], Instant], None] = lambda *_: None
        """Called with what was placed, when it is so for good."""

    @property
    def in_charge(self) -> bool:
        """Whether this process places, as far as it knows."""
        return self._held is not None

    def heard(self, batch: Sequence[RecordedEvent]) -> bool:
        """Events tell of nodes that are no longer as they were. Answers whether there may be something to place."""
        self._changed.update(UUID(one.subject.removeprefix(_NODE)) for one in batch if one.subject.startswith(_NODE))
        if any(one.subject.startswith("account:") and one.kind != AttemptsPaid.kind for one in batch):
            self._filled_at = None  # whoever is blocked gets no work on any node
        return any(one.subject.startswith(("job:", _NODE)) for one in batch)

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
        if self._held and await duties.extend(database, self._held, lease_us=LEASE_US, now=now):
            return True
        self._held = await duties.take(
            database, self.name, self.parts.process_id, every_us=0, lease_us=LEASE_US, now=now
        )
        if self._held:
            log.info("placing here", token=self._held.token)
            self._placer, self._filled_at = self._new_placer(), None
        return self._held is not None

    async def _catch_up(self, now: Instant) -> None:
        """Candidates as they are now, and of each what no attempt has."""
        changed, self._changed = sorted(self._changed), set()
        if self._filled_at is None or not 0 <= now - self._filled_at <= REFILL_US:
            self._placer.refill(
                await sellers.every(self.parts.loop_database, self._terms, self._oldest, self._keep, now)
            )
            self._filled_at = now
        elif changed:
            found = await sellers.some(self.parts.loop_database, changed, self._terms, self._oldest, now)
            for node_id, seller in found.items():
                self._placer.know(node_id, seller)
        async with self.parts.loop_database.transaction() as transaction:
            at_work = await leases.at_work(transaction)
            known = {attempt_id.bytes: attempt_id for attempt_id in self._placer.attempts}
            self._placer.release(known[one] for one in known.keys() - at_work)
            if strange := at_work - known.keys():
                for reserved in await leases.reserved(transaction, list(strange)):
                    self._placer.reserve(*reserved)

    async def _place(self, now: Instant) -> Tick:
        await self._front.look(now)
        seen = applied = 0
        hopeless: set[DemandClass] = set()
        for _ in range(PAGES):
            page = self._front.page(BATCH, hopeless)
            wants = [one.queued_task for one in page]
            await self._look_for_copies(wants)
            decided = self._placer.decide(wants, now, self._explaining.choose(wants, now))
            seen += len(page)
            applied += await self._apply(decided, {one.queued_task.task_id: one.row for one in page}, now)
            self._explaining.waiting(decided, self._placer, now)
            placed = {found.task.task_id for found in decided.placements}
            hopeless.update(one.demand_class for one in page if one.queued_task.task_id not in placed)
            if len(page) < BATCH or not self.in_charge:
                break
        return Tick(seen=seen, applied=applied, more=applied >= BATCH)

    async def _look_for_copies(self, wants: Sequence[QueuedTask]) -> None:
        """Who has inputs of these in its cache is preferred."""
        if inputs := self._placer.inputs_of(wants):
            async with self.parts.loop_database.connection() as connection:
                self._placer.note_cached(await node_cache.holders(connection, inputs))

    async def _apply(self, decided: PlacementDecisions, waiting: Mapping[UUID, QueueRow], now: Instant) -> int:
        assert self._held, "only who is in charge decides"
        decisions = []
        for found in decided.placements:
            deadline_at = Instant(now + found.demand.within_us(found.quoted_ms, self._factor))
            decisions.append(NewAttempt(waiting[found.task.task_id], found, self.parts.ids.new(now), deadline_at))
        if not decisions:
            return 0
        async with self.parts.loop_database.transaction() as transaction:
            placed = await placements.apply(
                transaction, self._held, decisions, lease_us=LEASE_US, ids=self.parts.ids, now=now
            )
        if placed is None:
            self._held = None
        self._front.forget(one.row for one in decisions)
        self._note(decisions, {one.attempt_id for one in placed or ()})
        if placed:
            self.on_placed(placed, now)
        if placed and decided.comparisons:
            self._explaining.placed(decided, {one.task_id for one in placed}, now)
        return len(placed or ())

    def _note(self, decisions: Sequence[NewAttempt], placed: Container[UUID]) -> None:
        for one in decisions:
            if one.attempt_id in placed:
                self._placer.keep(one.attempt_id, one.placement)
            else:
                self._placer.take_back(one.placement)
                self._changed.add(one.placement.seller.node_id)

    async def _keep(self) -> None:
        """Filling takes long where nodes are many; the duty is ours meanwhile."""
        if self._held:
            await duties.extend(self.parts.loop_database, self._held, lease_us=LEASE_US, now=self.parts.clock.now())

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
