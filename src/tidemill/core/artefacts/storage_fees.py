"""What keeping artefacts costs: a little is free, more needs a balance and is paid by the day. Pure.

What an account may keep follows from its balance, so that nobody reserves space on their word. Results are kept for a
while as part of their job's price; after that they count like any artefact. An account that cannot pay is told, and has
some days before what it keeps beyond the free part is deleted.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.artefacts.retention import StorageRoom, counted_bytes
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.currency import CREDIT
from tidemill.core.ledger.accounts import AccountKind, LedgerAccount
from tidemill.core.ledger.entries import PostingRefusal, Transfer
from tidemill.core.money import AmountObjection, credits_of
from tidemill.core.settings.sections.artefacts import ArtefactsSettings
from tidemill.core.settlement.rewards import customer_account

GIB = 1024**3
MONTH_US = 30 * DAY
COMMISSION = LedgerAccount(AccountKind.COMMISSION)
CANNOT_PAY = frozenset({PostingRefusal.INSUFFICIENT_FUNDS, PostingRefusal.UNKNOWN_ACCOUNT})
"""Refusals of a fee that mean that there is no money. A frozen account cannot pay either, and is not blamed for it."""


class FeeStanding(NamedTuple):
    """When an account was last charged, and since when it has not paid."""

    charged_at: Instant | None
    unpaid_since: Instant | None


class FeeStep(Enum):
    """What follows for an account from a fee that was paid or not."""

    NOTHING = "nothing"
    WARN = "warn"
    EXPIRE = "expire"


class KeptArtefact(NamedTuple):
    """An artefact that may be deleted if nobody pays for it."""

    id: UUID
    size_bytes: int


def allowed_bytes(available_uc: int, rules: ArtefactsSettings) -> int:
    """What an account with this balance may keep, with its uploads under way."""
    funded_uc = rules.price_uc * int(rules.funded_s * SECOND)
    if not funded_uc:
        return rules.quota_bytes
    return min(rules.quota_bytes, rules.free_bytes + available_uc * GIB * MONTH_US // funded_uc)


def needed_uc(kept_bytes: int, rules: ArtefactsSettings) -> int:
    """The balance that an account needs in order to keep so much."""
    return _fee_uc(kept_bytes, int(rules.funded_s * SECOND), rules)


def day_fee_uc(kept_bytes: int, rules: ArtefactsSettings) -> int:
    """What a day of keeping so much costs."""
    return _fee_uc(kept_bytes, DAY, rules)


def balance_missing(
    room: StorageRoom, wanted_bytes: int, available_uc: int, rules: ArtefactsSettings, currency: str = CREDIT
) -> AmountObjection | None:
    """Why an account may keep no more only because of its balance; None if it has another reason."""
    after_bytes = room.used_bytes + room.reserved_bytes + wanted_bytes
    if not room.quota_bytes < after_bytes <= rules.quota_bytes:
        return None
    balance_uc = needed_uc(after_bytes, rules)
    sentence = (
        f"{_mib(wanted_bytes)} do not fit: {_mib(room.used_bytes)} are kept and {_mib(room.reserved_bytes)} under way. "
        f"{_mib(rules.free_bytes)} are free for every account; to keep more, have at least {credits_of(balance_uc)} "
        f"{currency}s in your balance, where {credits_of(available_uc)} are available, or delete what you no longer "
        "need: `tidemill artefacts list` shows it."
    )
    amounts = {"needed": balance_uc, "available": available_uc}
    return AmountObjection(ArtefactRefusal.ARTEFACT_BALANCE_NEEDED, sentence, amounts)


def fee(account_id: UUID, kept_bytes: int, rules: ArtefactsSettings, new_id: UUID) -> Transfer | None:
    """The transfer that pays for a day; None if what is kept is free."""
    amount_uc, payer = day_fee_uc(kept_bytes, rules), customer_account(account_id)
    if not amount_uc:
        return None
    cause = f"storage of {kept_bytes} bytes for a day"
    return Transfer(new_id, payer.id, COMMISSION.id, amount_uc, payer.currency, "storage", cause)


def after_fee(
    standing: FeeStanding, refusal: PostingRefusal | None, rules: ArtefactsSettings, now: Instant
) -> tuple[FeeStanding, FeeStep]:
    """How an account stands after a day's fee was posted or refused."""
    if refusal not in CANNOT_PAY:
        return FeeStanding(now, None), FeeStep.NOTHING
    if standing.unpaid_since is None:
        return FeeStanding(now, now), FeeStep.WARN
    is_over = now >= expires_at(standing.unpaid_since, rules)
    return FeeStanding(now, standing.unpaid_since), FeeStep.EXPIRE if is_over else FeeStep.NOTHING


def expires_at(unpaid_since: Instant, rules: ArtefactsSettings) -> Instant:
    """When artefacts that nobody pays for are deleted."""
    return Instant(unpaid_since + int(rules.unpaid_keep_s * SECOND))


def expired(oldest_first: Iterable[KeptArtefact], kept_bytes: int, free_bytes: int) -> list[KeptArtefact]:
    """Those that go, the oldest first, until the rest is free."""
    gone = []
    for artefact in oldest_first:
        if kept_bytes <= free_bytes:
            break
        gone.append(artefact)
        kept_bytes -= counted_bytes(artefact.size_bytes)
    return gone


def _fee_uc(kept_bytes: int, time_us: int, rules: ArtefactsSettings) -> int:
    """Rounded up: what is not free costs at least a micro-credit, unless keeping costs nothing at all."""
    beyond_bytes = max(0, kept_bytes - rules.free_bytes)
    return -(-beyond_bytes * rules.price_uc * time_us // (GIB * MONTH_US))


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.1f} MiB"
