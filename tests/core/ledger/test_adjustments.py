"""Adjustments take two people: every way in which one person could try to be two."""

from dataclasses import replace
from uuid import UUID

import pytest

from tidemill.core.accounts.operator_word import OperatorWord, OperatorWordRefusal
from tidemill.core.accounts.roles import HOME_OPERATOR, name_of_account
from tidemill.core.clock import DAY, Instant
from tidemill.core.ledger import Adjustment, AdjustmentRefusal, AdjustmentState
from tidemill.core.ledger.adjustments import propose, settle

NOW = Instant(1_800_000_000_000_000)
ANN, BOB = name_of_account(UUID(int=1)), name_of_account(UUID(int=2))
HOME, SYSTEM_USER = HOME_OPERATOR.name, "root"
NEWCOMER, DELAY_US = name_of_account(UUID(int=6)), DAY
ASKED = Adjustment(UUID(int=3), UUID(int=4), UUID(int=5), 1, "credit", "why", ANN, NOW)


def word(by: str, since: int | None = 0) -> OperatorWord:
    return OperatorWord(by, None if since is None else Instant(since), DELAY_US)


def test_two_accounts_are_two_people() -> None:
    assert propose(ASKED, word(ANN)) == ASKED
    settled = settle(ASKED, approve=True, word=word(BOB), now=NOW)
    assert isinstance(settled, Adjustment)
    assert settled.state is AdjustmentState.APPROVED


def test_one_account_is_one_person() -> None:
    assert settle(ASKED, approve=True, word=word(ANN), now=NOW) is AdjustmentRefusal.SECOND_OPERATOR_NEEDED


@pytest.mark.parametrize("nobody", [HOME, SYSTEM_USER])
def test_whoever_has_the_machine_is_nobody_in_particular(nobody: str) -> None:
    assert propose(replace(ASKED, proposed_by=nobody), word(nobody)) is AdjustmentRefusal.OWN_ACCOUNT_NEEDED
    assert settle(ASKED, approve=True, word=word(nobody), now=NOW) is AdjustmentRefusal.OWN_ACCOUNT_NEEDED


@pytest.mark.parametrize("anybody", [ANN, BOB, HOME, SYSTEM_USER])
def test_anybody_may_reject(anybody: str) -> None:
    settled = settle(ASKED, approve=False, word=word(anybody, None), now=NOW)
    assert isinstance(settled, Adjustment)
    assert settled.state is AdjustmentState.REJECTED


@pytest.mark.parametrize(("since", "counts"), [(NOW, False), (NOW - DAY + 1, False), (NOW - DAY, True), (None, False)])
def test_a_second_account_of_an_operator_is_no_second_person_at_once(since: int | None, counts: bool) -> None:
    """An operator gave the role to another account of their own, and approved with it what they had proposed."""
    new = word(NEWCOMER, since)
    settled = settle(ASKED, approve=True, word=new, now=NOW)
    proposed = propose(replace(ASKED, proposed_by=NEWCOMER), new)
    if counts:
        assert isinstance(settled, Adjustment)
        assert isinstance(proposed, Adjustment)
    else:
        assert {settled, proposed} == {OperatorWordRefusal.OPERATOR_TOO_NEW}
    assert isinstance(settle(ASKED, approve=False, word=new, now=NOW), Adjustment), "anybody may reject"
