"""Whom each waiting task goes to: the candidates in memory, what is reserved of them, and why nobody was found.

A placer is a cache: it is filled from the database, told what has changed, and may be dropped at any moment. What it
decides is checked again when it is applied; what was not applied is taken back. No task goes where it could cost more
than was held for it, and none to its own customer or to a node that failed it.
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
"""Where nobody is found, so many nodes are asked why, and no more."""

TURNS_MAX = 32
"""Where somebody is found, it is the turn of so many others to be looked at."""

DEAR_MAX = 3
WEIGHED_MAX = 50
"""Of one batch; what is beyond is placed all the same."""

HOLDERS_MAX = 200
"""Of one input; each is weighed for each task."""

TOO_DEAR_MAX = 4_000_000
"""So many nodes are remembered as too dear for some sort of task, all sorts together."""

GOLDEN = (5**0.5 - 1) / 2

CostKey: TypeAlias = tuple[float, int, int, int]
_NOBODY: frozenset[UUID] = frozenset()


class QueuedTask(NamedTuple):
    """A task that waits: who pays, what it asks, the most that it may cost, since when, and whom it must not go to.

    One that this version cannot read asks nothing, and finds nobody.
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
    """Whether only the house may carry it out: an audit, or a task of which nobody could tell what is right."""


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
    """Tasks that found nobody and ask the same: one of each job. `key` is the same for the same sort of task."""

    key: Hashable
    tasks: Sequence[QueuedTask]


@dataclass(frozen=True)
class PlacementDecisions:
    """Who gets what, who gets nothing, and what spoke for and against candidates where that was asked for."""

    placements: Sequence[TaskPlacement]
    waiting: Sequence[AlikeTasks]
    comparisons: Mapping[UUID, CandidateComparison]


class Placer:
    """The candidates and what attempts have of them."""

    def __init__(
        self, policies: Mapping[str, Policy], plan: RewardPlan, policy: str, newcomers_share: float = NEWCOMERS_SHARE
    ) -> None:
        self._policies, self._plan, self._policy, self._newcomers_share = policies, plan, policy, newcomers_share
        self._market = MedianPrices({})
        self._pool = CandidatePool(policies, self._market, newcomers_share)
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
        """These are all there are. Prices are compared with the median of today."""
        known, self._sellers = self._sellers, {seller.node_id: seller for seller in sellers}
        market = MedianPrices.of(seller.candidate for seller in self._sellers.values())
        if market == self._market and known == self._sellers:
            return
        self._market, self._pool = market, CandidatePool(self._policies, market, self._newcomers_share)
        self._forget_prices()
        for seller in self._sellers.values():
            self._put(seller)

    def know(self, node_id: UUID, seller: Seller | None) -> None:
        """A node has come, has changed, or gets no work any more."""
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
        """Somebody else placed this attempt: the node is put anew with what is left of it."""
        known = read_demand(body)
        if attempt_id not in self._attempts and known is not None:
            self._note(attempt_id, node_id, replace(known.demand, customer_id=account_id), (), None)
            if seller := self._sellers.get(node_id):
                self._put(seller)

    def release(self, attempt_ids: Iterable[UUID]) -> None:
        """These attempts have nothing of their nodes any more. A node that came anew is put once for all of them."""
        anew = {node_id for attempt_id in attempt_ids if (node_id := self._let_go(attempt_id)) is not None}
        for node_id in anew:
            if seller := self._sellers.get(node_id):
                self._put(seller)

    def keep(self, attempt_id: UUID, found: TaskPlacement) -> None:
        """What was decided has been applied, as this attempt."""
        placed = found.reservation
        self._note(attempt_id, placed.node_id, placed.demand, placed.devices, placed)

    def take_back(self, found: TaskPlacement) -> None:
        """What was decided was not applied."""
        if not self._pool.release(found.reservation) and (seller := self._sellers.get(found.reservation.node_id)):
            self._put(seller)

    def inputs_of(self, wants: Iterable[QueuedTask]) -> set[Digest]:
        """What tasks need of which some node may have a copy."""
        return {one.digest for want in wants if want.demand is not None for one in want.demand.inputs}

    def note_cached(self, holders: Mapping[Digest, Iterable[UUID]]) -> None:
        """Which nodes have which inputs already, for the next decision. Of those that many have, some are enough."""
        self._pool.note_cached({digest.text: islice(node_ids, HOLDERS_MAX) for digest, node_ids in holders.items()})

    def decide(self, wants: Sequence[QueuedTask], now: Instant, to_weigh: Set[UUID] = _NOBODY) -> PlacementDecisions:
        """Nodes for tasks, in their turn. Whoever asks the same as one that found nobody finds nobody either."""
        found: list[TaskPlacement] = []
        waiting: dict[Hashable, dict[UUID, QueuedTask]] = {}
        weighed: dict[UUID, CandidateComparison] = {}
        self._narrowed.clear()
        for want, known, request in self._in_turn(wants, now):
            key = (request.kind, request.shape, request.labels, request.inputs, want.account_id, want.excluded)
            same = (*key, _cost_key(want, known))
            if same in waiting:
                waiting[same].setdefault(want.job_id, want)
                continue
            is_weighed = want.task_id in to_weigh and len(weighed) < WEIGHED_MAX
            weighing = self._weigh(want, known, request, now) if is_weighed else None
            one = self._find(want, known, request, now)
            if one is None:
                waiting[same] = {want.job_id: want}
                continue
            found.append(one)
            if weighing and weighing.candidates[0].node_id == one.seller.node_id:
                weighed[want.task_id] = weighing
        return PlacementDecisions(
            found, [AlikeTasks(key, list(alike.values())) for key, alike in waiting.items()], weighed
        )

    def why_nowhere(self, want: QueuedTask, now: Instant) -> WaitReasons:
        """How many of the nodes that are looked at there is each objection to."""
        known = want.demand
        assert known is not None, "what nobody was found for could be read"
        request, is_too_dear = (
            self._request(want, known),
            self._too_dear.get(_cost_key(want, known), _NOBODY).__contains__,
        )
        return count(islice(self._pool.against(request, now), LOOKED_MAX), request, self._sellers, is_too_dear)

    def _weigh(self, want: QueuedTask, known: TaskDemand, request: Demand, now: Instant) -> CandidateComparison | None:
        """What speaks for and against candidates, before one is taken."""
        too_dear = self._too_dear.get(_cost_key(want, known), _NOBODY)
        others = chain(islice(too_dear, DEAR_MAX), self._next_turns())

        def is_too_dear(node_id: UUID) -> bool:
            return node_id in too_dear or self._terms(self._sellers[node_id], known)[2] > want.cost_max_uc

        return compare_candidates(self._pool, request, now, others, is_too_dear)

    def _next_turns(self) -> Iterator[UUID]:
        """The nodes whose turn it is to be looked at; after the last it is the first one's again."""
        for _ in range(min(TURNS_MAX, len(self._sellers))):
            if (node_id := next(self._turns, None)) is None:
                self._turns = iter(list(self._sellers))
                node_id = next(self._turns)
            yield node_id

    def _in_turn(self, wants: Sequence[QueuedTask], now: Instant) -> list[tuple[QueuedTask, TaskDemand, Demand]]:
        """What can be read of these, in its turn. Requests of one customer and moment are alike in turn."""
        alike: dict[Hashable, deque[tuple[QueuedTask, TaskDemand, Demand]]] = defaultdict(deque)
        made: dict[Hashable, Demand] = {}
        requests = []
        for want in wants:
            known = want.demand
            if known is not None:
                key = (known.like, want.account_id, want.since, want.excluded, want.for_house)
                request = made.get(key) or made.setdefault(key, self._request(want, known))
                alike[_turn(request)].append((want, known, request))
                requests.append(request)
        return [alike[_turn(request)].popleft() for request in in_turn(requests, self._at_work.devices, now)]

    def _request(self, want: QueuedTask, known: TaskDemand) -> Demand:
        labels = known.demand.labels
        return replace(
            known.demand,
            labels=labels | {HOUSE} if want.for_house else labels,
            customer_id=want.account_id,
            excluded_nodes=want.excluded,
            submitted_at=want.since,
            policy=self._policy,
        )

    def _find(self, want: QueuedTask, known: TaskDemand, request: Demand, now: Instant) -> TaskPlacement | None:
        """The best node at which the task costs no more than it may. Who is too dear is found out for all nodes at
        once, when the best of them is: so nobody is asked more than twice, however many there are."""
        key = _cost_key(want, known)
        draw = self._next_draw()
        placed = self._pool.place(self._within(request, key), now, draw)
        if placed is not None and self._cost_uc(placed, known) > want.cost_max_uc:
            self._pool.release(placed)
            self._remember_too_dear(key, self._priced().too_dear(known, want.cost_max_uc))
            placed = self._pool.place(self._within(request, key), now, draw)
        if placed is None:
            return None
        seller = self._sellers[placed.node_id]
        hourly_uc, quoted_ms, cost_uc = self._terms(seller, known)
        assert cost_uc <= want.cost_max_uc, "who is too dear is not asked"
        return TaskPlacement(want, known, seller, hourly_uc, quoted_ms, placed)

    def _within(self, request: Demand, key: CostKey) -> Demand:
        """The request without the nodes that are known to be too dear for it."""
        too_dear = self._too_dear.get(key)
        if not too_dear:
            return request
        narrowed = self._narrowed.get((request, key))
        if narrowed is None:
            narrowed = replace(request, excluded_nodes=too_dear | request.excluded_nodes)
            self._narrowed[request, key] = narrowed
        return narrowed

    def _remember_too_dear(self, key: CostKey, too_dear: frozenset[UUID]) -> None:
        if (len(self._too_dear) + 1) * max(1, len(self._sellers)) > TOO_DEAR_MAX:
            self._too_dear.clear()
        self._too_dear[key] = too_dear

    def _cost_uc(self, placed: Reservation, known: TaskDemand) -> int:
        return self._terms(self._sellers[placed.node_id], known)[2]

    def _terms(self, seller: Seller, known: TaskDemand) -> tuple[int, int, int]:
        return self._priced().terms(seller, known)

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
        """Forget an attempt. Answers its node where the pool cannot tell what is free there then."""
        node_id, placed = self._attempts.pop(attempt_id)
        taken = self._taken[node_id]
        request, _ = taken.pop(attempt_id)
        self._at_work.end(request)
        if not taken:
            del self._taken[node_id]
        return None if placed is not None and self._pool.release(placed) else node_id

    def _put(self, seller: Seller) -> None:
        taken = self._taken.get(seller.node_id, {})
        self._pool.put(left_of(seller, taken.values()) if taken else seller.candidate)

    def _note(
        self, attempt_id: UUID, node_id: UUID, request: Demand, devices: tuple[int, ...], placed: Reservation | None
    ) -> None:
        self._attempts[attempt_id] = (node_id, placed)
        self._taken.setdefault(node_id, {})[attempt_id] = (request, devices)
        self._at_work.begin(request)


def _turn(request: Demand) -> Hashable:
    return request.customer_id, request.priority, request.submitted_at


def _cost_key(want: QueuedTask, known: TaskDemand) -> CostKey:
    return known.needs.operations, known.needs.seconds, known.needs.devices, want.cost_max_uc
