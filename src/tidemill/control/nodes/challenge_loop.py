"""Hardware challenges: begins rounds that are due, draws positions once all nodes have committed, judges answers.

Any number of copies may run: an owner has one round at a time, positions are drawn once, conclusions are leased.
Judging one fast GPU computes for up to a second, so a thread does it, one node at a time.
"""

import asyncio
from collections.abc import Callable
from random import Random
from uuid import UUID

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.nodes.challenge.conclusions import RANDOM_BYTES, conclude, next_due
from tidemill.store.nodes import challenge_verdicts, challenges

_KEPT_US = 30 * DAY
_LEASED_AT_ONCE = 4
_OWNERS_AT_ONCE = 20
_ROUNDS_AT_ONCE = 20


class ChallengeLoop(Loop):
    """Makes nodes prove their claims. `random` draws seeds and positions, `dice` the time of the next challenge."""

    name = "challenges"

    def __init__(self, parts: Parts, random: Callable[[int], bytes], dice: Random) -> None:
        super().__init__(parts, every_s=2.0)
        self._rules = parts.settings.challenge
        self._random = random
        self._dice = dice
        self._lease_us = int(parts.settings.loops.lease_s * SECOND)
        self._last_owner: UUID | None = None

    async def tick(self, now: Instant) -> Tick:
        begun = await self._begin_rounds(now)
        drawn = await self._draw(now)
        concluded = await self._conclude(now)
        await challenge_verdicts.forget(
            self.parts.loop_database, Instant(now - _KEPT_US), self.parts.settings.loops.batch_max
        )
        seen = begun + drawn + concluded
        return Tick(seen=seen, applied=seen, more=concluded == _LEASED_AT_ONCE)

    async def _begin_rounds(self, now: Instant) -> int:
        async with self.parts.loop_database.connection() as connection:
            owners = await challenges.due_owners(connection, self._rules, self._last_owner, _OWNERS_AT_ONCE, now)
        self._last_owner = owners[-1] if len(owners) == _OWNERS_AT_ONCE else None
        begun = 0
        for account_id in owners:
            async with self.parts.loop_database.transaction() as transaction:
                begun += await challenges.begin_round(
                    transaction, account_id, self._rules, self._random, self.parts.ids, now
                )
        return begun

    async def _draw(self, now: Instant) -> int:
        async with self.parts.loop_database.connection() as connection:
            rounds = await challenges.undrawn(connection, _ROUNDS_AT_ONCE, now)
        drawn = 0
        for round_id in rounds:
            async with self.parts.loop_database.transaction() as transaction:
                drawn += await challenges.draw(transaction, round_id, self._rules, self._random, now)
        return drawn

    async def _conclude(self, now: Instant) -> int:
        leased = await challenge_verdicts.lease(
            self.parts.loop_database, self.parts.ids, lease_us=self._lease_us, limit=_LEASED_AT_ONCE, now=now
        )
        return sum([await self._conclude_one(leased.token, challenge_id, now) for challenge_id in leased.ids])

    async def _conclude_one(self, token: UUID, challenge_id: UUID, now: Instant) -> int:
        challenge = await challenge_verdicts.challenge_in_hand(self.parts.loop_database, token, challenge_id, now)
        if challenge is None:
            return 0
        nvlink = self.parts.settings.nvlink
        conclusion = await asyncio.to_thread(
            conclude, challenge.evidence, self._rules, nvlink, self._random(RANDOM_BYTES)
        )
        async with self.parts.loop_database.transaction() as transaction:
            return await challenge_verdicts.apply(
                transaction,
                challenge,
                conclusion,
                enough_stake=True,  # until stakes are kept
                due_at=next_due(conclusion.state, self._rules, self._dice.random(), now),
                ids=self.parts.ids,
                now=now,
            )
