"""The kill switches in the database. They need nothing but the database: no other process has to answer."""

from collections.abc import Mapping

from tidemill.core.clock import Instant
from tidemill.core.events.log import SwitchThrown
from tidemill.core.ids import Ids
from tidemill.core.operations.switches import Switch, SwitchRefusal, SwitchState, throw
from tidemill.core.reasons import ReasonRefusal
from tidemill.core.refusals import Refusal
from tidemill.store.events import events
from tidemill.store.query import Connection, Query

_LIST = Query("operations/switch/list", SwitchState)
_SET = Query("operations/switch/set", str)


async def states(connection: Connection) -> Mapping[Switch, SwitchState]:
    """The state of every switch."""
    untouched = {
        switch: SwitchState(switch, stopped=False, reason="", changed_by="", changed_at=None) for switch in Switch
    }
    touched = await _LIST.rows(connection, names=[switch.value for switch in Switch])
    return untouched | {state.switch: state for state in touched}


async def set_switch(
    transaction: Connection, switch: Switch, *, stop: bool, reason: str, by: str, ids: Ids, now: Instant
) -> SwitchState | SwitchRefusal | ReasonRefusal:
    """Stop a part of the pool or start it again, with an event."""
    state = throw((await states(transaction))[switch], stop=stop, reason=reason, by=by, now=now)
    if isinstance(state, Refusal):
        return state
    changed = await _SET.row(
        transaction, name=switch.value, stopped=stop, reason=state.reason, changed_by=by, changed_at=now
    )
    if changed is None:
        return SwitchRefusal.ALREADY_SO
    thrown = SwitchThrown(switch.value, stop, state.reason, by)
    await events.append(transaction, [thrown], ids, now)
    return state
