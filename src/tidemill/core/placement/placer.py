"""Which node each waiting task gets: the candidates in memory, and what is reserved of them.

`decide` takes tasks and returns a plan. What it plans is reserved, so that the next task sees it; each placement is
then kept (`keep`), as an attempt that ends by `release`, or given back (`take_back`). No task goes where it could cost
more than was held for it, to its own customer, or to a node that failed it.

A placer is a cache: it is filled from the database, told of changes, and may be dropped at any moment. It knows its
pool of candidates only by the rule that the pool keeps.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import MedianPrices
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.house_share import AuditsAtWork, HouseSize
from tidemill.core.placement.index.prices import CostLimits, Prices, cost_key
from tidemill.core.placement.plan import AlikeTasks, PlacementPlan, QueuedTask, TaskPlacement
from tidemill.core.placement.rule import PlacementPool, Reservation, objections
from tidemill.core.placement.seller import left_of
from tidemill.core.placement.supply import Seller
from tidemill.core.placement.task_demand import TaskDemand, for_house
from tidemill.core.placement.turns import DevicesAtWork, in_turn, whose_turn
from tidemill.core.settlement.pay import PayTerms, RewardPlan

HOLDERS_MAX = 200
"""Of one input; each is weighed for each task."""

GOLDEN = (5**0.5 - 1) / 2

_NOTHING: Mapping[Digest, Iterable[UUID]] = {}


class PlacementListener(Protocol):
    """Is told of a batch while it is decided. It must change nothing."""

    def begin(self, tasks: Sequence[QueuedTask], now: Instant) -> None:
        """These tasks are about to be placed."""

    def turn(self, placer: "Placer", task: QueuedTask, demand: Demand, now: Instant) -> None:
        """It is the turn of this task: nothing has been taken for it yet."""


class Placer:
    """The candidates and what attempts have of them. `new_pool` makes an empty pool with these median prices."""

    def __init__(
        self,
        new_pool: Callable[[MedianPrices], PlacementPool],
        plan: RewardPlan,
        policy: str,
        audit_share: float = 1.0,
        policies: Collection[str] = (),
    ) -> None:
        self._new_pool = new_pool
        self._policy = policy
        """The name of the policy of tasks whose order chooses none."""
        self._policies = frozenset(policies)
        """The names that orders may choose. A policy that was chosen and is no longer installed is the pool's own then;
        explanations name the one that decided."""
        self._plan = plan
        """What rewards and commissions come to, so what a task costs."""
        self._median_prices = MedianPrices({})
        """As they were when the pool was filled."""
        self.pool = new_pool(self._median_prices)
        """The sellers, with what is left of them."""
        self.sellers: dict[UUID, Seller] = {}
        """All nodes that may get work, as if they had none."""
        self._houses: dict[UUID, Seller] = {}
        """Those of them that are the house's."""
        self._taken: dict[UUID, dict[UUID, tuple[Demand, tuple[int, ...]]]] = {}
        """By node and attempt: what the attempt has of it. Devices that nobody named are not listed."""
        self._attempts: dict[UUID, tuple[UUID, Reservation[Any] | None]] = {}
        """The node of each attempt, and its reservation if it was decided here."""
        self._at_work = DevicesAtWork()
        """What each customer has, for whose turn it is."""
        self._audits = AuditsAtWork(audit_share)
        """What each customer's audits have of the house, with what is planned."""
        self._house_size = HouseSize()
        self._prices: Prices | None = None
        """None until they are needed, after a node has changed."""
        self._limits = CostLimits()
        self._drawn = 0.0
        """The last draw for newcomers."""

    def __len__(self) -> int:
        return len(self.sellers)

    @property
    def attempts(self) -> Set[UUID]:
        """The attempts that have something of a node."""
        return self._attempts.keys()

    def refill(self, sellers: Iterable[Seller]) -> None:
        """Replace all sellers. Prices are compared with the current median."""
        earlier, self.sellers = self.sellers, {seller.node_id: seller for seller in sellers}
        self._houses = {node_id: seller for node_id, seller in self.sellers.items() if seller.house}
        self._measure_house()
        median_prices = MedianPrices.of(seller.candidate for seller in self.sellers.values())
        if median_prices == self._median_prices and earlier == self.sellers:
            return
        self._median_prices, self.pool = median_prices, self._new_pool(median_prices)
        self._forget_prices()
        for seller in self.sellers.values():
            self._put(seller)

    def know(self, node_id: UUID, seller: Seller | None) -> None:
        """A node has come, has changed, or no longer gets work."""
        if self.sellers.get(node_id) == seller:
            return
        self._forget_prices()
        self._houses.pop(node_id, None)
        if seller is not None and seller.house:
            self._houses[node_id] = seller
        self._measure_house()
        if seller is None:
            del self.sellers[node_id]
            self.pool.remove(node_id)
        else:
            self.sellers[node_id] = seller
            self._put(seller)

    def reserve(
        self,
        attempt_id: UUID,
        node_id: UUID,
        task_demand: TaskDemand | None,
        account_id: UUID,
        audited_id: UUID | None = None,
    ) -> None:
        """Another process placed this attempt: put the node again with what is left of it."""
        if attempt_id not in self._attempts and task_demand is not None:
            demand = replace(task_demand.demand, customer_id=account_id, audited_id=audited_id)
            if audited_id is not None:
                self._audits.begin(demand)
            self._note(attempt_id, node_id, demand, (), None)
            if seller := self.sellers.get(node_id):
                self._put(seller)

    def release(self, attempt_ids: Iterable[UUID]) -> None:
        """These attempts have left their nodes. A node that was replaced is put once for all of them."""
        anew = {node_id for attempt_id in attempt_ids if (node_id := self._let_go(attempt_id)) is not None}
        for node_id in anew:
            if seller := self.sellers.get(node_id):
                self._put(seller)

    def keep(self, attempt_id: UUID, placement: TaskPlacement) -> None:
        """A decision was applied, as this attempt."""
        placed = placement.reservation
        self._note(attempt_id, placed.node_id, placed.demand, placed.devices, placed)

    def take_back(self, placement: TaskPlacement) -> None:
        """A decision was not applied."""
        if placement.reservation.demand.audited_id is not None:
            self._audits.end(placement.reservation.demand)
        if not self.pool.release(placement.reservation) and (seller := self.sellers.get(placement.reservation.node_id)):
            self._put(seller)

    def decide(
        self,
        tasks: Sequence[QueuedTask],
        now: Instant,
        *,
        holders: Mapping[Digest, Iterable[UUID]] = _NOTHING,
        listener: PlacementListener | None = None,
    ) -> PlacementPlan:
        """Find nodes for tasks, in their turn. A task with the demand of one that found no node finds none either.

        `holders` are nodes that have inputs already, of which some are enough.
        """
        if listener:
            listener.begin(tasks, now)
        self.pool.note_cached({digest.text: islice(node_ids, HOLDERS_MAX) for digest, node_ids in holders.items()})
        placements: list[TaskPlacement] = []
        waiting: dict[Hashable, dict[UUID, QueuedTask]] = {}
        self._limits.begin()
        for task, task_demand, demand in self._in_turn(tasks, now):
            key = (demand.kind, demand.shape, demand.filters, demand.inputs, task.customer_id)
            same = (*key, cost_key(task_demand, task.cost_max_uc))
            if same in waiting:
                waiting[same].setdefault(task.job_id, task)
                continue
            if listener:
                listener.turn(self, task, demand, now)
            placement = self._find(task, task_demand, demand, now)
            if placement is None:
                waiting[same] = {task.job_id: task}
            else:
                placements.append(placement)
        return PlacementPlan(placements, [AlikeTasks(key, list(alike.values())) for key, alike in waiting.items()])

    def demand_of(self, task: QueuedTask) -> Demand:
        """What a task demands that can be read, as the pool is asked for it."""
        demand = _read(task).demand
        demand = for_house(demand) if self._is_for_house(task, demand) else demand
        return replace(
            demand,
            customer_id=task.account_id,
            audited_id=task.customer_id if task.is_audit else None,
            excluded_nodes=demand.excluded_nodes | task.excluded,
            submitted_at=task.since,
            policy=demand.policy if demand.policy in self._policies else self._policy,
        )

    def too_dear(self, task: QueuedTask) -> frozenset[UUID]:
        """The nodes that were found to be too expensive for a task; none before they were looked for."""
        return self._limits.too_dear(cost_key(_read(task), task.cost_max_uc))

    def cost_uc(self, task: QueuedTask, node_id: UUID) -> int:
        """The most that a task costs at a node."""
        return self._terms(self.sellers[node_id], _read(task))[1]

    def _in_turn(self, tasks: Sequence[QueuedTask], now: Instant) -> list[tuple[QueuedTask, TaskDemand, Demand]]:
        """The readable tasks, in turn order. Demands of one customer and moment are interchangeable.

        Alike tasks share one demand: making one for each would take 1.6 ×. Audits wait as one line, which is as old as
        the oldest of them: else a customer with many old ones would come before all others."""
        first_audit = min((task.since for task in tasks if task.is_audit), default=None)
        alike: dict[Hashable, deque[tuple[QueuedTask, TaskDemand, Demand]]] = defaultdict(deque)
        demands_by_key: dict[Hashable, Demand] = {}
        demands = []
        for task in tasks:
            task_demand = task.demand
            if task_demand is not None:
                waits = task._replace(since=first_audit) if first_audit is not None and task.is_audit else task
                key = (
                    task_demand.id,
                    waits.customer_id,
                    waits.since,
                    task.excluded,
                    task.for_house,
                    task.prefers_house,
                )
                demand = demands_by_key.get(key) or demands_by_key.setdefault(key, self.demand_of(waits))
                alike[_turn(demand)].append((task, task_demand, demand))
                demands.append(demand)
        return [alike[_turn(demand)].popleft() for demand in self._by_turn(demands, now)]

    def _by_turn(self, demands: Sequence[Demand], now: Instant) -> list[Demand]:
        return in_turn(demands, self._at_work.devices, now, last_turns=self._at_work.last_turns)

    def _is_for_house(self, task: QueuedTask, demand: Demand) -> bool:
        """Whether only house nodes are asked: for a task that prefers them, only if one of them could have it."""
        if not task.prefers_house:
            return task.for_house
        demand = replace(for_house(demand), customer_id=task.account_id, excluded_nodes=task.excluded)
        return any(not any(objections(seller.candidate, demand, task.since)) for seller in self._houses.values())

    def _find(self, task: QueuedTask, task_demand: TaskDemand, demand: Demand, now: Instant) -> TaskPlacement | None:
        """The best node at which the task costs no more than it may. Once the best node is too expensive, exclude all
        that are at once: so no more than two nodes are tried, however many there are."""
        if demand.audited_id is not None and not self._audits.has_room(demand, self._house_size):
            return None
        key = cost_key(task_demand, task.cost_max_uc)
        draw = self._next_draw()
        placed = self.pool.place(self._limits.within(demand, key), now, draw)
        if placed is not None and self.cost_uc(task, placed.node_id) > task.cost_max_uc:
            self.pool.release(placed)
            self._limits.note(key, self._priced().too_dear(task_demand, task.cost_max_uc), len(self.sellers))
            placed = self.pool.place(self._limits.within(demand, key), now, draw)
        if placed is None:
            return None
        seller = self.sellers[placed.node_id]
        terms, cost_uc = self._terms(seller, task_demand)
        assert cost_uc <= task.cost_max_uc, "nodes that are too expensive are excluded"
        if demand.audited_id is not None:
            self._audits.begin(demand)
        return TaskPlacement(task, task_demand, seller, terms, placed)

    def _terms(self, seller: Seller, task_demand: TaskDemand) -> tuple[PayTerms, int]:
        return self._priced().terms(seller, task_demand)

    def _priced(self) -> Prices:
        if self._prices is None:
            self._prices = Prices(self.sellers.values(), self._plan)
        return self._prices

    def _measure_house(self) -> None:
        self._house_size = HouseSize.of(seller.candidate for seller in self._houses.values())

    def _forget_prices(self) -> None:
        self._limits.forget()
        self._prices = None

    def _next_draw(self) -> float:
        """Numbers between 0 and 1 that are spread evenly, so that newcomers get their share of any few placements."""
        self._drawn = (self._drawn + GOLDEN) % 1.0
        return self._drawn

    def _let_go(self, attempt_id: UUID) -> UUID | None:
        """Forget an attempt. Returns its node if the pool cannot tell what is free there then."""
        node_id, placed = self._attempts.pop(attempt_id)
        reserved = self._taken[node_id]
        demand, _ = reserved.pop(attempt_id)
        self._at_work.end(demand)
        if demand.audited_id is not None:
            self._audits.end(demand)
        if not reserved:
            del self._taken[node_id]
        return None if placed is not None and self.pool.release(placed) else node_id

    def _put(self, seller: Seller) -> None:
        reserved = self._taken.get(seller.node_id, {})
        self.pool.put(left_of(seller, reserved.values()) if reserved else seller.candidate)

    def _note(
        self, attempt_id: UUID, node_id: UUID, demand: Demand, devices: tuple[int, ...], placed: Reservation[Any] | None
    ) -> None:
        self._attempts[attempt_id] = (node_id, placed)
        self._taken.setdefault(node_id, {})[attempt_id] = (demand, devices)
        self._at_work.begin(demand)


def _read(task: QueuedTask) -> TaskDemand:
    assert task.demand is not None, "a task whose demand cannot be read has no turn"
    return task.demand


def _turn(demand: Demand) -> Hashable:
    return whose_turn(demand), demand.priority, demand.submitted_at, demand.audited_id
