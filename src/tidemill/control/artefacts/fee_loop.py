"""Charges accounts for what they keep beyond the free part, once a day; tells those that cannot pay, and deletes later.

Each account is charged in a transaction of its own, under the lock of its sums. What is deleted is decided after the
account had its days of notice, the oldest first, and never what unfinished work or a model needs.
"""

from uuid import UUID

import structlog

from tidemill.control.loops.duty import Duty
from tidemill.control.parts import Parts
from tidemill.core.artefacts import storage_fees as fees
from tidemill.core.artefacts.events import StorageUnpaid
from tidemill.core.artefacts.storage_fees import FeeStanding, FeeStep
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.notices.mail import Letter, LetterKind, LetterValue
from tidemill.store.accounts import accounts
from tidemill.store.artefacts import artefact_usage, artefacts, storage_fees
from tidemill.store.events import events
from tidemill.store.notices import mail
from tidemill.store.query import Connection

log = structlog.get_logger()


class StorageFeeDuty(Duty):
    """Takes the fees of a day."""

    name = "storage_fees"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, period_s=600.0)
        self._rules = parts.settings.artefacts
        self._batch_max = parts.settings.loops.batch_max

    async def perform(self, now: Instant) -> int:
        async with self.parts.loop_database.connection() as connection:
            due = await storage_fees.due(connection, self._rules.free_bytes, Instant(now - DAY), self._batch_max)
        for account_id in due:
            if await self._charge(account_id, now) is FeeStep.EXPIRE:
                await self._expire(account_id, now)
        return len(due)

    async def _charge(self, account_id: UUID, now: Instant) -> FeeStep:
        async with self.parts.loop_database.transaction() as transaction:
            await artefact_usage.room(transaction, account_id)
            before = await storage_fees.standing(transaction, account_id)
            kept_bytes = await storage_fees.kept_bytes(transaction, account_id, self._results_since(now))
            fee = fees.fee(account_id, kept_bytes, self._rules, self.parts.ids.new(now))
            if fee is None or before.charged_at is None:  # the first day is free, too
                await storage_fees.mark(transaction, account_id, FeeStanding(now, None))
                return FeeStep.NOTHING
            refusal = await storage_fees.post(transaction, fee, self.parts.ids, now)
            after, step = fees.after_fee(before, refusal, self._rules, now)
            await storage_fees.mark(transaction, account_id, after)
            if step is FeeStep.WARN:
                await self._warn(transaction, account_id, kept_bytes, now)
            return step

    async def _warn(self, transaction: Connection, account_id: UUID, kept_bytes: int, now: Instant) -> None:
        until = fees.expires_at(now, self._rules)
        unpaid = StorageUnpaid(account_id, kept_bytes, until)
        await events.append(transaction, [unpaid], self.parts.ids, now)
        account = await accounts.get(transaction, account_id)
        if account is not None:
            values: dict[str, LetterValue] = {"kept": f"{kept_bytes:,}", "free": f"{self._rules.free_bytes:,}"}
            values |= {"until": until, "link": "/login"}
            letter = Letter(LetterKind.STORAGE_UNPAID, account.address, account.language, values)
            await mail.write(transaction, self.parts.keyring, letter, self.parts.ids, now)

    async def _expire(self, account_id: UUID, now: Instant) -> None:
        since = self._results_since(now)
        async with self.parts.loop_database.connection() as connection:
            kept_bytes = await storage_fees.kept_bytes(connection, account_id, since)
            candidates = await storage_fees.unneeded(connection, account_id, since, self._batch_max)
        gone = fees.expired(candidates, kept_bytes, self._rules.free_bytes)
        for artefact in gone:
            async with self.parts.loop_database.transaction() as transaction:
                await artefacts.expire(transaction, artefact.id, self.parts.ids, now)
        log.info("artefacts expired", account_id=str(account_id), artefacts=len(gone))

    def _results_since(self, now: Instant) -> Instant:
        return Instant(now - int(self._rules.result_keep_s * SECOND))
