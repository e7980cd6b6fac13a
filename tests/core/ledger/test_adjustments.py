"""Adjustments take two people: every way in which one person could try to be two."""

from dataclasses import replace
from uuid import UUID

import pytest

from tidemill.core.accounts.roles import HOME_OPERATOR, name_of_account
from tidemill.core.clock import Instant
from tidemill.core.ledger import Adjustment, AdjustmentRefusal, AdjustmentState
from tidemill.core.ledger.adjustments import propose, settle

NOW = Instant(1_800_000_000_000_000)
ANN, BOB = name_of_account(UUID(int=1)), name_of_account(UUID(int=2))
HOME, SYSTEM_USER = HOME_OPERATOR.name, "root"
ASKED = Adjustment(UUID(int=3), UUID(int=4), UUID(int=5), 1, "credit", "why", ANN, NOW)


def test_two_accounts_are_two_people() -> None:
    assert propose(ASKED) == ASKED
    settled = settle(ASKED, approve=True, by=BOB, now=NOW)
    assert isinstance(settled, Adjustment)
    assert settled.state is AdjustmentState.APPROVED


def test_one_account_is_one_person() -> None:
    assert settle(ASKED, approve=True, by=ANN, now=NOW) is AdjustmentRefusal.SECOND_OPERATOR_NEEDED


@pytest.mark.parametrize("nobody", [HOME, SYSTEM_USER])
def test_whoever_has_the_machine_is_nobody_in_particular(nobody: str) -> None:
    assert propose(replace(ASKED, proposed_by=nobody)) is AdjustmentRefusal.OWN_ACCOUNT_NEEDED
    assert settle(ASKED, approve=True, by=nobody, now=NOW) is AdjustmentRefusal.OWN_ACCOUNT_NEEDED


@pytest.mark.parametrize("anybody", [ANN, BOB, HOME, SYSTEM_USER])
def test_anybody_may_reject(anybody: str) -> None:
    settled = settle(ASKED, approve=False, by=anybody, now=NOW)
    assert isinstance(settled, Adjustment)
    assert settled.state is AdjustmentState.REJECTED
