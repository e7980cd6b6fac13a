"""The name of the pool's own currency. The ledger stores one fixed word; people see the name that the pool chose.

So the name can change without touching the books: account ids derive from the ledger's word.
"""

from tidemill.core.settings.sections.money import MoneySettings

CREDIT = "credit"


def shown_currency(currency: str, money: MoneySettings) -> str:
    """The name of a currency as people see it."""
    return money.currency if currency == CREDIT else currency


def kept_currency(written: str, money: MoneySettings) -> str:
    """The currency that somebody means; the pool's own may go by either name."""
    return CREDIT if written == money.currency else written
