"""Which node each waiting task gets: the candidates in memory, what is reserved of them, and why none was found.

A placer is a cache: it is filled from the database, told of changes, and may be dropped at any moment. Its decisions
are checked again when they are applied; those not applied are taken back. No task goes where it could cost more than
was held for it, to its own customer, or to a node that failed it.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import MedianPrices
from tidemill.core.placement.considerations import CandidateComparison, WaitReasons, compare_candidates, count
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.candidate_pool import NEWCOMERS_SHARE, CandidatePool, Reservation
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.prices import Prices
from tidemill.core.placement.seller import Seller, left_of
from tidemill.core.placement.task_demand import HOUSE, TaskDemand, read_demand
from tidemill.core.placement.turns import DevicesAtWork, in_turn
from tidemill.core.settlement.rewards import RewardPlan

LOOKED_MAX = 2_000
"""Where no node is found, at most so many nodes are asked why."""

TURNS_MAX = 32
"""Where one is found, so many others have their turn to be considered."""

DEAR_MAX = 3
WEIGHED_MAX = 50
"""Of one batch; tasks beyond it are placed without a comparison."""

HOLDERS_MAX = 200
"""Of one input; each is weighed for each task."""

TOO_DEAR_MAX = 4_000_000
"""How many nodes are remembered as too expensive for some shape of task, all shapes together."""

GOLDEN = (5**0.5 - 1) / 2

CostKey: TypeAlias = tuple[float, int, int, int]
_NOBODY: frozenset[UUID] = frozenset()


class QueuedTask(NamedTuple):
    """A task that waits: who pays, its demand, the most that it may cost, since when, and which nodes it must avoid.

    A task that this version cannot read has no demand, and finds no node.
    """

    task_id: UUID
    job_id: UUID
    account_id: UUID
    demand: TaskDemand | None
    cost_max_uc: int
    since: Instant
    excluded: frozenset[UUID] = _NOBODY
    tries: int = 0
    for_house: bool = False
    """Whether only the house may carry it out: an audit, or a task whose right result nobody could tell."""


class TaskPlacement(NamedTuple):
    """The node for a task, and on which terms."""

    task: QueuedTask
    demand: TaskDemand
    seller: Seller
    hourly_uc: int
    quoted_ms: int
    reservation: Reservation


@dataclass(frozen=True)
class AlikeTasks:
    """Tasks that found no node and have the same demand: one of each job. `key` is equal for equal demands."""

    key: Hashable
    tasks: Sequence[QueuedTask]


@dataclass(frozen=True)
class PlacementDecisions:
    """The placements, the waiting tasks, and the comparisons of candidates that were asked for."""

    placements: Sequence[TaskPlacement]
    waiting: Sequence[AlikeTasks]
    comparisons: Mapping[UUID, CandidateComparison]


class Placer:
    """The candidates and what attempts have of them."""

    def __init__(
        self, policies: Mapping[str, Policy], plan: RewardPlan, policy: str, newcomers_share: float = NEWCOMERS_SHARE
    ) -> None:
        self._policies, self._plan, self._policy, self._newcomers_share = policies, plan, policy, newcomers_share
        self._median_prices = MedianPrices({})
        self._pool = CandidatePool(policies, self._median_prices, newcomers_share)
        self._drawn = 0.0
        self._sellers: dict[UUID, Seller] = {}
        self._taken: dict[UUID, dict[UUID, tuple[Demand, tuple[int, ...]]]] = {}
        self._attempts: dict[UUID, tuple[UUID, Reservation | None]] = {}
        self._at_work = DevicesAtWork()
        self._too_dear: dict[CostKey, frozenset[UUID]] = {}
        self._narrowed: dict[tuple[Demand, CostKey], Demand] = {}
        self._prices: Prices | None = None
        self._turns: Iterator[UUID] = iter(())

    def __len__(self) -> int:
        return len(self._sellers)

    @property
    def attempts(self) -> Set[UUID]:
        """The attempts that have something of a node."""
        return self._attempts.keys()

    def refill(self, sellers: Iterable[Seller]) -> None:
        """Replace all sellers. Prices are compared with the current median."""
        earlier, self._sellers = self._sellers, {seller.node_id: seller for seller in sellers}
        median_prices = MedianPrices.of(seller.candidate for seller in self._sellers.values())
        if median_prices == self._median_prices and earlier == self._sellers:
            return
        self._median_prices, self._pool = (
            median_prices,
            CandidatePool(self._policies, median_prices, self._newcomers_share),
        )
        self._forget_prices()
        for seller in self._sellers.values():
            self._put(seller)

    def know(self, node_id: UUID, seller: Seller | None) -> None:
        """A node has come, has changed, or no longer gets work."""
        if self._sellers.get(node_id) == seller:
            return
        self._forget_prices()
        if seller is None:
            del self._sellers[node_id]
            self._pool.remove(node_id)
        else:
            self._sellers[node_id] = seller
            self._put(seller)

    def reserve(self, attempt_id: UUID, node_id: UUID, body: bytes, account_id: UUID) -> None:
        """Another process placed this attempt: put the node again with what is left of it."""
        task_demand = read_demand(body)
        if attempt_id not in self._attempts and task_demand is not None:
            self._note(attempt_id, node_id, replace(task_demand.demand, customer_id=account_id), (), None)
            if seller := self._sellers.get(node_id):
                self._put(seller)

    def release(self, attempt_ids: Iterable[UUID]) -> None:
        """These attempts have left their nodes. A node that was replaced is put once for all of them."""
        anew = {node_id for attempt_id in attempt_ids if (node_id := self._let_go(attempt_id)) is not None}
        for node_id in anew:
            if seller := self._sellers.get(node_id):
                self._put(seller)

    def keep(self, attempt_id: UUID, placement: TaskPlacement) -> None:
        """A decision was applied, as this attempt."""
        placed = placement.reservation
        self._note(attempt_id, placed.node_id, placed.demand, placed.devices, placed)

    def take_back(self, placement: TaskPlacement) -> None:
        """A decision was not applied."""
        if not self._pool.release(placement.reservation) and (
            seller := self._sellers.get(placement.reservation.node_id)
        ):
            self._put(seller)

    def inputs_of(self, tasks: Iterable[QueuedTask]) -> set[Digest]:
        """The inputs of tasks, of which some node may have a copy."""
        return {needed.digest for task in tasks if task.demand is not None for needed in task.demand.inputs}

    def note_cached(self, holders: Mapping[Digest, Iterable[UUID]]) -> None:
        """Which nodes have which inputs already, for the next decision. Of many holders, some are enough."""
        self._pool.note_cached({digest.text: islice(node_ids, HOLDERS_MAX) for digest, node_ids in holders.items()})

    def decide(self, tasks: Sequence[QueuedTask], now: Instant, to_weigh: Set[UUID] = _NOBODY) -> PlacementDecisions:
        """Find nodes for tasks, in their turn. A task with the demand of one that found no node finds none either."""
        placements: list[TaskPlacement] = []
        waiting: dict[Hashable, dict[UUID, QueuedTask]] = {}
        weighed: dict[UUID, CandidateComparison] = {}
        self._narrowed.clear()
        for task, task_demand, demand in self._in_turn(tasks, now):
            key = (demand.kind, demand.shape, demand.labels, demand.inputs, task.account_id, task.excluded)
            same = (*key, _cost_key(task, task_demand))
            if same in waiting:
                waiting[same].setdefault(task.job_id, task)
                continue
            is_weighed = task.task_id in to_weigh and len(weighed) < WEIGHED_MAX
            weighing = self._weigh(task, task_demand, demand, now) if is_weighed else None
            placement = self._find(task, task_demand, demand, now)
            if placement is None:
                waiting[same] = {task.job_id: task}
                continue
            placements.append(placement)
            if weighing and weighing.candidates[0].node_id == placement.seller.node_id:
                weighed[task.task_id] = weighing
        return PlacementDecisions(
            placements, [AlikeTasks(key, list(alike.values())) for key, alike in waiting.items()], weighed
        )

    def why_nowhere(self, task: QueuedTask, now: Instant) -> WaitReasons:
        """Count, for each objection, the considered nodes to which it applies."""
        task_demand = task.demand
        assert task_demand is not None, "a task that was looked at could be read"
        demand, is_too_dear = (
            self._demand(task, task_demand),
            self._too_dear.get(_cost_key(task, task_demand), _NOBODY).__contains__,
        )
        return count(islice(self._pool.against(demand, now), LOOKED_MAX), demand, self._sellers, is_too_dear)

    def _weigh(
        self, task: QueuedTask, task_demand: TaskDemand, demand: Demand, now: Instant
    ) -> CandidateComparison | None:
        """Compare candidates, before one is taken."""
        too_dear = self._too_dear.get(_cost_key(task, task_demand), _NOBODY)
        others = chain(islice(too_dear, DEAR_MAX), self._next_turns())

        def is_too_dear(node_id: UUID) -> bool:
            return node_id in too_dear or self._terms(self._sellers[node_id], task_demand)[2] > task.cost_max_uc

        return compare_candidates(self._pool, demand, now, others, is_too_dear)

    def _next_turns(self) -> Iterator[UUID]:
        """The nodes whose turn it is to be considered; after the last comes the first again."""
        for _ in range(min(TURNS_MAX, len(self._sellers))):
            if (node_id := next(self._turns, None)) is None:
                self._turns = iter(list(self._sellers))
                node_id = next(self._turns)
            yield node_id

    def _in_turn(self, tasks: Sequence[QueuedTask], now: Instant) -> list[tuple[QueuedTask, TaskDemand, Demand]]:
        """The readable tasks, in turn order. Demands of one customer and moment are interchangeable."""
        alike: dict[Hashable, deque[tuple[QueuedTask, TaskDemand, Demand]]] = defaultdict(deque)
        demands_by_key: dict[Hashable, Demand] = {}
        demands = []
        for task in tasks:
            task_demand = task.demand
            if task_demand is not None:
                key = (task_demand.like, task.account_id, task.since, task.excluded, task.for_house)
                demand = demands_by_key.get(key) or demands_by_key.setdefault(key, self._demand(task, task_demand))
                alike[_turn(demand)].append((task, task_demand, demand))
                demands.append(demand)
        return [alike[_turn(demand)].popleft() for demand in in_turn(demands, self._at_work.devices, now)]

    def _demand(self, task: QueuedTask, task_demand: TaskDemand) -> Demand:
        labels = task_demand.demand.labels
        return replace(
            task_demand.demand,
            labels=labels | {HOUSE} if task.for_house else labels,
            customer_id=task.account_id,
            excluded_nodes=task.excluded,
            submitted_at=task.since,
            policy=self._policy,
        )

    def _find(self, task: QueuedTask, task_demand: TaskDemand, demand: Demand, now: Instant) -> TaskPlacement | None:
        """The best node at which the task costs no more than it may. Once the best node is too expensive, exclude all
        that are at once: so no more than two nodes are tried, however many there are."""
        key = _cost_key(task, task_demand)
        draw = self._next_draw()
        placed = self._pool.place(self._within(demand, key), now, draw)
        if placed is not None and self._cost_uc(placed, task_demand) > task.cost_max_uc:
            self._pool.release(placed)
            self._remember_too_dear(key, self._priced().too_dear(task_demand, task.cost_max_uc))
            placed = self._pool.place(self._within(demand, key), now, draw)
        if placed is None:
            return None
        seller = self._sellers[placed.node_id]
        hourly_uc, quoted_ms, cost_uc = self._terms(seller, task_demand)
        assert cost_uc <= task.cost_max_uc, "nodes that are too expensive are excluded"
        return TaskPlacement(task, task_demand, seller, hourly_uc, quoted_ms, placed)

    def _within(self, demand: Demand, key: CostKey) -> Demand:
        """The demand without the nodes that are known to be too expensive for it."""
        too_dear = self._too_dear.get(key)
        if not too_dear:
            return demand
        narrowed = self._narrowed.get((demand, key))
        if narrowed is None:
            narrowed = replace(demand, excluded_nodes=too_dear | demand.excluded_nodes)
            self._narrowed[demand, key] = narrowed
        return narrowed

    def _remember_too_dear(self, key: CostKey, too_dear: frozenset[UUID]) -> None:
        if (len(self._too_dear) + 1) * max(1, len(self._sellers)) > TOO_DEAR_MAX:
            self._too_dear.clear()
        self._too_dear[key] = too_dear

    def _cost_uc(self, placed: Reservation, task_demand: TaskDemand) -> int:
        return self._terms(self._sellers[placed.node_id], task_demand)[2]

    def _terms(self, seller: Seller, task_demand: TaskDemand) -> tuple[int, int, int]:
        return self._priced().terms(seller, task_demand)

    def _priced(self) -> Prices:
        if self._prices is None:
            self._prices = Prices(self._sellers.values(), self._plan)
        return self._prices

    def _forget_prices(self) -> None:
        self._too_dear.clear()
        self._narrowed.clear()
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
        if not reserved:
            del self._taken[node_id]
        return None if placed is not None and self._pool.release(placed) else node_id

    def _put(self, seller: Seller) -> None:
        reserved = self._taken.get(seller.node_id, {})
        self._pool.put(left_of(seller, reserved.values()) if reserved else seller.candidate)

    def _note(
        self, attempt_id: UUID, node_id: UUID, demand: Demand, devices: tuple[int, ...], placed: Reservation | None
    ) -> None:
        self._attempts[attempt_id] = (node_id, placed)
        self._taken.setdefault(node_id, {})[attempt_id] = (demand, devices)
        self._at_work.begin(demand)


def _turn(demand: Demand) -> Hashable:
    return demand.customer_id, demand.priority, demand.submitted_at


def _cost_key(task: QueuedTask, task_demand: TaskDemand) -> CostKey:
    return task_demand.needs.operations, task_demand.needs.seconds, task_demand.needs.devices, task.cost_max_uc
