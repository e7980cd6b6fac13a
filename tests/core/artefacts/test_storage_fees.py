"""What keeping artefacts costs, and what a balance allows."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.artefacts import storage_fees as fees
from tidemill.core.artefacts.retention import StorageRoom
from tidemill.core.artefacts.storage_fees import GIB, FeeStanding, FeeStep, KeptArtefact
from tidemill.core.clock import DAY, Instant
from tidemill.core.ledger import PostingRefusal
from tidemill.core.settings.sections.artefacts import ArtefactsSettings

MIB = 1024 * 1024
RULES = ArtefactsSettings(
    free_bytes=100 * MIB,
    quota_bytes=100 * GIB,
    price_uc=20_000,
    funded_s=30 * 86_400.0,
    unpaid_keep_s=7 * 86_400.0,
    result_keep_s=30 * 86_400.0,
)
NOW = Instant(1_800_000_000_000_000)
WHO = UUID(int=7)


@pytest.mark.parametrize(
    ("balance_uc", "allowed"),
    [(0, 100 * MIB), (20_000, 100 * MIB + GIB), (1_000_000, 100 * MIB + 50 * GIB), (10**12, 100 * GIB)],
)
def test_a_balance_allows_what_it_pays_for_a_month(balance_uc: int, allowed: int) -> None:
    assert fees.allowed_bytes(balance_uc, RULES) == allowed


@given(st.integers(0, 200 * GIB))
def test_whoever_has_the_needed_balance_may_keep_it(kept_bytes: int) -> None:
    needed_uc = fees.needed_uc(kept_bytes, RULES)
    assert fees.allowed_bytes(needed_uc, RULES) >= min(kept_bytes, RULES.quota_bytes)
    assert needed_uc == 0 or fees.allowed_bytes(needed_uc - 1, RULES) < kept_bytes


def test_a_day_costs_a_thirtieth_and_what_is_free_nothing() -> None:
    assert fees.day_fee_uc(100 * MIB, RULES) == 0
    assert fees.fee(WHO, 100 * MIB, RULES, UUID(int=1)) is None
    assert fees.day_fee_uc(100 * MIB + 1, RULES) == 1
    assert fees.day_fee_uc(100 * MIB + 30 * GIB, RULES) == 20_000
    assert fees.day_fee_uc(100 * GIB, replace(RULES, price_uc=0)) == 0
    assert fees.allowed_bytes(0, replace(RULES, price_uc=0)) == 100 * GIB


def test_the_sentence_says_what_is_missing_only_if_money_helps() -> None:
    room = StorageRoom(used_bytes=90 * MIB, reserved_bytes=0, quota_bytes=100 * MIB)
    missing = fees.balance_missing(room, 100 * MIB, 1_000, RULES)
    assert missing
    assert "at least 0.001758 credits in your balance, where 0.001 are available" in missing.sentence
    assert missing.amounts == {"needed": 1_758, "available": 1_000}
    assert fees.balance_missing(room, 200 * GIB, 0, RULES) is None, "nobody may keep so much"
    assert fees.balance_missing(room, 5 * MIB, 0, RULES) is None, "it waits for something that is being deleted"


def test_whoever_cannot_pay_is_told_once_and_has_some_days() -> None:
    standing, short = FeeStanding(NOW, None), PostingRefusal.INSUFFICIENT_FUNDS
    steps = []
    for day in range(1, 10):
        standing, step = fees.after_fee(standing, short, RULES, Instant(NOW + day * DAY))
        steps.append(step)
    assert steps == [FeeStep.WARN, *[FeeStep.NOTHING] * 6, *[FeeStep.EXPIRE] * 2]
    standing, step = fees.after_fee(standing, None, RULES, Instant(NOW + 10 * DAY))
    assert (standing.unpaid_since, step) == (None, FeeStep.NOTHING)


def test_a_frozen_account_is_not_blamed() -> None:
    standing, step = fees.after_fee(FeeStanding(NOW, NOW), PostingRefusal.ACCOUNT_FROZEN, RULES, Instant(NOW + 9 * DAY))
    assert (standing.unpaid_since, step) == (None, FeeStep.NOTHING)


def test_the_oldest_go_until_the_rest_is_free() -> None:
    kept = [KeptArtefact(UUID(int=number), 60 * MIB) for number in range(4)]
    assert fees.expired(kept, 240 * MIB, 100 * MIB) == kept[:3]
    assert fees.expired(kept, 100 * MIB, 100 * MIB) == []
    assert fees.expired(kept, 500 * MIB, 100 * MIB) == kept, "the rest is needed"
