"""Whether a caller may go on: answered from memory as far as possible, and yet exact across processes.

A process leases tokens of a caller's bucket from the database and spends them without asking again. A caller that has
used up a limit is refused from memory until the next token is due. So a caller costs the database about two statements
a second, however fast it calls, and a refused flood costs nothing. Leases not used within a second are given back.
Memory is bounded, however many callers there are, and may be dropped at any moment.

While the database cannot be reached, only callers with leased tokens are let through; others get the fault.
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
"""A refusal holds at least this long, so that the database is not asked for every token of a fast bucket."""

_LEASE_S = 5.0
"""How long the database may take, so that a silent connection does not hold up everybody for ever."""

_CLOSE_S = 3.0
_NEVER = Instant(0)
_STOPPING = "The process is stopping: try again with another one."


class Allowance(NamedTuple):
    """Whether a caller may go on, and the state of its limit. A tuple, because every request makes one."""

    allowed: bool
    limit: int
    window_s: int
    remaining: int
    reset_s: int
    retry_after_s: int


def headers(allowance: Allowance) -> list[tuple[bytes, bytes]]:
    """The headers of every answer, allowed or refused."""
    fields = [
        (b"ratelimit-limit", b"%d" % allowance.limit),
        (b"ratelimit-remaining", b"%d" % allowance.remaining),
        (b"ratelimit-reset", b"%d" % allowance.reset_s),
        (b"ratelimit-policy", b"%d;w=%d" % (allowance.limit, allowance.window_s)),
    ]
    if not allowance.allowed:
        fields.append((b"retry-after", b"%d" % allowance.retry_after_s))
    return fields


@dataclass(slots=True)
class _Bucket:
    """What this process knows of one bucket: the tokens it has leased, and the bucket's state when it last looked."""

    limit: Limit
    full_at: Instant
    tokens: int = 0
    leased: int = 0
    leased_at: Instant = _NEVER
    refused_at: Instant = _NEVER
    refused_until: Instant = _NEVER

    def take(self, cost: int, now: Instant) -> Allowance | None:
        """The answer; None if only the database knows it."""
        if self.tokens >= cost:
            self.tokens -= cost
            return self._allowance(True, 0, now)
        if self.refused_at <= now < self.refused_until:
            due = max(due_at(self.full_at, self.limit, cost - self.tokens), self.refused_until)
            return self._allowance(False, _whole_s(due - now), now)
        return None

    def add(self, lease: TokenLease, wanted: int, now: Instant) -> None:
        """Add the tokens of a lease. If it emptied the bucket, refuse from memory for a while."""
        self.tokens += lease.tokens
        self.leased, self.leased_at, self.full_at = self.tokens, now, lease.full_at
        if lease.tokens < wanted or not available(self.full_at, self.limit, now):
            self.refused_at = now
            self.refused_until = max(due_at(self.full_at, self.limit, 1), Instant(now + _REFUSE_US))

    def lease_size(self, waiting: int, now: Instant) -> int:
        """How many tokens to lease: for the waiting callers, and for the time to come."""
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


_WaitingCaller: TypeAlias = "tuple[int, asyncio.Future[Allowance]]"


@dataclass
class _BucketQueue:
    """The callers that wait for one bucket, each with the cost of its request."""

    limit: Limit
    waiting: list[_WaitingCaller] = field(default_factory=list)
    wanted: int = 0


class Limiter:
    """One a process. `close` gives back what is leased."""

    def __init__(self, database: Database, clock: Clock, keys_max: int = KEYS_MAX) -> None:
        self._database = database
        self._clock = clock
        self._half = max(1, keys_max // 2)
        # Two generations of buckets: when the recent ones are too many, they replace the older ones, which are dropped.
        self._recent: dict[str, _Bucket] = {}
        self._older: dict[str, _Bucket] = {}
        self._in_hand: dict[str, _Bucket] = {}
        self._asks: dict[str, _BucketQueue] = {}
        self._leasing: asyncio.Task[None] | None = None
        self._connection: Connection | None = None

    @property
    def keys(self) -> int:
        """How many buckets are kept."""
        return len(self._recent) + len(self._older)

    def take(self, key: str, limit: Limit, now: Instant, cost: int = 1) -> Allowance | None:
        """The answer from memory; None if only the database knows it."""
        bucket = self._bucket(limit.key(key))
        return None if bucket is None else bucket.take(cost, now)

    async def allowed(self, key: str, limit: Limit, cost: int = 1) -> Allowance:
        """The answer, from memory or from the database."""
        assert 0 < cost <= limit.count, f"{limit.name}: {cost} at once can never be had"
        allowance = self.take(key, limit, self._clock.now(), cost)
        return await self._ask(limit.key(key), limit, cost) if allowance is None else allowance

    async def give_back(self, now: Instant) -> int:
        """Give back leases that were not used up within a second. Answers for how many buckets."""
        return await self._give_back(lambda bucket: not 0 <= now - bucket.leased_at < _UNUSED_US)

    async def close(self) -> None:
        """Give back all leases. If that fails, time refills the buckets anyway."""
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

    def _bucket(self, name: str) -> _Bucket | None:
        bucket = self._recent.get(name)
        if bucket is None:
            bucket = self._older.pop(name, None) or self._in_hand.get(name)
            if bucket is not None:
                self._keep(name, bucket)
        return bucket

    def _keep(self, name: str, bucket: _Bucket) -> None:
        if len(self._recent) >= self._half:
            self._older, self._recent = self._recent, {}
        self._recent[name] = bucket

    def _ask(self, name: str, limit: Limit, cost: int) -> "asyncio.Future[Allowance]":
        answer: asyncio.Future[Allowance] = asyncio.get_running_loop().create_future()
        self._asks.setdefault(name, _BucketQueue(limit)).waiting.append((cost, answer))
        if self._leasing is None or self._leasing.done():
            self._leasing = asyncio.create_task(self._lease_all())
        return answer

    async def _lease_all(self) -> None:
        """Lease by one statement at a time; while it runs, callers gather for the next one."""
        batch: dict[str, _BucketQueue] = {}
        try:
            while self._asks:
                batch = {name: self._asks.pop(name) for name in list(islice(self._asks, BATCH_MAX))}
                await self._lease(batch)
        except BaseException as error:  # a bug, or we are being stopped: leave no caller waiting
            stopping = isinstance(error, asyncio.CancelledError)
            for queue in (*batch.values(), *self._asks.values()):
                _fail(queue, DatabaseFault(_STOPPING) if stopping else error)
            self._asks = {}
            raise

    async def _lease(self, batch: dict[str, _BucketQueue]) -> None:
        now = self._clock.now()
        asks = [
            BucketTokens(name, queue.limit, queue.wanted)
            for name, queue in batch.items()
            if self._needs_lease(name, queue, now)
        ]
        if not asks:
            return
        try:
            with faults():
                async with asyncio.timeout(_LEASE_S):
                    leases = await quotas.lease(await self._connected(), asks, now)
        except DatabaseFault as fault:
            self._disconnect()
            for queue in batch.values():
                _fail(queue, fault)
            return
        for lease in leases:
            self._grant(lease, batch[lease.key])

    def _needs_lease(self, name: str, queue: _BucketQueue, now: Instant) -> bool:
        """Whether callers still wait after a lease that came meanwhile was used."""
        bucket = self._bucket(name) or _Bucket(queue.limit, now)
        queue.waiting = _serve(bucket, queue.waiting, now)
        queue.wanted = bucket.lease_size(sum(cost for cost, _ in queue.waiting), now)
        return bool(queue.waiting)

    def _grant(self, lease: TokenLease, queue: _BucketQueue) -> None:
        now = self._clock.now()
        bucket = self._bucket(lease.key)
        if bucket is None:
            bucket = _Bucket(queue.limit, lease.full_at)
            self._keep(lease.key, bucket)
        bucket.add(lease, queue.wanted, now)
        if unanswered := _serve(bucket, queue.waiting, now):  # other callers took their tokens: they ask again, first
            self._asks.setdefault(lease.key, _BucketQueue(queue.limit)).waiting[:0] = unanswered
        if bucket.tokens:
            self._in_hand[lease.key] = bucket

    async def _give_back(self, is_over: Callable[[_Bucket], bool]) -> int:
        over = {name: bucket for name, bucket in self._in_hand.items() if not bucket.tokens or is_over(bucket)}
        for name in over:
            del self._in_hand[name]
        unused = [BucketTokens(name, bucket.limit, bucket.give_up()) for name, bucket in over.items() if bucket.tokens]
        for start in range(0, len(unused), BATCH_MAX):
            async with self._database.connection() as connection:
                await quotas.give_back(connection, unused[start : start + BATCH_MAX])
        return len(unused)

    async def _connected(self) -> Connection:
        """A connection of its own: a limit must not wait for routes and loops that keep all others busy."""
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._database.own_connection()
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


def _serve(bucket: _Bucket, waiting: list[_WaitingCaller], now: Instant) -> list[_WaitingCaller]:
    """Give callers that wait their answer, in the order they came. Answers those left, without those that have gone."""
    unanswered = []
    for cost, answer in waiting:
        if answer.done():
            continue
        allowance = bucket.take(cost, now)
        if allowance is None:
            unanswered.append((cost, answer))
        else:
            answer.set_result(allowance)
    return unanswered


def _fail(queue: _BucketQueue, error: BaseException) -> None:
    for _, answer in queue.waiting:
        if not answer.done():
            answer.set_exception(error)


def _whole_s(us: int) -> int:
    """Whole seconds, rounded up, so that the wait is long enough."""
    return -(-us // SECOND) if us > 0 else 0
