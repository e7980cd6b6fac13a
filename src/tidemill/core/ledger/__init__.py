"""The ledger's rules: accounts, entries, and what becomes of a batch of them. Integers, double entry, nothing lost."""

from tidemill.core.ledger.accounts import RULES, AccountKind, KindRules, LedgerAccount, Visibility
from tidemill.core.ledger.entries import Entry, Hold, PostingRefusal, Release, Transfer
from tidemill.core.ledger.posting import AccountState, Books, HoldState, Known, Outcome, decide

__all__ = [
    "RULES",
    "AccountKind",
    "AccountState",
    "Books",
    "Entry",
    "Hold",
    "HoldState",
    "KindRules",
    "Known",
    "LedgerAccount",
    "Outcome",
    "PostingRefusal",
    "Release",
    "Transfer",
    "Visibility",
    "decide",
]
