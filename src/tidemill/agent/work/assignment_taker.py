"""What runs work on this machine: an agent passes it the pool's assignments, and asks what is in hand."""

from collections.abc import Mapping
from typing import Protocol

from tidemill.core.nodes.no_work_reasons import BegunWork
from tidemill.wire.messages import AcceptedMessage, Assignment, Cancel, DeclinedMessage


class AssignmentTaker(Protocol):
    """Runs the attempts that it accepts, and reports by itself."""

    @property
    def own_uses_pct(self) -> Mapping[int, float]:
        """How much of each device, by its index, the attempts in hand may use."""
        ...

    async def assigned(self, assignment: Assignment) -> AcceptedMessage | DeclinedMessage:
        """Take an attempt, or say why not."""
        ...

    async def cancelled(self, cancel: Cancel) -> None:
        """Stop an attempt. One that is not in hand is over already."""
        ...

    async def rest(self, begun_work: BegunWork) -> None:
        """The machine may not work now: finish what is in hand, or stop it at once."""
        ...
