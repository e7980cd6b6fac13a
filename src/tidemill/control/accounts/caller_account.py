"""One's own account inside a transaction, for what lasts longer than a session: passwords, keys, second factors."""

from tidemill.control.http.problems import RouteRefused
from tidemill.core.accounts.account import Account
from tidemill.core.accounts.roles import Caller
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.store.accounts import accounts, sessions
from tidemill.store.query import Connection


async def locked_caller_account(transaction: Connection, caller: Caller) -> Account:
    """The caller's account, locked. Refused if the session has ended since the guard let it in: a caller whose session
    was ended during the request leaves nothing behind to come back with."""
    assert caller.account_id
    assert caller.session_id, "an API key cannot do this"
    account = await accounts.locked(transaction, caller.account_id)
    holder = await sessions.holder(transaction, caller.session_id)
    if account is None or holder is None or holder.session.ended_at is not None:
        raise RouteRefused(SessionRefusal.SESSION_OVER)
    return account
