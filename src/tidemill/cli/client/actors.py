"""Who did something, as people read it: an account by its address, anybody else by the name that is kept."""

from collections.abc import Iterable, Mapping

from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.client.pool_caller import PoolCaller
from tidemill.core.accounts.roles import is_person


def actor_names(caller: PoolCaller, kept: Iterable[str | None]) -> Mapping[str | None, str]:
    """What to show for each name that is kept. Each account is asked for once."""
    return {name: _shown(caller, name or "") for name in set(kept)}


def _shown(caller: PoolCaller, name: str) -> str:
    if not is_person(name):
        return name
    try:
        account = caller.ask("GET", f"/admin/accounts/{name.partition(':')[2]}")
    except PoolRefused:
        return name  # an API key may act for the pool without seeing its accounts
    return str(account["address"])
