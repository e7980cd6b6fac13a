"""When wrong passwords lock a login, and for whom.

Failures are counted per account and network, so a stranger's failures never lock the owner out. Attacks from many
networks are handled apart: once all failures together pass a bound, only networks from which the account was used
before may try. Addresses without an account are counted in the same way, so that nobody learns which accounts exist.

A lock keeps guesses out, not the owner. Whoever has the password and the second factor gets in, and whoever has reset
the password by mail may try from the network where they did. Behind a lock everything else is answered alike, so that
trying there teaches nothing: a guess has to hit the password and the code at once.
"""

from dataclasses import dataclass

from tidemill.core.accounts.second_factor import is_time_code, normal_code
from tidemill.core.clock import Instant
from tidemill.core.refusals import Refusal


class LoginRefusal(Refusal):
    LOGIN_FAILED = "The address, the password or the code is wrong: try again, or reset your password."
    LOGIN_LOCKED = (
        "Too many failures: send the code of your second factor with your password, reset your password by mail, "
        "or wait as long as Retry-After says."
    )
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

    `known_network` says that the account was used from this network before, or its password reset by mail.
    """

    here: int
    everywhere: int
    codes: int
    last_here_at: Instant
    last_at: Instant
    known_network: bool


@dataclass(frozen=True)
class LoginLock:
    """Logins are refused until then, unless they bring what opens the lock."""

    until: Instant
    time_codes: bool
    """Whether the code of an authenticator opens it. Where codes themselves may be guessed, it does not."""

    def opens(self, code: str | None) -> bool:
        """Whether a login with this code is looked at. It is let in if the password and the code are right.

        A recovery code opens every lock: it has 80 random bits, which nobody guesses.
        """
        return code is not None and (self.time_codes or not is_time_code(normal_code(code)))


def lock_of(failures: Failures, rules: LockRules) -> LoginLock | None:
    """The lock that failures have put before an account; None if anybody may try. Older failures do not count."""
    too_many_codes = failures.codes >= CODES_MAX
    if (too_many_codes or failures.everywhere >= rules.everywhere_max) and not failures.known_network:
        own = failures.here >= rules.failures_max
        return LoginLock(Instant(failures.last_at + rules.lock_us), time_codes=not too_many_codes and not own)
    if failures.here >= rules.failures_max:
        return LoginLock(Instant(failures.last_here_at + rules.lock_us), time_codes=False)
    return None
