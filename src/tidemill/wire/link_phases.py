"""The phases of a link, and what takes it from one to the next: a table, which only ever leads on."""

from collections.abc import Mapping
from enum import Enum


class LinkPhase(Enum):
    """Where a link is. It only ever goes down this list."""

    GREETING = "greeting"
    ANSWERING = "answering"
    OPEN = "open"
    CLOSED = "closed"


class LinkStep(Enum):
    """What takes a link from one phase to the next."""

    GREETED = "greeted"  # the agent has shown its key, and the pool its own
    WELCOMED = "welcomed"
    REFUSED = "refused"
    ENDED = "ended"  # by a goodbye, a broken rule or silence


LINKS: Mapping[tuple[LinkPhase, LinkStep], LinkPhase] = {
    (LinkPhase.GREETING, LinkStep.GREETED): LinkPhase.ANSWERING,
    (LinkPhase.ANSWERING, LinkStep.WELCOMED): LinkPhase.OPEN,
    (LinkPhase.ANSWERING, LinkStep.REFUSED): LinkPhase.CLOSED,
    **{(phase, LinkStep.ENDED): LinkPhase.CLOSED for phase in LinkPhase if phase is not LinkPhase.CLOSED},
}
