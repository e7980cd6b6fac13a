"""Periodic work for accounts: renew signing keys, record when API keys were used, forget what is over."""

from tidemill.control.accounts.access_tokens import AccessTokens
from tidemill.control.accounts.callers import Callers
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.store.accounts import api_keys, logins, mailed_tokens, sessions

_KEEP_OVER_US = 30 * DAY
"""How long an ended session is kept, so that it differs from one that never existed."""


class SigningKeyLoop(Loop):
    """Replaces an old key that signs access tokens, and loads keys that other processes made."""

    name = "signing_keys"

    def __init__(self, parts: Parts, tokens: AccessTokens) -> None:
        super().__init__(parts, every_s=60.0)
        self._tokens = tokens

    async def tick(self, now: Instant) -> Tick:
        await self._tokens.renew(now)
        return Tick(seen=1)


class KeyUseLoop(Loop):
    """Records when API keys were last used, many at once."""

    name = "key_use"

    def __init__(self, parts: Parts, callers: Callers) -> None:
        super().__init__(parts, every_s=5.0)
        self._callers = callers

    async def tick(self, now: Instant) -> Tick:
        used, self._callers.keys_used = self._callers.keys_used, {}
        if used:
            async with self.parts.loop_database.connection() as connection:
                await api_keys.tell_used(connection, used)
        return Tick(seen=len(used), applied=len(used))


class AccountForgettingLoop(Loop):
    """Forgets sessions that ended long ago, mailed tokens that have expired, and old tries to log in."""

    name = "account_forgetting"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=60.0)
        self._keep_history_us = int(parts.settings.login.history_keep_s * SECOND)
        self._keep_nobodys_us = int(parts.settings.login.lock_s * SECOND) + DAY

    async def tick(self, now: Instant) -> Tick:
        batch_max = self.parts.settings.loops.batch_max
        async with self.parts.loop_database.connection() as connection:
            over = await sessions.forget(connection, Instant(now - _KEEP_OVER_US), batch_max)
            letters = await mailed_tokens.forget(connection, now, batch_max)
            tries = await logins.forget(connection, Instant(now - self._keep_history_us), batch_max)
            nobodys = await logins.forget_nobodys(connection, Instant(now - self._keep_nobodys_us), batch_max)
        counts = (over, letters, tries, nobodys)
        return Tick(seen=sum(counts), applied=sum(counts), more=batch_max in counts)
