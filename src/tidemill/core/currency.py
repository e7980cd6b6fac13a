"""What the pool's own currency is called. The ledger keeps it under one word, and people see the pool's name for it.

So the name can change without touching the books: an account's id follows from the word that the ledger keeps.
"""

from tidemill.core.settings.sections.money import MoneySettings

CREDIT = "credit"


def shown_currency(kept: str, money: MoneySettings) -> str:
    """The name of a currency as people see it."""
    return money.currency if kept == CREDIT else kept


def kept_currency(written: str, money: MoneySettings) -> str:
    """The currency that somebody means: the pool's own by either name."""
    return CREDIT if written == money.currency else written
