"""Settings of trust: reputation, newcomers, audits, verification.

Reputations are written as they are shown, 0.0 to 100.0, and
kept as points, 0 to 1000.
"""

from dataclasses import dataclass

from tidemill.core.settings.definition import setting
from tidemill.core.settings.kinds.quantities import DURATION, INTEGER, MEMORY, POINTS, SHARE


@dataclass(frozen=True)
class ReputationSettings:
    """What owners are trusted with. Records are not weighed yet: everybody has the reputation of a newcomer."""

    start_points: int = setting(POINTS, 30, meaning="The reputation of a newcomer.")


@dataclass(frozen=True)
class NewcomersSettings:
    """Owners without a record yet."""

    placements: float = setting(SHARE, "5%", meaning="The share of placements kept for newcomers.")
    new_for_s: float = setting(
        DURATION, "7d", high="366d", meaning="An owner is new for so long, and until enough results were verified."
    )
    new_for_results: int = setting(
        INTEGER,
        50,
        unit="results",
        high=1_000_000,
        meaning="An owner is new until so many results were verified, and long enough.",
    )


@dataclass(frozen=True)
class AuditSettings:
    """Work without a cheap proof, which a house node executes a second time."""

    house_wait_s: float = setting(
        DURATION,
        "24h",
        low="1s",
        high="7d",
        meaning="A result that no house node has begun to execute again in so long is given back to the customer; an "
        "operator who is asked about a result has as long to decide.",
    )
    customer_share: float = setting(
        SHARE,
        "50%",
        low="1%",
        meaning="Of what other customers' audits leave of the house, the share that one customer's have at once.",
    )


@dataclass(frozen=True)
class VerificationSettings:
    """Checks of results, each in a process of its own."""

    checks_at_once: int = setting(
        INTEGER,
        2,
        unit="checks",
        low=1,
        high=256,
        meaning="How many results a process checks at once. One customer has at most all but one of them.",
    )
    check_memory_mib: int = setting(
        MEMORY, "1GiB", low="1GiB", high="64GiB", meaning="The memory that one check may take."
    )
    check_time_s: float = setting(
        DURATION, "2m", low="1s", high="1h", meaning="A check that takes longer is ended, and nobody is blamed."
    )
