"""Which connections may become links: who calls from where, and how many are in the doorway already.

An agent is no browser, so a request that names an origin is refused. Callers that have not shown a key yet are counted
by address, so that one address cannot fill the doorway. A trusted proxy speaks for many: it names the address.
"""

from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus

from tidemill.core.nodes.pool_urls import is_address
from tidemill.core.proxies import TrustedProxies
from tidemill.core.rate_limits import address_key
from tidemill.wire.upgrade import Rejection, UpgradeRequest

_NO_BROWSERS = Rejection(HTTPStatus.FORBIDDEN, "Agents connect here, and no browser has business to.")
_FULL = Rejection(
    HTTPStatus.SERVICE_UNAVAILABLE, "This process holds as many links as it may: try another, or come back."
)
_CROWDED = Rejection(HTTPStatus.SERVICE_UNAVAILABLE, "Too many agents are being let in right now: come back soon.")
_TOO_MANY_HERE = Rejection(
    HTTPStatus.SERVICE_UNAVAILABLE, "Too many agents are being let in from this address right now: come back soon."
)
_LEAVING = Rejection(HTTPStatus.SERVICE_UNAVAILABLE, "This process is stopping: try another.")


@dataclass(frozen=True)
class LinkRules:
    """The most connections at once; of these, how many may be shaking hands, in all and from one address."""

    beat_ms: int
    connections_max: int = 20_000
    shaking_max: int = 2_000
    shaking_from_one_address_max: int = 64
    trusted_proxies: tuple[str, ...] = ()


@dataclass
class Visitor:
    """A connection that was let in. While it shakes hands it counts for `network`; one of a proxy counts for none."""

    address: str
    network: str | None
    shaking: bool = True


class Door:
    """Counts who is inside and who is in the doorway. `closed` lets nobody in any more."""

    def __init__(self, rules: LinkRules) -> None:
        self._rules = rules
        self._proxies = TrustedProxies(rules.trusted_proxies)
        self._networks: Counter[str] = Counter()
        self.inside = 0
        self.shaking = 0
        self.closed = False

    def knock(self, peer: str, request: UpgradeRequest) -> Visitor | Rejection:
        """Let a connection in, or say why not."""
        if request.values("origin"):
            return _NO_BROWSERS
        address = self.address_of(peer, request)
        network = None if address in self._proxies else address_key(address)
        if rejection := self._rejection(network):
            return rejection
        self.inside += 1
        self.shaking += 1
        if network is not None:
            self._networks[network] += 1
        return Visitor(address, network)

    def let_in(self, visitor: Visitor) -> None:
        """The visitor has shaken hands."""
        if visitor.shaking:
            visitor.shaking = False
            self.shaking -= 1
            if visitor.network is not None:
                self._networks[visitor.network] -= 1
                if not self._networks[visitor.network]:
                    del self._networks[visitor.network]

    def leave(self, visitor: Visitor) -> None:
        self.let_in(visitor)
        self.inside -= 1

    def address_of(self, peer: str, request: UpgradeRequest) -> str:
        """The peer's address. Of a trusted proxy, the last address in its list that is no proxy itself.

        The list may hold any text of a client, so anything but an address is ignored.
        """
        if peer not in self._proxies:
            return peer
        forwarded = [part.strip() for value in request.values("x-forwarded-for") for part in value.split(",")]
        last = next((address for address in reversed(forwarded) if address and address not in self._proxies), peer)
        return last if is_address(last) and "%" not in last else peer

    def _rejection(self, network: str | None) -> Rejection | None:
        rules = self._rules
        if self.closed:
            return _LEAVING
        if self.inside >= rules.connections_max:
            return _FULL
        if self.shaking >= rules.shaking_max:
            return _CROWDED
        if network is not None and self._networks[network] >= rules.shaking_from_one_address_max:
            return _TOO_MANY_HERE
        return None
