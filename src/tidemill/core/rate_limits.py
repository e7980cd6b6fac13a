"""How often somebody may do something: a bucket of tokens that refills evenly. Pure: the caller brings the time.

A bucket is one instant, the one at which it will be full again; taking tokens moves it into the future. Integers only,
rounded so that nothing is given away: in any time T no more than `count + count * T / per` tokens are taken. A clock
that goes back gives nothing either; one that was set back by more than clocks may differ leaves an empty bucket, which
refills, rather than one that is closed until the old time comes again.
"""

from dataclasses import dataclass
from hashlib import sha512
from ipaddress import IPv6Address, IPv6Network, ip_address

from tidemill.core.clock import DAY, SECOND, Instant

COUNT_MAX = 10_000_000
"""With a day to refill, the products below still fit the database's 64 bits."""

SKEW_US = 5 * SECOND
"""By how much the clocks of two processes may differ before we take it that the time was set."""

LEASE_FOR_US = SECOND // 2
"""A lease is meant to last so long at the caller's pace."""

_WHO_MAX = 100
_UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Limit:
    """So many tokens in so long a time. The name keeps apart what one caller has under different limits."""

    name: str
    count: int
    per_us: int

    def __post_init__(self) -> None:
        assert 1 <= self.count <= COUNT_MAX, f"{self.name}: a count of {self.count}"
        assert SECOND <= self.per_us <= DAY, f"{self.name}: in {self.per_us} us"

    def key(self, who: str) -> str:
        """The name of a caller's bucket. Whatever a stranger calls himself, it is short and can be stored."""
        if len(who) <= _WHO_MAX and who.isascii() and who.isprintable():
            return f"{self.name}:{who}"
        # A hash is longer than any name kept as it is, so nobody can call himself by another's.
        return f"{self.name}:{sha512(who.encode('utf-8', 'surrogatepass')).hexdigest()}"

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
    # One that is further ahead than a whole refill, because clocks differ or the time was set back, is empty.
    missing_us = min(full_at - now, limit.per_us)
    return (limit.per_us - missing_us) * limit.count // limit.per_us


def take(full_at: Instant, limit: Limit, wanted: int, now: Instant) -> tuple[Instant, int]:
    """Take what is wanted, or as much as there is. `quota/lease.sql` does the same for many at once."""
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

    One for a newcomer; then at most twice as many each time, as the pace asks for, up to a tenth of the limit: what a
    process has in hand, the others lack.
    """
    at_this_pace = used * LEASE_FOR_US // max(in_us, 1)
    return max(1, min(at_this_pace, 2 * used, limit.count // 10))


def address_key(address: str) -> str:
    """Whom an address stands for: IPv4 itself; of IPv6 the /64, which one subscriber has whole."""
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
