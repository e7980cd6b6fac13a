"""When wrong passwords lock a login, and for whom.

Failures are counted per account and network, so a stranger's failures never lock the owner out. Attacks from many
networks are handled apart: once all failures together pass a bound, only networks from which the account was used
before may try. Addresses without an account are counted in the same way, so that nobody learns which accounts exist.
"""

from dataclasses import dataclass

from tidemill.core.clock import Instant
from tidemill.core.refusals import Refusal


class LoginRefusal(Refusal):
    LOGIN_FAILED = "The address, the password or the code is wrong: try again, or reset your password."
    LOGIN_LOCKED = "Too many failures: wait as long as Retry-After says, or reset your password by mail."
    SECOND_FACTOR_NEEDED = "Send the code of your authenticator, or a recovery code, as `code`."
    ACCOUNT_BLOCKED = "This account is blocked: write to the pool's operator."
    LOGIN_BUSY = "Too many people are logging in just now: try again in a few seconds."


CODES_MAX = 10
"""Wrong codes allowed from all networks together: whoever has the password and guesses the code gets no more tries."""


@dataclass(frozen=True)
class LockRules:
    failures_max: int
    everywhere_max: int
    lock_us: int


@dataclass(frozen=True)
class Failures:
    """Recent failures: from this network, from all networks, wrong codes among them, and when each happened last.

    `known_network` says that the account was used from this network before.
    """

    here: int
    everywhere: int
    codes: int
    last_here_at: Instant
    last_at: Instant
    known_network: bool


def locked_until(failures: Failures, rules: LockRules) -> Instant | None:
    """Until when logins are refused unseen; None if one may be tried. Failures older than the lock do not count."""
    too_many = failures.everywhere >= rules.everywhere_max or failures.codes >= CODES_MAX
    if too_many and not failures.known_network:
        return Instant(failures.last_at + rules.lock_us)
    return Instant(failures.last_here_at + rules.lock_us) if failures.here >= rules.failures_max else None
