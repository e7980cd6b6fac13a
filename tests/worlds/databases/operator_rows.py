"""Operators for tests, put straight into the table."""

from tidemill.core.accounts.operator_word import FIRST_OPERATOR_SINCE
from tidemill.core.accounts.roles import account_of_name
from tidemill.core.clock import Instant
from tidemill.store.database import Database


async def operators_of(database: Database, *names: str, since: Instant = FIRST_OPERATOR_SINCE) -> None:
    """Accounts of these names, with the role since then."""
    async with database.connection() as connection:
        await connection.executemany(
            "INSERT INTO account (id, address, address_key, password_hash, password_at, roles, operator_since, "
            "language, created_at) VALUES ($1, $2, $2, '', $3, '{operator}', $4, 'en', $3)",
            [(account_of_name(name), f"{name}@example.org", Instant(0), since) for name in names],
        )
