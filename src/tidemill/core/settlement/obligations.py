"""Money owed: who owes whom how much, for which cause, and out of which hold. It knows nothing of jobs.

A hold reserves what may become owed. Obligations capture it in parts, to any number of receivers; the rest is released,
or goes back when the hold expires. A hold cannot be topped up: who needs more, or needs it for longer, replaces it by
the next one before it ends, and either both happen or neither.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.ledger.accounts import LedgerAccount
from tidemill.core.ledger.entries import Entry, Hold, Release, Transfer


class Obligation(NamedTuple):
    """An amount that is owed now. Without a hold it comes out of the payer's balance, as far as that goes."""

    id: UUID
    payer: LedgerAccount
    payee: LedgerAccount
    amount_uc: int
    kind: str
    cause: str
    hold_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class PlannedHold:
    """An amount that may become owed until an instant. It may take the place of an earlier hold for the same cause."""

    id: UUID
    payer: LedgerAccount
    amount_uc: int
    until: Instant
    cause: str
    replaces: UUID | None = None


def reserve(planned: PlannedHold, ids: Ids, now: Instant) -> list[Entry]:
    """The entries that hold an amount. What is left of a replaced hold is free for the new one, and only for it."""
    payer = planned.payer
    hold = Hold(planned.id, payer.id, planned.amount_uc, payer.currency, planned.until, planned.cause)
    if planned.replaces is None:
        return [hold]
    return [Release(ids.new(now), planned.replaces, "replaced by the next hold", linked=True), hold]


def settle(
    obligations: Sequence[Obligation], ended_hold_ids: Iterable[UUID], why_ended: str, ids: Ids, now: Instant
) -> list[Entry]:
    """The entries that pay what is owed, and then give back what is left of holds that are wanted no more."""
    paid: list[Entry] = [
        Transfer(
            owed.id,
            owed.payer.id,
            owed.payee.id,
            owed.amount_uc,
            owed.payer.currency,
            owed.kind,
            owed.cause,
            owed.hold_id,
        )
        for owed in obligations
    ]
    return [*paid, *(Release(ids.new(now), hold_id, why_ended) for hold_id in ended_hold_ids)]
