"""Whom each waiting task goes to: the candidates in memory, what is reserved of them, and why nobody was found.

A placer is a cache: it is filled from the database, told what has changed, and may be dropped at any moment. What it
decides is checked again when it is applied; what was not applied is taken back. No task goes where it could cost more
than was held for it, and none to its own customer or to a node that failed it.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.dispatch.asking import HOUSE, Asked, asked
from tidemill.core.dispatch.selling import Seller, left_of
from tidemill.core.placement.candidate import Market
from tidemill.core.placement.order import in_turn
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.pool import Explanation, Placed, Pool
from tidemill.core.placement.request import Request
from tidemill.core.placement.why_not import WhyNot
from tidemill.core.work.paying import MarketPlan, cost_max_uc

EXPLAINED_MAX = 10
PRICES_MAX = 100_000
_NOBODY: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class Want:
    """A task that waits: who pays, the most that it may cost, since when, and whom it must not go to."""

    task_id: UUID
    account_id: UUID
    body: bytes
    cost_max_uc: int
    since: Instant
    excluded: frozenset[UUID] = _NOBODY
    has_expected: bool = False
    """Whether its customer knows the result, so that anybody's can be judged."""


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
class WhyNowhere:
    """Why a task waits: how many nodes there is each objection to."""

    want: Want
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Decided:
    found: Sequence[Found]
    waiting: Sequence[WhyNowhere]
    """Of requests that found nobody, one of each sort, and only a few sorts."""


class Placer:
    """The candidates and what attempts have of them."""

    def __init__(self, policies: Mapping[str, Policy], plan: MarketPlan, policy: str) -> None:
        self._policies, self._plan, self._policy = policies, plan, policy
        self._pool = Pool(policies, Market({}), newcomers_share=0.0)
        self._sellers: dict[UUID, Seller] = {}
        self._taken: dict[UUID, dict[UUID, tuple[Request, tuple[int, ...]]]] = {}
        self._attempts: dict[UUID, tuple[UUID, Placed | None]] = {}
        self._too_dear: dict[tuple[float, int, int, int], set[UUID]] = {}
        self._prices: dict[tuple[UUID, bytes], tuple[int, int, int]] = {}

    def __len__(self) -> int:
        return len(self._sellers)

    @property
    def attempts(self) -> Set[UUID]:
        """The attempts that have something of a node."""
        return self._attempts.keys()

    def refill(self, sellers: Iterable[Seller]) -> None:
        """These are all there are. Prices are compared with the median of today."""
        self._sellers = {seller.node_id: seller for seller in sellers}
        market = Market.of(seller.candidate for seller in self._sellers.values())
        self._pool = Pool(self._policies, market, newcomers_share=0.0)
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

    def release(self, attempt_id: UUID) -> None:
        """The attempt has nothing of its node any more."""
        node_id, placed = self._attempts.pop(attempt_id)
        taken = self._taken[node_id]
        del taken[attempt_id]
        if not taken:
            del self._taken[node_id]
        seller = self._sellers.get(node_id)
        if seller is not None and (placed is None or not self._pool.release(placed)):
            self._put(seller)

    def keep(self, attempt_id: UUID, found: Found) -> None:
        """What was decided has been applied, as this attempt."""
        placed = found.placed
        self._note(attempt_id, placed.node_id, placed.request, placed.devices, placed)

    def take_back(self, found: Found) -> None:
        """What was decided was not applied."""
        if not self._pool.release(found.placed) and (seller := self._sellers.get(found.placed.node_id)):
            self._put(seller)

    def decide(self, wants: Sequence[Want], now: Instant) -> Decided:
        """Nodes for tasks, in their turn. Whoever asks the same as one that found nobody finds nobody either."""
        found: list[Found] = []
        waiting: dict[Hashable, WhyNowhere | None] = {}
        for want, known, request in self._in_turn(wants, now):
            key = (request.kind, request.shape, request.labels, request.inputs, want.account_id, want.excluded)
            same = (*key, _cost_key(want, known))
            if same in waiting:
                continue
            one = self._find(want, known, request, now)
            if one is not None:
                found.append(one)
            else:
                is_told = len(waiting) < EXPLAINED_MAX
                waiting[same] = WhyNowhere(want, self.why_nowhere(want, now)) if is_told else None
        return Decided(found, [one for one in waiting.values() if one])

    def why_nowhere(self, want: Want, now: Instant) -> dict[str, int]:
        """How many nodes there is each objection to."""
        known = asked(want.body)
        if known is None:
            return {}
        counts = Counter(
            {why.code: count for why, count in self._pool.why_nowhere(self._request(want, known), now).items()}
        )
        counts[WhyNot.TOO_DEAR.code] += len(self._too_dear.get(_cost_key(want, known), ()))
        return {why: count for why, count in counts.items() if count}

    def explain(self, found: Found, now: Instant) -> list[Explanation]:
        """What speaks for and against the candidates of a placement; the chosen one first, a few others behind it."""
        request = found.placed.request
        others = (node_id for node_id in self._sellers if node_id != found.placed.node_id)
        explained = [self._pool.explain(request, now, node_id) for node_id in (found.placed.node_id, *others)]
        chosen, *rest = [one for one in explained if one is not None]
        ranked = sorted(rest, key=lambda one: (bool(one.objections), -one.score))
        return [chosen, *ranked[: EXPLAINED_MAX - 1]]

    def _in_turn(self, wants: Sequence[Want], now: Instant) -> list[tuple[Want, Asked, Request]]:
        """What can be read of these, in its turn. Requests of one customer and moment are alike in turn."""
        alike: dict[Hashable, deque[tuple[Want, Asked, Request]]] = defaultdict(deque)
        made: dict[Hashable, Request] = {}
        requests = []
        for want in wants:
            known = asked(want.body)
            if known is not None:
                key = (known.like, want.account_id, want.since, want.excluded, want.has_expected)
                request = made.get(key) or made.setdefault(key, self._request(want, known))
                alike[_turn(request)].append((want, known, request))
                requests.append(request)
        return [alike[_turn(request)].popleft() for request in in_turn(requests, {}, now)]

    def _request(self, want: Want, known: Asked) -> Request:
        trusted = known.request.labels if known.is_checkable or want.has_expected else known.request.labels | {HOUSE}
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
