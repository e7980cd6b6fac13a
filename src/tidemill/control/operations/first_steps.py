"""The first steps of a pool: the link that makes its first operator, or the accounts of a demonstration.

A demonstration is for this machine only, and its database remembers that it is one: it never serves anybody else.
"""

import secrets
from collections.abc import Mapping
from enum import Enum

from tidemill.control.context import Control
from tidemill.control.operations.demonstration import demonstrate, greeting
from tidemill.core.faults import Fault
from tidemill.core.nodes.pool_urls import is_loopback
from tidemill.core.settings.process_addresses import own_address
from tidemill.store.operations import pool

_IN_USE = (
    "This pool is in use, so it cannot become a demonstration: start it with `tidemill up`, or choose another "
    "TIDEMILL_HOME for the demonstration."
)


class FirstStep(Enum):
    """What a starting process does for a pool that nobody uses yet."""

    NOTHING = "nothing"
    LINK = "link"
    DEMONSTRATION = "demonstration"


async def first_steps(control: Control, step: FirstStep) -> Mapping[str, str]:
    """Additional lines of the greeting. A fault if a demonstration is not local, or would begin in a pool in use."""
    async with control.route_database.connection() as connection:
        state = await pool.state(connection)
    local = is_loopback(control.settings.host) and not control.settings.http.trusted_proxies
    if (state.demonstration or step is FirstStep.DEMONSTRATION) and not local:
        raise Fault("A demonstration is for this machine only: listen on 127.0.0.1, or start a pool in another home.")
    if step is FirstStep.DEMONSTRATION:
        if state.set_up and not state.demonstration:
            raise Fault(_IN_USE)
        if not state.set_up:
            await demonstrate(control)
        return greeting(control.settings.home)
    return await _set_up_link(control) if step is FirstStep.LINK and not state.set_up else {}


async def _set_up_link(control: Control) -> Mapping[str, str]:
    token = secrets.token_urlsafe(32)
    async with control.route_database.connection() as connection:
        is_new = await pool.new_set_up_link(connection, token)
    base = control.settings.mail.public_url or own_address(control.settings)
    return {"set up": f"{base.rstrip('/')}/setup#{token}"} if is_new else {}
