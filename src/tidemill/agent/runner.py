"""What runs work on this machine: an agent passes it the pool's offers, and asks what is in hand.

An agent without a runner stays in touch, is measured, and declines what it is offered.
"""

from typing import Protocol

from tidemill.core.nodes.reasons import InHand
from tidemill.wire.messages import Accepted, Cancel, Declined, Offer


class Runner(Protocol):
    """Runs what it accepts, and reports by itself."""

    @property
    def running(self) -> int:
        """How many attempts are in hand."""
        ...

    async def offered(self, offer: Offer) -> Accepted | Declined:
        """Take an attempt, or say why not."""
        ...

    async def cancelled(self, cancel: Cancel) -> None:
        """Stop an attempt. One that is not in hand is over already."""
        ...

    async def held_back(self, in_hand: InHand) -> None:
        """The machine may not work now: finish what is in hand, or stop it at once."""
        ...


class NoRunner:
    """No kind of work is set up on this machine."""

    running = 0

    async def offered(self, offer: Offer) -> Declined:
        return Declined(offer.attempt_id, offer.lease, "No runner for any kind of work is installed on this machine.")

    async def cancelled(self, cancel: Cancel) -> None:
        """Nothing is in hand."""

    async def held_back(self, in_hand: InHand) -> None:
        """Nothing is in hand."""
