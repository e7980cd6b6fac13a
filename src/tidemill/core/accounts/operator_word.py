"""Whose word counts where two operators have to agree. Pure.

An operator can give the role to a second account of their own. So the word of a new operator counts only after a while,
in which everybody can see in the audit trail that there is one. The first operator, whom nobody appointed, counts at
once.
"""

from typing import NamedTuple

from tidemill.core.accounts.roles import NEVER, Role, is_person
from tidemill.core.clock import Instant, as_datetime
from tidemill.core.refusals import Refusal

FIRST_OPERATOR_SINCE = NEVER


class OperatorWordRefusal(Refusal):
    OPERATOR_TOO_NEW = (
        "You became an operator too recently: where two have to agree, a new operator's word counts only after "
        "`trail.critical_delay_s` (24 hours, unless changed). Wait, or ask another operator."
    )


class OperatorWord(NamedTuple):
    """Who speaks, by which name, and since when their account has been an operator's; None if it is none."""

    by: str
    operator_since: Instant | None = None
    delay_us: int = 0

    @property
    def is_of_person(self) -> bool:
        return is_person(self.by)

    @property
    def counts_from(self) -> Instant | None:
        return None if self.operator_since is None else Instant(self.operator_since + self.delay_us)

    @property
    def too_new(self) -> str:
        """The refusal with the moment from which their word counts."""
        if self.counts_from is None:
            return OperatorWordRefusal.OPERATOR_TOO_NEW.sentence
        return (
            "You became an operator too recently: where two have to agree, your word counts from "
            f"{as_datetime(self.counts_from):%Y-%m-%d %H:%M:%S} UTC (`trail.critical_delay_s`). Wait, or ask another "
            "operator."
        )

    def refuse(self, now: Instant) -> OperatorWordRefusal | None:
        """Why the word of somebody with an account does not count yet."""
        if self.operator_since is not None and now - self.operator_since >= self.delay_us:
            return None
        return OperatorWordRefusal.OPERATOR_TOO_NEW


def operator_since_start(roles: frozenset[Role]) -> Instant | None:
    """Since when an account that is made now has been an operator's. Only setting a pool up makes one of an operator:
    whoever comes later is given the role."""
    return FIRST_OPERATOR_SINCE if Role.OPERATOR in roles else None
