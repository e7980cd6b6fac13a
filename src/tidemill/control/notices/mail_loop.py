"""Sends letters, tries them again, gives them up, puts them aside, and forgets them.

A letter is never lost: it waits until a server has taken it, until it was refused for good, or until it is too old to
be of use; operators learn of the last two. While a server fails, letters wait and the pool stays ready.
"""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import structlog

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.notices.smtp import SmtpConnection, SmtpReply, compose, connected
from tidemill.control.parts import Parts
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import MailFault, SecretsFault
from tidemill.core.notices.mail import FailureCause, Masthead, RetryRules, is_final, is_too_late, next_try
from tidemill.core.pace import Backoff
from tidemill.core.settings import Settings
from tidemill.core.settings.process_addresses import public_url
from tidemill.store.notices import mail
from tidemill.store.notices.mail import FailedLetter, LetterBatch, PostponedLetter, StoredLetter

log = structlog.get_logger()

_BATCH = 20
_ASIDE_AFTER = 10 * SECOND
"""How long a process without a mail server leaves letters to others: they may have one."""


def masthead_of(settings: Settings) -> Masthead:
    return Masthead(settings.mail.pool_name, public_url(settings))


class MailLoop(Loop):
    """Sends waiting letters, over one connection for each batch. Any number of copies may run."""

    name = "mail"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)
        self._settings = parts.settings.mail
        self._masthead = masthead_of(parts.settings)
        waits = Backoff(self._settings.retry_first_s, self._settings.retry_most_s)
        self._rules = RetryRules(waits, int(self._settings.give_up_s * SECOND))
        # One deadline to connect, two in which letters are begun, one for the last letter.
        self._deadline_us = int(self._settings.smtp_deadline_s * SECOND)
        self._lease_us = 5 * self._deadline_us
        loops = parts.settings.loops
        self._rests = Backoff(loops.backoff_first_s, loops.backoff_most_s)
        self._troubles = 0
        self._resting_until = Instant(0)

    async def tick(self, now: Instant) -> Tick:
        if self._settings.smtp_host is None:
            return await self._put_aside(now)
        if now < self._resting_until <= now + int(self._rests.most_s * SECOND):
            return Tick()
        batch = await mail.lease(
            self.parts.loop_database, self.parts.ids, lease_us=self._lease_us, limit=_BATCH, now=now
        )
        if not batch.letters:
            return Tick()
        try:
            async with connected(self._settings) as post:
                sent = await self._send_all(post, batch, now)
        except MailFault as trouble:
            await self._wait_for_server(batch, str(trouble), now)
            return Tick(seen=len(batch.letters))
        except asyncio.CancelledError:  # we are stopped: other processes need not wait until our lease runs out
            await self._give_back(batch, "", now)
            raise
        return Tick(seen=len(batch.letters), applied=sent, more=len(batch.letters) == _BATCH)

    async def _put_aside(self, now: Instant) -> Tick:
        batch_max = self.parts.settings.loops.batch_max
        aside = await mail.put_aside(self.parts.loop_database, Instant(now - _ASIDE_AFTER), batch_max, now)
        return Tick(seen=aside, applied=aside, more=aside == batch_max)

    async def _send_all(self, post: SmtpConnection, batch: LetterBatch, now: Instant) -> int:
        """Send letters. Answers how many were sent. Those that time did not allow are given back unchanged."""
        sent = 0
        for stored in batch.letters:
            _leave_if_cancelled()
            if self.parts.clock.now() - now > 3 * self._deadline_us:
                await self._give_back(batch, stored.last_error, now)
                break
            sent += await self._send(post, batch.token, stored, now)
        return sent

    async def _send(self, post: SmtpConnection, token: UUID, stored: StoredLetter, now: Instant) -> bool:
        """One letter: sent, refused for good, or to be tried again."""
        try:
            letter = await mail.opened(self.parts.keyring, stored)
        except (MailFault, SecretsFault) as fault:
            log.warning("letter unreadable", letter=str(stored.id), cause=str(fault))
            await self._try_later(token, stored, str(fault), now)
            return False
        assert self._settings.sender, "the settings were checked"
        message = compose(letter, stored.id, self._masthead, self._settings.sender, now)
        return await self._apply(token, stored, await post.send(message, letter.recipient), now)

    async def _apply(self, token: UUID, stored: StoredLetter, reply: SmtpReply, now: Instant) -> bool:
        if reply.code:
            self._troubles = 0
        if reply.accepted:
            await mail.mark_sent(self.parts.loop_database, token, stored.id, now)
            self.parts.metrics.mail_letters.labels("sent").inc()
            return True
        log.warning("letter not taken", letter=str(stored.id), code=reply.code, tries=stored.tries + 1)
        if is_final(reply.code, reply.text):
            await self._give_up(token, [_failed_letter(stored, 1, str(reply), FailureCause.REJECTED)], now)
        else:
            await self._try_later(token, stored, str(reply), now)
        return False

    async def _try_later(self, token: UUID, stored: StoredLetter, error: str, now: Instant) -> None:
        if is_too_late(self._rules, tried_since=stored.tried_since, now=now):
            await self._give_up(token, [_failed_letter(stored, 1, error, FailureCause.TOO_LATE)], now)
            return
        tries = stored.tries + 1
        next_at = next_try(self._rules, tried_since=stored.tried_since, tries=tries, now=now)
        await mail.postpone(self.parts.loop_database, token, [PostponedLetter(stored.id, tries, next_at, error)])
        self.parts.metrics.mail_letters.labels("postponed").inc()

    async def _wait_for_server(self, batch: LetterBatch, error: str, now: Instant) -> None:
        """The cause is the server, not a letter: give all back unchanged, and rest before we try the server again."""
        self._troubles += 1
        rest_s = self._rests.after(self._troubles, 0.0)
        self._resting_until = Instant(self.parts.clock.now() + int(rest_s * SECOND))
        log.warning("mail waits for its server", cause=error, rest_s=rest_s)
        await self._give_back(batch, error, now)

    async def _give_back(self, batch: LetterBatch, error: str, now: Instant) -> None:
        """Give back untried letters that are still leased to us; give up those that became too old meanwhile."""
        late = [letter for letter in batch.letters if is_too_late(self._rules, tried_since=letter.tried_since, now=now)]
        rest = [letter for letter in batch.letters if letter not in late]
        await mail.postpone(
            self.parts.loop_database,
            batch.token,
            [PostponedLetter(letter.id, letter.tries, letter.next_at, error) for letter in rest],
        )
        if late:
            await self._give_up(
                batch.token, [_failed_letter(letter, 0, error, FailureCause.TOO_LATE) for letter in late], now
            )

    async def _give_up(self, token: UUID, letters: Sequence[FailedLetter], now: Instant) -> None:
        failed = await mail.give_up(self.parts.loop_database, token, letters, self.parts.ids, now)
        self.parts.metrics.mail_letters.labels("failed").inc(failed)


class MailForgettingLoop(Loop):
    """Empties letters that nobody read in time, forgets old ones, and counts those that wait."""

    name = "mail_forgetting"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=15.0)
        self._keep_us = int(parts.settings.mail.keep_s * SECOND)
        self._outbox_keep_us = int(parts.settings.mail.outbox_keep_s * SECOND)

    async def tick(self, now: Instant) -> Tick:
        batch_max = self.parts.settings.loops.batch_max
        database = self.parts.loop_database
        emptied = await mail.empty(database, Instant(now - self._outbox_keep_us), batch_max)
        forgotten = await mail.forget(database, Instant(now - self._keep_us), batch_max)
        self.parts.metrics.mail_waiting.set(await mail.waiting(database))
        done = emptied + forgotten
        return Tick(seen=done, applied=done, more=batch_max in (emptied, forgotten))


def _failed_letter(stored: StoredLetter, tried: int, error: str, cause: FailureCause) -> FailedLetter:
    return FailedLetter(stored.id, stored.kind, stored.tries + tried, error, cause)


def _leave_if_cancelled() -> None:
    """The `wait_for` of Python 3.11 loses a cancellation that comes together with the answer it waits for."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError
