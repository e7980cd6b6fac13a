"""Whether a caller may go on: answered from memory as long as possible, and right across processes all the same.

A process leases tokens of a caller's bucket from the database and spends them without asking again; who has used up a
limit is refused from memory until the next token is due. So a caller costs the database about two statements a second,
however fast it calls, and a flood that is refused costs nothing. Leases not used within a second are given back.
What is kept in memory is bounded, however many callers there are, and may be dropped at any moment.

When the database cannot be reached, nobody is let through whom a lease does not cover: the caller is told of the fault.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeAlias

import structlog

from tidemill.core.clock import SECOND, Clock, Instant
from tidemill.core.faults import DatabaseFault
from tidemill.core.rate_limits import Limit, available, due_at, next_token_lease
from tidemill.store.accounts import quotas
from tidemill.store.accounts.quotas import BucketTokens, TokenLease
from tidemill.store.database import Database, faults
from tidemill.store.query import Connection

log = structlog.get_logger()

KEYS_MAX = 100_000
"""The most buckets kept in memory; about 30 MiB."""

BATCH_MAX = 1_000
_UNUSED_US = SECOND
_REFUSE_US = SECOND // 10
"""A refusal stands at least so long, so that a fast bucket at its end is not asked for every single token."""

_LEASE_S = 5.0
"""How long the database may take, so that a connection gone silent does not hold up everybody for ever."""

_CLOSE_S = 3.0
_NEVER = Instant(0)
_STOPPING = "The process is stopping: try again with another one."


class Allowance(NamedTuple):
    """Whether a caller may go on, and how it stands with its limit. A tuple, because every request makes one."""

    allowed: bool
    limit: int
    window_s: int
    remaining: int
    reset_s: int
    retry_after_s: int


def headers(allowance: Allowance) -> list[tuple[bytes, bytes]]:
    """What the caller is told with the answer, whichever it is."""
    told = [
        (b"ratelimit-limit", b"%d" % allowance.limit),
        (b"ratelimit-remaining", b"%d" % allowance.remaining),
        (b"ratelimit-reset", b"%d" % allowance.reset_s),
        (b"ratelimit-policy", b"%d;w=%d" % (allowance.limit, allowance.window_s)),
    ]
    if not allowance.allowed:
        told.append((b"retry-after", b"%d" % allowance.retry_after_s))
    return told


@dataclass(slots=True)
class _Kept:
    """What this process knows of one bucket: its tokens in hand, and how the bucket stood when it last looked."""

    limit: Limit
    full_at: Instant
    tokens: int = 0
    leased: int = 0
    leased_at: Instant = _NEVER
    refused_at: Instant = _NEVER
    refused_until: Instant = _NEVER

    def take(self, cost: int, now: Instant) -> Allowance | None:
        """Nothing, if only the database can tell."""
        if self.tokens >= cost:
            self.tokens -= cost
            return self._allowance(True, 0, now)
        if self.refused_at <= now < self.refused_until:
            due = max(due_at(self.full_at, self.limit, cost - self.tokens), self.refused_until)
            return self._allowance(False, _whole_s(due - now), now)
        return None

    def add(self, granted: TokenLease, wanted: int, now: Instant) -> None:
        """A lease has come. If it emptied the bucket, there is nothing more to be had for a while."""
        self.tokens += granted.tokens
        self.leased, self.leased_at, self.full_at = self.tokens, now, granted.full_at
        if granted.tokens < wanted or not available(self.full_at, self.limit, now):
            self.refused_at = now
            self.refused_until = max(due_at(self.full_at, self.limit, 1), Instant(now + _REFUSE_US))

    def wanted(self, waiting: int, now: Instant) -> int:
        """How much to lease: for those who wait, and for the time to come."""
        ahead = next_token_lease(self.limit, self.leased - self.tokens, now - self.leased_at)
        return min(max(ahead, waiting - self.tokens), self.limit.count)

    def give_up(self) -> int:
        """Hand over the tokens that were not used."""
        unused, self.tokens = self.tokens, 0
        self.leased -= unused
        return unused

    def _allowance(self, allowed: bool, retry_after_s: int, now: Instant) -> Allowance:
        limit = self.limit
        remaining = min(limit.count, self.tokens + available(self.full_at, limit, now))
        reset_s = _whole_s(self.full_at - now)
        return Allowance(allowed, limit.count, limit.window_s, remaining, reset_s, retry_after_s)


_Waiting: TypeAlias = "tuple[int, asyncio.Future[Allowance]]"


@dataclass
class _Asked:
    """The callers who wait for one bucket, each with what its request costs."""

    limit: Limit
    waiting: list[_Waiting] = field(default_factory=list)
    wanted: int = 0


class Limiter:
    """One a process. `close` gives back what is leased."""

    def __init__(self, database: Database, clock: Clock, keys_max: int = KEYS_MAX) -> None:
        self._database = database
        self._clock = clock
        self._half = max(1, keys_max // 2)
        # Two generations of buckets: when the recent ones are many, they become the older, and those are dropped.
        self._recent: dict[str, _Kept] = {}
        self._older: dict[str, _Kept] = {}
        self._in_hand: dict[str, _Kept] = {}
        self._asks: dict[str, _Asked] = {}
        self._leasing: asyncio.Task[None] | None = None
        self._connection: Connection | None = None

    @property
    def keys(self) -> int:
        """How many buckets are kept."""
        return len(self._recent) + len(self._older)

    def take(self, key: str, limit: Limit, now: Instant, cost: int = 1) -> Allowance | None:
        """The answer from memory; nothing, if only the database can tell."""
        kept = self._kept(limit.key(key))
        return None if kept is None else kept.take(cost, now)

    async def allowed(self, key: str, limit: Limit, cost: int = 1) -> Allowance:
        """The answer, from memory or from the database."""
        assert 0 < cost <= limit.count, f"{limit.name}: {cost} at once can never be had"
        allowance = self.take(key, limit, self._clock.now(), cost)
        return await self._ask(limit.key(key), limit, cost) if allowance is None else allowance

    async def give_back(self, now: Instant) -> int:
        """Give back leases that were not used up within a second. Answers of how many buckets."""
        return await self._give_back(lambda kept: not 0 <= now - kept.leased_at < _UNUSED_US)

    async def close(self) -> None:
        """Give back everything. What cannot be given back comes back by itself, as time refills the buckets."""
        try:
            async with asyncio.timeout(_CLOSE_S):
                if self._leasing is not None:
                    await self._leasing
                await self._give_back(lambda _: True)
                if self._connection is not None:
                    with faults():
                        await self._connection.close()
        except (DatabaseFault, TimeoutError) as error:
            log.warning("leases not given back", cause=str(error))
            self._disconnect()

    def _kept(self, name: str) -> _Kept | None:
        kept = self._recent.get(name)
        if kept is None:
            kept = self._older.pop(name, None) or self._in_hand.get(name)
            if kept is not None:
                self._keep(name, kept)
        return kept

    def _keep(self, name: str, kept: _Kept) -> None:
        if len(self._recent) >= self._half:
            self._older, self._recent = self._recent, {}
        self._recent[name] = kept

    def _ask(self, name: str, limit: Limit, cost: int) -> "asyncio.Future[Allowance]":
        answer: asyncio.Future[Allowance] = asyncio.get_running_loop().create_future()
        self._asks.setdefault(name, _Asked(limit)).waiting.append((cost, answer))
        if self._leasing is None or self._leasing.done():
            self._leasing = asyncio.create_task(self._lease_all())
        return answer

    async def _lease_all(self) -> None:
        """One statement at a time; while it runs, the asks for the next one gather."""
        batch: dict[str, _Asked] = {}
        try:
            while self._asks:
                batch = {name: self._asks.pop(name) for name in list(islice(self._asks, BATCH_MAX))}
                await self._lease(batch)
        except BaseException as error:  # a bug, or we are being stopped: nobody is left waiting
            stopping = isinstance(error, asyncio.CancelledError)
            for asked in (*batch.values(), *self._asks.values()):
                _fail(asked, DatabaseFault(_STOPPING) if stopping else error)
            self._asks = {}
            raise

    async def _lease(self, batch: dict[str, _Asked]) -> None:
        now = self._clock.now()
        asks = [
            BucketTokens(name, asked.limit, asked.wanted)
            for name, asked in batch.items()
            if self._still_asks(name, asked, now)
        ]
        if not asks:
            return
        try:
            with faults():
                async with asyncio.timeout(_LEASE_S):
                    granted = await quotas.lease(await self._connected(), asks, now)
        except DatabaseFault as fault:
            self._disconnect()
            for asked in batch.values():
                _fail(asked, fault)
            return
        for one in granted:
            self._grant(one, batch[one.key])

    def _still_asks(self, name: str, asked: _Asked, now: Instant) -> bool:
        """Whether the answer has to come from the database: a lease that came meanwhile may do."""
        kept = self._kept(name) or _Kept(asked.limit, now)
        asked.waiting = _serve(kept, asked.waiting, now)
        asked.wanted = kept.wanted(sum(cost for cost, _ in asked.waiting), now)
        return bool(asked.waiting)

    def _grant(self, granted: TokenLease, asked: _Asked) -> None:
        now = self._clock.now()
        kept = self._kept(granted.key)
        if kept is None:
            kept = _Kept(asked.limit, granted.full_at)
            self._keep(granted.key, kept)
        kept.add(granted, asked.wanted, now)
        if left := _serve(kept, asked.waiting, now):  # others took what they had counted on: they ask again, first
            self._asks.setdefault(granted.key, _Asked(asked.limit)).waiting[:0] = left
        if kept.tokens:
            self._in_hand[granted.key] = kept

    async def _give_back(self, is_over: Callable[[_Kept], bool]) -> int:
        over = {name: kept for name, kept in self._in_hand.items() if not kept.tokens or is_over(kept)}
        for name in over:
            del self._in_hand[name]
        unused = [BucketTokens(name, kept.limit, kept.give_up()) for name, kept in over.items() if kept.tokens]
        for start in range(0, len(unused), BATCH_MAX):
            async with self._database.connection() as connection:
                await quotas.give_back(connection, unused[start : start + BATCH_MAX])
        return len(unused)

    async def _connected(self) -> Connection:
        """A connection of its own: a caller shall not wait for requests and loops that keep all others busy."""
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._database.own_connection()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


def _serve(kept: _Kept, waiting: list[_Waiting], now: Instant) -> list[_Waiting]:
    """Answer those who can be answered, in the order they came. Answers the others; who has gone is neither."""
    left = []
    for cost, answer in waiting:
        if answer.done():
            continue
        allowance = kept.take(cost, now)
        if allowance is None:
            left.append((cost, answer))
        else:
            answer.set_result(allowance)
    return left


def _fail(asked: _Asked, error: BaseException) -> None:
    for _, answer in asked.waiting:
        if not answer.done():
            answer.set_exception(error)


def _whole_s(us: int) -> int:
    """Rounded up, so that whoever waits so long has waited long enough."""
    return -(-us // SECOND) if us > 0 else 0
