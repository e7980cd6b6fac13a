"""Which node each waiting task gets: the candidates in memory, what is reserved of them, and why none was found.

`decide` takes tasks and returns a plan. What it plans is reserved, so that the next task sees it; each placement is
then kept (`keep`), as an attempt that ends by `release`, or given back (`take_back`). No task goes where it could cost
more than was held for it, to its own customer, or to a node that failed it.

A placer is a cache: it is filled from the database, told of changes, and may be dropped at any moment.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain, islice
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import MedianPrices
from tidemill.core.placement.considerations import CandidateComparison, WaitReasons, compare_candidates, count
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.candidate_pool import CandidatePool, Reservation
from tidemill.core.placement.index.prices import CostLimits, Prices, cost_key
from tidemill.core.placement.plan import AlikeTasks, PlacementPlan, QueuedTask, TaskPlacement
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.rule import NEWCOMERS_SHARE
from tidemill.core.placement.seller import Seller, left_of
from tidemill.core.placement.task_demand import HOUSE, TaskDemand
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

GOLDEN = (5**0.5 - 1) / 2

_NOBODY: frozenset[UUID] = frozenset()
_NOTHING: Mapping[Digest, Iterable[UUID]] = {}


class Placer:
    """The candidates and what attempts have of them."""

    def __init__(
        self, policies: Mapping[str, Policy], plan: RewardPlan, policy: str, newcomers_share: float = NEWCOMERS_SHARE
    ) -> None:
        self._policies, self._newcomers_share = policies, newcomers_share
        self._policy = policy
        """The name of the policy by which all tasks are placed."""
        self._plan = plan
        """What rewards and commissions come to, so what a task costs."""
        self._median_prices = MedianPrices({})
        """As they were when the pool was filled."""
        self._pool = CandidatePool(policies, self._median_prices, newcomers_share)
        """The sellers, with what is left of them."""
        self._sellers: dict[UUID, Seller] = {}
        """All nodes that may get work, as if they had none."""
        self._taken: dict[UUID, dict[UUID, tuple[Demand, tuple[int, ...]]]] = {}
        """By node and attempt: what the attempt has of it. Devices that nobody named are not listed."""
        self._attempts: dict[UUID, tuple[UUID, Reservation | None]] = {}
        """The node of each attempt, and its reservation if it was decided here."""
        self._at_work = DevicesAtWork()
        """What each customer has, for whose turn it is."""
        self._prices: Prices | None = None
        """None until they are needed, after a node has changed."""
        self._limits = CostLimits()
        self._drawn = 0.0
        """The last draw for newcomers."""
        self._turns: Iterator[UUID] = iter(())
        """The nodes that are still to be considered in comparisons, before the first comes again."""

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

    def reserve(self, attempt_id: UUID, node_id: UUID, task_demand: TaskDemand | None, account_id: UUID) -> None:
        """Another process placed this attempt: put the node again with what is left of it."""
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

    def decide(
        self,
        tasks: Sequence[QueuedTask],
        now: Instant,
        *,
        holders: Mapping[Digest, Iterable[UUID]] = _NOTHING,
        to_weigh: Set[UUID] = _NOBODY,
    ) -> PlacementPlan:
        """Find nodes for tasks, in their turn. A task with the demand of one that found no node finds none either.

        `holders` are nodes that have inputs already, of which some are enough; of the tasks `to_weigh` candidates are
        compared.
        """
        self._pool.note_cached({digest.text: islice(node_ids, HOLDERS_MAX) for digest, node_ids in holders.items()})
        placements: list[TaskPlacement] = []
        waiting: dict[Hashable, dict[UUID, QueuedTask]] = {}
        weighed: dict[UUID, CandidateComparison] = {}
        self._limits.begin()
        for task, task_demand, demand in self._in_turn(tasks, now):
            key = (demand.kind, demand.shape, demand.labels, demand.inputs, task.account_id, task.excluded)
            same = (*key, cost_key(task_demand, task.cost_max_uc))
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
        waits = [AlikeTasks(key, list(alike.values())) for key, alike in waiting.items()]
        return PlacementPlan(placements, waits, weighed)

    def why_nowhere(self, task: QueuedTask, now: Instant) -> WaitReasons:
        """Count, for each objection, the considered nodes to which it applies."""
        task_demand = task.demand
        assert task_demand is not None, "a task that was looked at could be read"
        demand, is_too_dear = (
            self._demand(task, task_demand),
            self._limits.too_dear(cost_key(task_demand, task.cost_max_uc)).__contains__,
        )
        return count(islice(self._pool.against(demand, now), LOOKED_MAX), demand, self._sellers, is_too_dear)

    def _weigh(
        self, task: QueuedTask, task_demand: TaskDemand, demand: Demand, now: Instant
    ) -> CandidateComparison | None:
        """Compare candidates, before one is taken."""
        too_dear = self._limits.too_dear(cost_key(task_demand, task.cost_max_uc))
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
        """The readable tasks, in turn order. Demands of one customer and moment are interchangeable.

        Alike tasks share one demand: making one for each would take 1.6 ×."""
        alike: dict[Hashable, deque[tuple[QueuedTask, TaskDemand, Demand]]] = defaultdict(deque)
        demands_by_key: dict[Hashable, Demand] = {}
        demands = []
        for task in tasks:
            task_demand = task.demand
            if task_demand is not None:
                key = (task_demand.id, task.account_id, task.since, task.excluded, task.for_house)
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
        key = cost_key(task_demand, task.cost_max_uc)
        draw = self._next_draw()
        placed = self._pool.place(self._limits.within(demand, key), now, draw)
        if placed is not None and self._cost_uc(placed, task_demand) > task.cost_max_uc:
            self._pool.release(placed)
            self._limits.note(key, self._priced().too_dear(task_demand, task.cost_max_uc), len(self._sellers))
            placed = self._pool.place(self._limits.within(demand, key), now, draw)
        if placed is None:
            return None
        seller = self._sellers[placed.node_id]
        hourly_uc, quoted_ms, cost_uc = self._terms(seller, task_demand)
        assert cost_uc <= task.cost_max_uc, "nodes that are too expensive are excluded"
        return TaskPlacement(task, task_demand, seller, hourly_uc, quoted_ms, placed)

    def _cost_uc(self, placed: Reservation, task_demand: TaskDemand) -> int:
        return self._terms(self._sellers[placed.node_id], task_demand)[2]

    def _terms(self, seller: Seller, task_demand: TaskDemand) -> tuple[int, int, int]:
        return self._priced().terms(seller, task_demand)

    def _priced(self) -> Prices:
        if self._prices is None:
            self._prices = Prices(self._sellers.values(), self._plan)
        return self._prices

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
