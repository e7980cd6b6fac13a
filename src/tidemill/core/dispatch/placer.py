"""Whom each waiting task goes to: the candidates in memory, what is reserved of them, and why nobody was found.

A placer is a cache: it is filled from the database, told what has changed, and may be dropped at any moment. What it
decides is checked again when it is applied; what was not applied is taken back. No task goes where it could cost more
than was held for it, and none to its own customer or to a node that failed it.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, islice
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.dispatch.asking import HOUSE, Asked, asked
from tidemill.core.dispatch.selling import Seller, left_of
from tidemill.core.dispatch.weighing import Nowhere, Weighing, count, weigh
from tidemill.core.placement.candidate import Market
from tidemill.core.placement.order import in_turn
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.pool import Placed, Pool
from tidemill.core.placement.request import Request
from tidemill.core.work.paying import MarketPlan, cost_max_uc

LOOKED_MAX = 2_000
"""Where nobody is found, so many nodes are asked why, and no more."""

TURNS_MAX = 32
"""Where somebody is found, it is the turn of so many others to be looked at."""

DEAR_MAX = 3
WEIGHED_MAX = 50
"""Of one batch; what is beyond is placed all the same."""

PRICES_MAX = 100_000
_NOBODY: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class Want:
    """A task that waits: who pays, the most that it may cost, since when, and whom it must not go to."""

    task_id: UUID
    job_id: UUID
    account_id: UUID
    body: bytes
    cost_max_uc: int
    since: Instant
    excluded: frozenset[UUID] = _NOBODY
    has_expected: bool = False
    """Whether its customer knows the result, so that anybody's can be judged."""
    tries: int = 0
    for_house: bool = False
    """Whether only the house may carry it out: an audit, or a task of which nobody could tell what is right."""


@dataclass(frozen=True, slots=True)
class Found:
    """The node for a task, and on which terms."""

    want: Want
    asked: Asked
    seller: Seller
    hourly_uc: int
    quoted_ms: int
    placed: Placed


@dataclass(frozen=True)
class Alike:
    """Tasks that found nobody and ask the same: one of each job. `key` is the same for the same sort of task."""

    key: Hashable
    wants: Sequence[Want]


@dataclass(frozen=True)
class Decided:
    """Who gets what, who gets nothing, and what spoke for and against candidates where that was asked for."""

    found: Sequence[Found]
    waiting: Sequence[Alike]
    weighed: Mapping[UUID, Weighing]


class Placer:
    """The candidates and what attempts have of them."""

    def __init__(self, policies: Mapping[str, Policy], plan: MarketPlan, policy: str) -> None:
        self._policies, self._plan, self._policy = policies, plan, policy
        self._market = Market({})
        self._pool = Pool(policies, self._market, newcomers_share=0.0)
        self._sellers: dict[UUID, Seller] = {}
        self._taken: dict[UUID, dict[UUID, tuple[Request, tuple[int, ...]]]] = {}
        self._attempts: dict[UUID, tuple[UUID, Placed | None]] = {}
        self._too_dear: dict[tuple[float, int, int, int], set[UUID]] = {}
        self._prices: dict[tuple[UUID, bytes], tuple[int, int, int]] = {}
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
        market = Market.of(seller.candidate for seller in self._sellers.values())
        if market == self._market and known == self._sellers:
            return
        self._market, self._pool = market, Pool(self._policies, market, newcomers_share=0.0)
        self._too_dear.clear()
        self._prices.clear()
        for seller in self._sellers.values():
            self._put(seller)

    def know(self, node_id: UUID, seller: Seller | None) -> None:
        """A node has come, has changed, or gets no work any more."""
        if self._sellers.get(node_id) == seller:
            return
        self._too_dear.clear()
        self._prices.clear()
        if seller is None:
            del self._sellers[node_id]
            self._pool.remove(node_id)
        else:
            self._sellers[node_id] = seller
            self._put(seller)

    def reserve(self, attempt_id: UUID, node_id: UUID, body: bytes) -> None:
        """Somebody else placed this attempt: the node is put anew with what is left of it."""
        known = asked(body)
        if attempt_id not in self._attempts and known is not None:
            self._note(attempt_id, node_id, known.request, (), None)
            if seller := self._sellers.get(node_id):
                self._put(seller)

    def release(self, attempt_ids: Iterable[UUID]) -> None:
        """These attempts have nothing of their nodes any more. A node that came anew is put once for all of them."""
        anew = {node_id for attempt_id in attempt_ids if (node_id := self._let_go(attempt_id)) is not None}
        for node_id in anew:
            if seller := self._sellers.get(node_id):
                self._put(seller)

    def keep(self, attempt_id: UUID, found: Found) -> None:
        """What was decided has been applied, as this attempt."""
        placed = found.placed
        self._note(attempt_id, placed.node_id, placed.request, placed.devices, placed)

    def take_back(self, found: Found) -> None:
        """What was decided was not applied."""
        if not self._pool.release(found.placed) and (seller := self._sellers.get(found.placed.node_id)):
            self._put(seller)

    def decide(self, wants: Sequence[Want], now: Instant, to_weigh: Set[UUID] = _NOBODY) -> Decided:
        """Nodes for tasks, in their turn. Whoever asks the same as one that found nobody finds nobody either."""
        found: list[Found] = []
        waiting: dict[Hashable, dict[UUID, Want]] = {}
        weighed: dict[UUID, Weighing] = {}
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
        return Decided(found, [Alike(key, list(alike.values())) for key, alike in waiting.items()], weighed)

    def why_nowhere(self, want: Want, now: Instant) -> Nowhere:
        """How many of the nodes that are looked at there is each objection to."""
        known = asked(want.body)
        assert known is not None, "what nobody was found for could be read"
        request, is_too_dear = (
            self._request(want, known),
            self._too_dear.get(_cost_key(want, known), set()).__contains__,
        )
        return count(islice(self._pool.against(request, now), LOOKED_MAX), request, self._sellers, is_too_dear)

    def _weigh(self, want: Want, known: Asked, request: Request, now: Instant) -> Weighing | None:
        """What speaks for and against candidates, before one is taken."""
        too_dear = self._too_dear.get(_cost_key(want, known), set())
        others = chain(islice(too_dear, DEAR_MAX), self._next_turns())

        def is_too_dear(node_id: UUID) -> bool:
            return node_id in too_dear or self._terms(self._sellers[node_id], known)[2] > want.cost_max_uc

        return weigh(self._pool, request, now, others, is_too_dear)

    def _next_turns(self) -> Iterator[UUID]:
        """The nodes whose turn it is to be looked at; after the last it is the first one's again."""
        for _ in range(min(TURNS_MAX, len(self._sellers))):
            if (node_id := next(self._turns, None)) is None:
                self._turns = iter(list(self._sellers))
                node_id = next(self._turns)
            yield node_id

    def _in_turn(self, wants: Sequence[Want], now: Instant) -> list[tuple[Want, Asked, Request]]:
        """What can be read of these, in its turn. Requests of one customer and moment are alike in turn."""
        alike: dict[Hashable, deque[tuple[Want, Asked, Request]]] = defaultdict(deque)
        made: dict[Hashable, Request] = {}
        requests = []
        for want in wants:
            known = asked(want.body)
            if known is not None:
                key = (known.like, want.account_id, want.since, want.excluded, want.has_expected, want.for_house)
                request = made.get(key) or made.setdefault(key, self._request(want, known))
                alike[_turn(request)].append((want, known, request))
                requests.append(request)
        return [alike[_turn(request)].popleft() for request in in_turn(requests, {}, now)]

    def _request(self, want: Want, known: Asked) -> Request:
        is_anybodys = not want.for_house and (known.is_checkable or want.has_expected)
        trusted = known.request.labels if is_anybodys else known.request.labels | {HOUSE}
        return replace(
            known.request,
            labels=trusted,
            customer_id=want.account_id,
            excluded_nodes=want.excluded,
            submitted_at=want.since,
            policy=self._policy,
        )

    def _find(self, want: Want, known: Asked, request: Request, now: Instant) -> Found | None:
        """The best node at which the task costs no more than it may."""
        too_dear = self._too_dear.setdefault(_cost_key(want, known), set())
        while True:
            narrowed = replace(request, excluded_nodes=request.excluded_nodes | too_dear) if too_dear else request
            placed = self._pool.place(narrowed, now)
            if placed is None:
                return None
            seller = self._sellers[placed.node_id]
            hourly_uc, quoted_ms, cost_uc = self._terms(seller, known)
            if cost_uc <= want.cost_max_uc:
                return Found(want, known, seller, hourly_uc, quoted_ms, placed)
            self._pool.release(placed)
            too_dear.add(placed.node_id)

    def _terms(self, seller: Seller, known: Asked) -> tuple[int, int, int]:
        """The price an hour, the time quoted, and the most that it costs there."""
        terms = self._prices.get((seller.node_id, known.like))
        if terms is None:
            hourly_uc, quoted_ms = seller.hourly_uc(known), seller.quoted_ms(known)
            if len(self._prices) >= PRICES_MAX:
                self._prices.clear()
            terms = hourly_uc, quoted_ms, cost_max_uc(self._plan, hourly_uc, quoted_ms)
            self._prices[seller.node_id, known.like] = terms
        return terms

    def _let_go(self, attempt_id: UUID) -> UUID | None:
        """Forget an attempt. Answers its node where the pool cannot tell what is free there then."""
        node_id, placed = self._attempts.pop(attempt_id)
        taken = self._taken[node_id]
        del taken[attempt_id]
        if not taken:
            del self._taken[node_id]
        return None if placed is not None and self._pool.release(placed) else node_id

    def _put(self, seller: Seller) -> None:
        taken = self._taken.get(seller.node_id, {})
        self._pool.put(left_of(seller, taken.values()) if taken else seller.candidate)

    def _note(
        self, attempt_id: UUID, node_id: UUID, request: Request, devices: tuple[int, ...], placed: Placed | None
    ) -> None:
        self._attempts[attempt_id] = (node_id, placed)
        self._taken.setdefault(node_id, {})[attempt_id] = (request, devices)


def _turn(request: Request) -> Hashable:
    return request.customer_id, request.priority, request.submitted_at


def _cost_key(want: Want, known: Asked) -> tuple[float, int, int, int]:
    return known.needs.operations, known.needs.seconds, known.needs.devices, want.cost_max_uc
