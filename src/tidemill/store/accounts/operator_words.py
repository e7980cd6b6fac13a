"""Whose word counts where two operators have to agree, as the database knows it."""

from tidemill.core.accounts.operator_word import OperatorWord
from tidemill.core.accounts.roles import account_of_name
from tidemill.core.clock import SECOND, Instant
from tidemill.core.settings.sections.trail import TrailSettings
from tidemill.store.query import Connection, Query

_SINCE = Query("accounts/account/operator_since", Instant)

_OTHER_SINCE = Query("accounts/account/other_operator_since", Instant)


async def read(connection: Connection, by: str, trail: TrailSettings) -> OperatorWord:
    """The word of somebody by their name, which is an account's, the home's or a user's of the machine."""
    account_id = account_of_name(by)
    since = None if account_id is None else await _SINCE.row(connection, id=account_id)
    return OperatorWord(by, since, int(trail.critical_delay_s * SECOND))


async def others_count_from(connection: Connection, by: str, trail: TrailSettings) -> Instant | None:
    """From when the word of an operator other than this one counts; None if there is no other."""
    since = await _OTHER_SINCE.row(connection, id=account_of_name(by))
    return OperatorWord("", since, int(trail.critical_delay_s * SECOND)).counts_from
