"""Who may be connected: places at the HTTP server, counted by address and, once a caller is known, by account.

A connection waits for its peer (to send a request, or to read an answer) or works for it. Everybody gets in, because
whoever they are shows only when their request is there. To make room, a connection that waits is closed: of the address
that has too many, or, if there are too many in all, of whoever keeps most of them waiting. It is the one that has
waited longest: whoever sends at once is served before their turn comes. So one address, or twenty, cannot keep others
out. If nobody waits, so that there is no room to make, only operators are served, beside pages and probes.

No I/O: the caller closes what is displaced.
"""

from collections.abc import Callable
from typing import TypeAlias
from uuid import UUID

from tidemill.core.proxies import TrustedProxies
from tidemill.core.rate_limits import address_key
from tidemill.core.settings.sections.edge import HttpSettings

CallerKey: TypeAlias = "str | UUID"
"""Who is counted: an address (of IPv6 the /64), or the id of an account or a node."""

OPERATORS = "operators"
"""Whose places are not bounded, and never displaced."""

PROXIES = "proxies"
"""Proxies speak for many. Their connections count for others as soon as a request names its caller."""

_UNBOUNDED = frozenset({OPERATORS, PROXIES})


class Place:
    """The place of one connection. `close` is called when it is displaced."""

    __slots__ = ("address", "close", "home", "is_taken", "waits", "whose")

    def __init__(self, address: str, home: str, close: Callable[[], None]) -> None:
        self.address = address
        self.home = home
        self.whose: CallerKey = home
        self.close = close
        self.waits = True
        self.is_taken = True


class _Crowd:
    """All places of one caller. Those that wait are in the order in which they began to."""

    __slots__ = ("count", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.waiting: dict[Place, None] = {}


class HttpDoor:
    """The places of one process. `displaced` counts since it began."""

    def __init__(self, rules: HttpSettings) -> None:
        self._max = rules.connections_max
        self._per_caller_max = rules.connections_per_caller_max
        self._working_max = rules.connections_max - rules.connections_reserved
        self._proxies = TrustedProxies(rules.trusted_proxies)
        self._crowds: dict[CallerKey, _Crowd] = {}
        self.open = 0
        self.waiting = 0
        self.displaced = 0

    def enter(self, address: str, close: Callable[[], None]) -> Place:
        """A place for a new connection, which waits for its first request. Others may be displaced."""
        home = PROXIES if address in self._proxies else address_key(address)
        place = Place(address, home, close)
        self._add(place)
        self._make_room(place)
        return place

    def leave(self, place: Place) -> None:
        """Give the place up, if it is not given up yet."""
        if place.is_taken:
            place.is_taken = False
            self._remove(place)

    def begin_to_wait(self, place: Place) -> None:
        """The peer has to do something: send a request, or read an answer."""
        if place.is_taken and not place.waits:
            place.waits = True
            self._crowds[place.whose].waiting[place] = None
            self.waiting += 1

    def begin_to_work(self, place: Place) -> None:
        """A whole request is there."""
        if place.is_taken and place.waits:
            place.waits = False
            del self._crowds[place.whose].waiting[place]
            self.waiting -= 1

    def give(self, place: Place, whose: CallerKey) -> None:
        """The caller of the request in hand is known: let the place count for them."""
        if place.whose is not whose and place.whose != whose and place.is_taken:
            self._remove(place)
            place.whose = whose
            self._add(place)
            self._make_room(place)

    def has_too_many(self, whose: CallerKey) -> bool:
        """Whether a caller has more places than they may, and none of them waits."""
        crowd = self._crowds.get(whose)
        return crowd is not None and crowd.count > self._per_caller_max and whose not in _UNBOUNDED

    @property
    def is_crowded(self) -> bool:
        """Whether only the places that are kept for operators are left, and nobody can be displaced from the others."""
        return self.open - self.waiting > self._working_max

    def _make_room(self, newcomer: Place) -> None:
        crowd = self._crowds[newcomer.whose]
        if newcomer.whose not in _UNBOUNDED and crowd.count > self._per_caller_max:
            self._displace(crowd, newcomer)
        if self.open > self._max:
            # A look at all callers is quick enough: 2,000 of them take 0.1 ms, twenty take 2 us.
            crowds = (crowd for whose, crowd in self._crowds.items() if whose != OPERATORS)
            self._displace(max(crowds, key=_waiting_count, default=crowd), newcomer)

    def _displace(self, crowd: _Crowd, newcomer: Place) -> None:
        longest = next(iter(crowd.waiting), None)
        if longest is not None and longest is not newcomer:
            self.displaced += 1
            self.leave(longest)
            longest.close()

    def _add(self, place: Place) -> None:
        crowd = self._crowds.setdefault(place.whose, _Crowd())
        crowd.count += 1
        self.open += 1
        if place.waits:
            crowd.waiting[place] = None
            self.waiting += 1

    def _remove(self, place: Place) -> None:
        crowd = self._crowds[place.whose]
        crowd.count -= 1
        self.open -= 1
        if place.waits:
            del crowd.waiting[place]
            self.waiting -= 1
        if not crowd.count:
            del self._crowds[place.whose]


def _waiting_count(crowd: _Crowd) -> int:
    return len(crowd.waiting)
