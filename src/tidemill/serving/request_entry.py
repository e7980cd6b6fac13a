"""What a request has at the server: the place of its connection, and memory for its body. The guard admits it.

A caller may have a share of the memory that is still free. So one caller alone gets a part of the whole; the more
callers take theirs, the less each may have; and something is always left for the next one, however many there are. No
I/O.
"""

from collections import Counter

from tidemill.core.rate_limits import address_key
from tidemill.core.refusals import Refusal
from tidemill.core.settings.sections.edge import HttpSettings
from tidemill.serving.http_door import OPERATORS, CallerKey, HttpDoor, Place

ENTRY = "tidemill.entry"
"""The key in a request's state."""


class BodyMemory:
    """The memory of one process. `used_bytes` is what all bodies together have taken."""

    def __init__(self, rules: HttpSettings) -> None:
        self._most_bytes = rules.body_memory_bytes
        self._share = rules.body_memory_share
        self._taken: Counter[CallerKey] = Counter()
        self.used_bytes = 0

    def take(self, whose: CallerKey, wanted_bytes: int, part: float = 1.0) -> bool:
        """Take memory, unless the caller would then have more than this part of their share; operators have it all."""
        free_bytes = self._most_bytes - self.used_bytes
        share = 1.0 if whose == OPERATORS else self._share * part
        if self._taken[whose] + wanted_bytes > share * free_bytes:
            return False
        self.used_bytes += wanted_bytes
        self._taken[whose] += wanted_bytes
        return True

    def give_back(self, whose: CallerKey, taken_bytes: int) -> None:
        self.used_bytes -= taken_bytes
        self._taken[whose] -= taken_bytes
        if not self._taken[whose]:
            del self._taken[whose]


class BodyShare:
    """What one request's body has taken. It grows and shrinks with its buffers, and is given back at the end."""

    __slots__ = ("_memory", "_whose", "needed_bytes", "taken_bytes")

    def __init__(self, memory: BodyMemory, needed_bytes: int) -> None:
        self._memory = memory
        self._whose: CallerKey = OPERATORS
        self.needed_bytes = needed_bytes
        self.taken_bytes = 0

    def begin(self, whose: CallerKey) -> bool:
        """Take what the body needs at least."""
        self._whose = whose
        return not self.needed_bytes or self.grow(self.needed_bytes)

    def grow(self, more_bytes: int, part: float = 1.0) -> bool:
        if not self._memory.take(self._whose, more_bytes, part):
            return False
        self.taken_bytes += more_bytes
        return True

    def shrink(self, less_bytes: int) -> None:
        less_bytes = min(less_bytes, self.taken_bytes)  # a buffer may be let go after the end
        self.taken_bytes -= less_bytes
        self._memory.give_back(self._whose, less_bytes)

    def end(self) -> None:
        if self.taken_bytes:
            self.shrink(self.taken_bytes)


class DoorRefusal(Refusal):
    """Why a request is not served right now."""

    TOO_MANY_CONNECTIONS = "You have too many connections at once: close some, or wait for their answers."
    POOL_CROWDED = "The pool serves as many requests as it can right now: try again in a moment."
    TOO_MANY_BODIES = "You send too much at once: wait until some of your requests are finished."


class RequestEntry:
    """One request, from its head to its answer. It may not read its body before it is admitted."""

    __slots__ = ("_door", "_place", "share")

    def __init__(self, door: HttpDoor, place: Place, share: BodyShare) -> None:
        self._door = door
        self._place = place
        self.share = share

    def key_of(self, address: str) -> str:
        """Whom a stranger counts as: a proxy may have said that they call from elsewhere."""
        return self._place.home if address == self._place.address else address_key(address)

    def admit(self, caller_key: CallerKey) -> Refusal | None:
        """Let connection and body count for the caller; says why they cannot be served now."""
        self._door.give(self._place, caller_key)
        if self._door.has_too_many(caller_key):
            return DoorRefusal.TOO_MANY_CONNECTIONS
        if self._door.is_crowded and caller_key != OPERATORS:
            return DoorRefusal.POOL_CROWDED
        return None if self.share.begin(caller_key) else DoorRefusal.TOO_MANY_BODIES
