"""Reserves and pays what is owed, in the ledger, each in one batch. Core says which entries that takes.

What is owed out of a hold is paid in full or not at all, and then nothing of the batch is: the caller's transaction
must not commit. What is owed without a hold is paid as far as the payer's balance goes.
"""

from collections.abc import Sequence
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.faults import Fault
from tidemill.core.ids import Ids
from tidemill.core.ledger import PostingRefusal, Transfer
from tidemill.core.settlement import obligations
from tidemill.core.settlement.obligations import Obligation, PlannedHold
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection


class Unpayable(Fault):
    """The ledger refuses to pay out of some holds: an account is frozen, or a hold is over."""

    code = "unpayable"

    def __init__(self, refused: Sequence[tuple[Transfer, PostingRefusal]]) -> None:
        entry, refusal = refused[0]
        super().__init__(f"{entry.cause} cannot be paid. {refusal.sentence}")


async def reserve(transaction: Connection, planned: PlannedHold, ids: Ids, now: Instant) -> PostingRefusal | None:
    """Hold an amount, in place of an earlier hold if it names one; or refuse, and change nothing."""
    outcomes = await ledger.post(transaction, obligations.reserve(planned, ids, now), ids, now)
    refusals = [outcome.refusal for outcome in outcomes if outcome.refusal is not None]
    return next((refusal for refusal in refusals if refusal is not PostingRefusal.LINK_BROKEN), None)


async def settle(
    transaction: Connection,
    owed: Sequence[Obligation],
    ended_hold_ids: Sequence[UUID],
    why_ended: str,
    ids: Ids,
    now: Instant,
) -> None:
    """Pay what is owed, and release what is left of holds that ended. Locks the ledger, so callers do this last."""
    entries = obligations.settle(owed, ended_hold_ids, why_ended, ids, now)
    if not entries:
        return
    if owed:
        payees = {obligation.payee.id: obligation.payee for obligation in owed}
        await ledger.open_accounts(transaction, [payees[account_id] for account_id in sorted(payees)], now)
    outcomes = await ledger.post(transaction, entries, ids, now)
    refused = [
        (entry, outcome.refusal)
        for entry, outcome in zip(entries, outcomes, strict=True)
        if outcome.refusal is not None and isinstance(entry, Transfer) and entry.hold_id is not None
    ]
    if refused:
        raise Unpayable(refused)
