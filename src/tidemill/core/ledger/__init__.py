"""The ledger's rules: accounts, entries, and what becomes of a batch of them. Integers, double entry, nothing lost."""

from tidemill.core.ledger.accounts import (
    RULES,
    AccountKind,
    AccountRefusal,
    FreezeRefusal,
    KindRules,
    LedgerAccount,
    Visibility,
    account_named,
)
from tidemill.core.ledger.adjustments import Adjustment, AdjustmentRefusal, AdjustmentState
from tidemill.core.ledger.entries import Entry, Hold, PostingRefusal, Release, Transfer, body, entry_of, fingerprint
from tidemill.core.ledger.posting import AccountState, Books, EarlierAnswer, HoldState, PostingOutcome, decide

__all__ = [
    "RULES",
    "AccountKind",
    "AccountRefusal",
    "AccountState",
    "Adjustment",
    "AdjustmentRefusal",
    "AdjustmentState",
    "Books",
    "EarlierAnswer",
    "Entry",
    "FreezeRefusal",
    "Hold",
    "HoldState",
    "KindRules",
    "LedgerAccount",
    "PostingOutcome",
    "PostingRefusal",
    "Release",
    "Transfer",
    "Visibility",
    "account_named",
    "body",
    "decide",
    "entry_of",
    "fingerprint",
]
