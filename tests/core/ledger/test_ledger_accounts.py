"""Accounts as operators write them."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.ledger import RULES, AccountKind, AccountRefusal, LedgerAccount, account_named

OWNER = UUID("01900000-0000-7000-8000-000000000007")


@pytest.mark.parametrize(
    ("text", "account"),
    [
        (str(OWNER), OWNER),
        (str(OWNER).upper(), OWNER),
        ("commission", LedgerAccount(AccountKind.COMMISSION)),
        ("bonus_fund@euro", LedgerAccount(AccountKind.BONUS_FUND, currency="euro")),
        (f"customer:{OWNER}", LedgerAccount(AccountKind.CUSTOMER, OWNER)),
        (f"stake_assigned:{OWNER}@euro", LedgerAccount(AccountKind.STAKE_ASSIGNED, OWNER, currency="euro")),
        ("external:bank", LedgerAccount(AccountKind.EXTERNAL, name="bank")),
        ("external:card.visa-2_x@euro", LedgerAccount(AccountKind.EXTERNAL, name="card.visa-2_x", currency="euro")),
        (f"external:{OWNER}", LedgerAccount(AccountKind.EXTERNAL, name=str(OWNER))),
    ],
)
def test_an_account_is_named_by_its_id_or_by_what_it_is(text: str, account: object) -> None:
    assert account_named(text) == account


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        *(
            (text, AccountRefusal.ACCOUNT_MALFORMED)
            for text in ("", " ", "a b", "commission ", "commission\n", "COMMISSION", "commission:", "@euro", "1234")
        ),
        *(
            (text, AccountRefusal.ACCOUNT_MALFORMED)
            for text in ("commission@", "commission@@euro", "commission@1x", "commission@" + "x" * 33, "external:a:b")
        ),
        *(
            (text, AccountRefusal.ACCOUNT_MALFORMED)
            for text in ("external:a\x1fb", "external:" + "x" * 65, "external:bänk", f"{OWNER}@euro", f"{{{OWNER}}}")
        ),
        ("wallet", AccountRefusal.ACCOUNT_KIND_UNKNOWN),
        ("wallet:bank", AccountRefusal.ACCOUNT_KIND_UNKNOWN),
        ("customer", AccountRefusal.ACCOUNT_OWNER_NEEDED),
        ("customer:ann", AccountRefusal.ACCOUNT_OWNER_NEEDED),
        ("external", AccountRefusal.ACCOUNT_NAME_NEEDED),
        ("external@euro", AccountRefusal.ACCOUNT_NAME_NEEDED),
        ("commission:bank", AccountRefusal.ACCOUNT_OF_THE_POOL),
        (f"burn:{OWNER}", AccountRefusal.ACCOUNT_OF_THE_POOL),
    ],
)
def test_what_names_no_account_is_refused_with_the_way_to_write_it(text: str, refusal: AccountRefusal) -> None:
    assert account_named(text) is refusal


def test_an_account_without_a_currency_is_in_the_one_that_is_asked_for() -> None:
    assert account_named("burn", "euro") == LedgerAccount(AccountKind.BURN, currency="euro")
    assert account_named("burn@credit", "euro") == LedgerAccount(AccountKind.BURN)
    assert account_named("burn", "") is AccountRefusal.ACCOUNT_MALFORMED
    assert account_named("burn", "e\x00") is AccountRefusal.ACCOUNT_MALFORMED


@given(st.sampled_from(AccountKind), st.uuids(), st.from_regex(r"[a-z][a-z0-9_.-]{0,20}", fullmatch=True))
def test_every_account_can_be_written(kind: AccountKind, owner_id: UUID, name: str) -> None:
    rules = RULES[kind]
    account = LedgerAccount(kind, owner_id if rules.owned else None, name if rules.named else "")
    whose = f":{account.owner_id or account.name}" if rules.owned or rules.named else ""
    assert account_named(f"{kind}{whose}") == account
    assert account_named(f"{kind}{whose}@credit") == account


@given(st.text())
def test_no_text_is_too_strange(text: str) -> None:
    assert isinstance(account_named(text), LedgerAccount | UUID | AccountRefusal)
