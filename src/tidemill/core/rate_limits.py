"""How often somebody may do something: a bucket of tokens that refills evenly. Pure: the caller brings the time.

A bucket is one instant, the one at which it will be full again; taking tokens moves it into the future. All numbers are
integers, rounded so that nothing is given away: in any time T no more than `count + count * T / per` tokens are taken.
A clock that goes back gives nothing either; if it was set back by more than clocks may differ, the bucket is empty and
refills, rather than closed until the old time comes again.
"""

from dataclasses import dataclass
from hashlib import sha512
from ipaddress import IPv6Address, IPv6Network, ip_address

from tidemill.core.clock import DAY, SECOND, Instant

COUNT_MAX = 10_000_000
"""With a day to refill, the products below still fit the database's 64 bits."""

SKEW_US = 5 * SECOND
"""By how much the clocks of two processes may differ before we assume that the time was set."""

LEASE_FOR_US = SECOND // 2
"""How long a lease should last at the caller's pace."""

_WHO_MAX = 100
_UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Limit:
    """So many tokens in so long a time. The name separates a caller's buckets under different limits."""

    name: str
    count: int
    per_us: int

    def __post_init__(self) -> None:
        assert 1 <= self.count <= COUNT_MAX, f"{self.name}: a count of {self.count}"
        assert SECOND <= self.per_us <= DAY, f"{self.name}: in {self.per_us} us"

    def key(self, caller: str) -> str:
        """The name of a caller's bucket. It is short and storable, whatever name a stranger chooses."""
        if len(caller) <= _WHO_MAX and caller.isascii() and caller.isprintable():
            return f"{self.name}:{caller}"
        # A hash is longer than any name stored as it is, so nobody can use another's name.
        return f"{self.name}:{sha512(caller.encode('utf-8', 'surrogatepass')).hexdigest()}"

    @property
    def window_s(self) -> int:
        return self.per_us // SECOND

    def refill_us(self, tokens: int) -> int:
        """How long so many tokens take to come back, rounded up."""
        return -(-tokens * self.per_us // self.count)


def available(full_at: Instant, limit: Limit, now: Instant) -> int:
    """The tokens in a bucket."""
    if full_at <= now:
        return limit.count
    # A bucket further ahead than a full refill, because clocks differ or the time was set back, is empty.
    missing_us = min(full_at - now, limit.per_us)
    return (limit.per_us - missing_us) * limit.count // limit.per_us


def take(full_at: Instant, limit: Limit, wanted: int, now: Instant) -> tuple[Instant, int]:
    """Take the wanted tokens, or as many as there are. `quota/lease.sql` does the same for many at once."""
    assert 0 <= wanted <= limit.count
    granted = min(wanted, available(full_at, limit, now))
    return Instant(_stands_at(full_at, limit, now) + limit.refill_us(granted)), granted


def give_back(full_at: Instant, limit: Limit, tokens: int) -> Instant:
    """Put back tokens that were not used; rounded down, because taking was rounded up."""
    return Instant(full_at - tokens * limit.per_us // limit.count)


def due_at(full_at: Instant, limit: Limit, tokens: int) -> Instant:
    """When so many tokens will be in the bucket, if nobody takes any."""
    return Instant(full_at - limit.per_us + limit.refill_us(tokens))


def next_token_lease(limit: Limit, used: int, in_us: int) -> int:
    """How many tokens a process leases for a caller who used so many of the last lease in so long a time.

    One for a newcomer; then at most twice as many each time, as the pace requires, up to a tenth of the limit: tokens
    in the hands of one process are missing for the others.
    """
    at_this_pace = used * LEASE_FOR_US // max(in_us, 1)
    return max(1, min(at_this_pace, 2 * used, limit.count // 10))


def address_key(address: str) -> str:
    """The caller that an address stands for: IPv4 itself; of IPv6 the /64, which belongs to one subscriber."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return _UNREADABLE
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or IPv6Network((int(parsed), 64), strict=False))


def _stands_at(full_at: Instant, limit: Limit, now: Instant) -> Instant:
    if full_at > now + limit.per_us + SKEW_US:
        return Instant(now + limit.per_us)
    return max(full_at, now)
