"""Critical settings in the database: accepted values, and changes that wait for time or for an operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidemill.core.accounts.operator_word import OperatorWord
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.refusals import Refusal
from tidemill.core.settings import Settings
from tidemill.core.settings.critical import (
    SettingChange,
    SettingChangeRefusal,
    SettingChangeState,
    SettingDecided,
    SettingsDecision,
    allowed,
    critical_values,
    decide,
    settle,
    with_values,
)
from tidemill.store.clock import read_clock
from tidemill.store.database import connected
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


class _AcceptedRow(NamedTuple):
    name: str
    value: str


_LOCK = Query("operations/critical/lock")
_ACCEPTED = Query("operations/critical/accepted", _AcceptedRow)
_CHANGES = Query("operations/critical/changes", SettingChange)
_ACCEPT = Query("operations/critical/accept")
_FORGET = Query("operations/critical/forget")
_PROPOSE = Query("operations/critical/propose")
_SETTLE = Query("operations/critical/settle", str)


@dataclass(frozen=True)
class SettingsInForce:
    """The settings that a process works with, and the changes of critical ones that are not in force yet."""

    settings: Settings
    waiting: Sequence[SettingChange]


async def in_force(owner_url: str, configured: Settings, by: str, ids: Ids) -> SettingsInForce:
    """Decide which configured settings take effect now. Runs as the owner: the program's role cannot accept a value."""
    async with connected(owner_url) as owner, owner.transaction():
        await _LOCK.run(owner)
        now = await read_clock(owner)
        changes = {change.name: change for change in await waiting(owner)}
        known = allowed(configured, await accepted(owner))
        decision = decide(critical_values(configured), known, changes, by=by, now=now)
        settings = with_values(configured, decision.in_force)
        await _apply(owner, decision, ids, now)
    return SettingsInForce(settings, decision.waiting)


async def accepted(connection: Connection) -> dict[str, str]:
    """The accepted values, even those that this program no longer allows."""
    return dict(await _ACCEPTED.rows(connection))


async def waiting(connection: Connection) -> Sequence[SettingChange]:
    """The changes that have not taken effect, with an operator's decision, if any."""
    return await _CHANGES.rows(connection)


async def settle_change(
    transaction: Connection, name: str, *, approve: bool, reason: str, word: OperatorWord, ids: Ids, now: Instant
) -> SettingChange | Refusal:
    """Approve or reject a change, with an event. It takes effect when a process starts."""
    change = next(
        (waiting_change for waiting_change in await waiting(transaction) if waiting_change.name == name), None
    )
    if change is None:
        return SettingChangeRefusal.NO_SUCH_CHANGE
    settled = settle(change, approve=approve, reason=reason, word=word, now=now)
    if isinstance(settled, Refusal):
        return settled
    decided = await _SETTLE.row(
        transaction,
        name=name,
        value=change.value,
        state=settled.state.value,
        decided_by=settled.decided_by,
        decided_at=settled.decided_at,
        reason=settled.reason,
        vouched_by=settled.vouched_by,
        vouched_before=change.vouched_by,
        approver=word.by if approve else None,
        operator_before=Instant(now - word.delay_us),
    )
    if decided is None:
        return SettingChangeRefusal.CHANGE_DECIDED
    is_vouched = settled.state is SettingChangeState.PENDING
    state = "vouched" if is_vouched else settled.state.value
    event = SettingDecided(name, change.value, state, reason.strip(), word.by)
    await events.append(transaction, [event], ids, now)
    return settled


async def _apply(owner: Connection, decision: SettingsDecision, ids: Ids, now: Instant) -> None:
    await _FORGET.run(owner, names=list(decision.forgotten))
    await _ACCEPT.run(owner, names=list(decision.accepted), values=list(decision.accepted.values()), now=now)
    await _PROPOSE.run(
        owner,
        names=[change.name for change in decision.waiting],
        values=[change.value for change in decision.waiting],
        proposed_by=[change.proposed_by for change in decision.waiting],
        proposed_at=[change.proposed_at for change in decision.waiting],
    )
    if decision.events:
        await events.append(owner, decision.events, ids, now)
