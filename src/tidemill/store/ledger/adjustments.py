"""What operators do to the books by hand: freeze an account, propose an adjustment, approve or reject one."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from tidemill.core.accounts.operator_word import OperatorWord
from tidemill.core.clock import Instant
from tidemill.core.events.log import AccountFrozen, AdjustmentProposed, AdjustmentSettled
from tidemill.core.ids import Ids
from tidemill.core.ledger import Adjustment, AdjustmentRefusal, AdjustmentState, FreezeRefusal, PostingRefusal
from tidemill.core.ledger.adjustments import propose, settle, too_little
from tidemill.core.money import AmountObjection
from tidemill.core.reasons import ReasonRefusal, checked_reason
from tidemill.core.refusals import Refusal
from tidemill.store.events import events
from tidemill.store.ledger import books, ledger
from tidemill.store.query import Connection, Query

_FREEZE = Query("ledger/ledger/freeze", bool)
_PROPOSE = Query("ledger/ledger/propose")
_SETTLE = Query("ledger/ledger/settle", bool)
_LIST = Query("ledger/ledger/adjustments", Adjustment)


async def set_frozen(
    transaction: Connection, account_id: UUID, *, frozen: bool, reason: str, by: str, ids: Ids, now: Instant
) -> books.Balance | Refusal:
    """Freeze an account or unfreeze it. Nothing moves on a frozen account, except what is given back to it."""
    kept = checked_reason(reason)
    if isinstance(kept, ReasonRefusal):
        return kept
    balances = await books.balances(transaction, ids=[account_id])
    if not balances:
        return PostingRefusal.UNKNOWN_ACCOUNT
    if not await _FREEZE.only(transaction, account_id=account_id, frozen=frozen):
        return FreezeRefusal.ALREADY_FROZEN if frozen else FreezeRefusal.NOT_FROZEN
    await events.append(transaction, [AccountFrozen(account_id, frozen, kept, by)], ids, now)
    return replace(balances[0], frozen=frozen)


async def propose_adjustment(
    transaction: Connection, wanted: Adjustment, word: OperatorWord, ids: Ids
) -> Adjustment | Refusal:
    """Store an adjustment until a second operator has decided."""
    proposed = propose(wanted, word)
    if not isinstance(proposed, Adjustment):
        return proposed
    sides = await books.balances(transaction, ids=[proposed.debit_id, proposed.credit_id])
    if len(sides) < 2:
        return PostingRefusal.UNKNOWN_ACCOUNT
    if {side.currency for side in sides} != {proposed.currency}:
        return PostingRefusal.CURRENCY_MISMATCH
    await _PROPOSE.run(
        transaction,
        id=proposed.id,
        debit_id=proposed.debit_id,
        credit_id=proposed.credit_id,
        amount_uc=proposed.amount_uc,
        currency=proposed.currency,
        reason=proposed.reason,
        proposed_by=proposed.proposed_by,
        proposed_at=proposed.proposed_at,
    )
    event = AdjustmentProposed(
        proposed.id, proposed.amount_uc, proposed.currency, proposed.reason, proposed.proposed_by
    )
    await events.append(transaction, [event], ids, proposed.proposed_at)
    return proposed


async def settle_adjustment(
    transaction: Connection, adjustment_id: UUID, *, approve: bool, word: OperatorWord, ids: Ids, now: Instant
) -> Adjustment | Refusal | AmountObjection:
    """Approve an adjustment and post it, or reject it. If it is refused, the caller's transaction must not commit."""
    proposed = await _LIST.row(transaction, id=adjustment_id, state=None, before=None, limit=1)
    settled = settle(proposed, approve=approve, word=word, now=now)
    if isinstance(settled, Refusal):
        return settled
    is_settled = await _SETTLE.only(
        transaction,
        id=adjustment_id,
        state=settled.state.value,
        decided_by=word.by,
        operator_before=Instant(now - word.delay_us),
        decided_at=now,
    )
    if not is_settled:
        return AdjustmentRefusal.ALREADY_DECIDED
    if approve:
        (outcome,) = await ledger.post(transaction, [settled.transfer], ids, now)
        if outcome.refusal is PostingRefusal.INSUFFICIENT_FUNDS:
            return too_little(settled, await ledger.available_by_id(transaction, settled.debit_id))
        if outcome.refusal is not None:
            return outcome.refusal
    await events.append(transaction, [AdjustmentSettled(adjustment_id, settled.state.value, word.by)], ids, now)
    return settled


async def adjustments(
    connection: Connection, *, state: AdjustmentState | None = None, before: UUID | None = None, limit: int = 100
) -> Sequence[Adjustment]:
    """Newest first; page on with the id of the last."""
    wanted = state.value if state else None
    return await _LIST.rows(connection, id=None, state=wanted, before=before, limit=limit)
