"""Settings of trust: reputation, newcomers, audits, findings, exposure, disputes, verification.

All of it belongs to the owner, never to the single node. Reputations are written as they are shown, 0.0 to 100.0, and
kept as points, 0 to 1000.
"""

from dataclasses import dataclass

from tidemill.core.settings.definition import setting
from tidemill.core.settings.quantities import DURATION, FACTOR_PPM, INTEGER, NUMBER, POINTS, SHARE, SHARE_PPM


@dataclass(frozen=True)
class ReputationSettings:
    """A composite of four weights that sum to 1, less penalties."""

    success_weight: float = setting(SHARE, 0.5, meaning="The weight of success by value, capped per customer.")
    speed_weight: float = setting(SHARE, 0.2, meaning="The weight of speed, expected time over actual time.")
    uptime_weight: float = setting(SHARE, 0.2, meaning="The weight of uptime.")
    stake_weight: float = setting(SHARE, 0.1, meaning="The weight of stake.")
    start_points: int = setting(POINTS, 30, meaning="The reputation of a newcomer.")
    light_penalty_points: int = setting(
        POINTS, 5, meaning="The penalty for a late result, a crash, or a task declined after accepting."
    )
    medium_penalty_points: int = setting(POINTS, 15, meaning="The penalty for a wrong result.")
    severe_penalty_points: int = setting(POINTS, 30, meaning="The penalty for a severe finding.")
    repaid_points: int = setting(POINTS, 0.1, meaning="What each verified success repays of penalties.")
    prior_results: int = setting(
        INTEGER, 50, unit="results", low=1, meaning="How many results the start counts for, against the own record."
    )
    suspended_below_points: int = setting(
        POINTS, 10, meaning="An owner with less than this gets no work until an operator has looked."
    )
    customer_share: float = setting(
        SHARE,
        "20%",
        low="1%",
        meaning="The most that one customer counts for, as a share of an owner's record by value.",
    )


@dataclass(frozen=True)
class NewcomersSettings:
    """Owners without a record yet."""

    placements: float = setting(SHARE, "5%", meaning="The share of placements kept for newcomers.")
    held_back_ppm: int = setting(
        SHARE_PPM, "50%", critical=True, meaning="The share of each reward held back from a new owner."
    )
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
    """How often work without a cheap proof is executed a second time."""

    results_before_sampling: int = setting(
        INTEGER, 10, unit="results", low=1, meaning="Always audited until so many results in a row were right."
    )
    rate_floor: float = setting(SHARE, "2%", low="0.01%", critical=True, meaning="The lowest audit rate.")
    deterrence: float = setting(
        NUMBER,
        1.5,
        unit="factor",
        low=1,
        high=100,
        critical=True,
        meaning="How much more a cheater must expect to lose than to save.",
    )
    collusion_floor: float = setting(
        SHARE, "20%", high="99%", meaning="The least share of auditors that are assumed to collude."
    )
    failure_alarm: float = setting(SHARE, "20%", meaning="A failure rate above this raises the audit rate.")
    failure_factor: float = setting(
        NUMBER, 2, unit="factor", low=1, high=100, meaning="What the audit rate is then multiplied by."
    )
    budget: float = setting(
        SHARE, "10%", critical=True, meaning="The share of the whole pool's work that audits may take."
    )
    auditor_floor_points: int = setting(POINTS, 60, meaning="The least reputation of an auditor.")
    canary_rate: float = setting(
        SHARE, "0.2%", high="10%", meaning="Tasks whose answer is known, as a share of the tasks an owner gets."
    )
    house_wait_s: float = setting(
        DURATION,
        "24h",
        low="1s",
        high="7d",
        meaning="A result that no house node has begun to execute again in so long is given back to the customer.",
    )


@dataclass(frozen=True)
class FindingsSettings:
    """What follows from a confirmed wrong result."""

    look_back_results: int = setting(
        INTEGER, 40, unit="results", low=1, meaning="So many of the owner's unsettled results are audited."
    )
    severe_wrong_results: int = setting(
        INTEGER,
        1,
        unit="results",
        low=1,
        critical=True,
        meaning="So many more wrong results among them make the finding severe.",
    )
    severe_stake_ppm: int = setting(
        SHARE_PPM, "50%", critical=True, meaning="The share of the stake that a severe finding takes."
    )
    repaid_ppm: int = setting(
        SHARE_PPM,
        "50%",
        low="1%",
        critical=True,
        meaning="The share of each settled reward that repays what a wrong result was charged.",
    )


@dataclass(frozen=True)
class ExposureSettings:
    """How much an owner may have unsettled."""

    limit_ppm: int = setting(
        FACTOR_PPM,
        1,
        high=1,
        critical=True,
        meaning="Unsettled rewards at most, as a multiple of what a severe finding would take.",
    )


@dataclass(frozen=True)
class DisputesSettings:
    """Contesting a verdict."""

    window_s: float = setting(
        DURATION,
        "24h",
        low="1s",
        high="90d",
        critical=True,
        meaning="How long a verdict may be disputed and its reward stays locked.",
    )
    jurors: int = setting(
        INTEGER,
        3,
        unit="jurors",
        low=1,
        high=99,
        critical=True,
        meaning="The jurors that re-execute a disputed attempt; an odd number.",
    )
    deposit_ppm: int = setting(
        FACTOR_PPM,
        1,
        low=1,
        high=100,
        critical=True,
        meaning="The deposit of a dispute, as a multiple of what the jury's executions cost.",
    )
    appeals: int = setting(INTEGER, 1, unit="appeals", high=1, meaning="The appeals to the operator after a ruling.")


@dataclass(frozen=True)
class VerificationSettings:
    """Thresholds of the checks."""

    similarity_pass: float = setting(
        NUMBER, 0.95, unit="similarity", high=1, meaning="An inference result more similar than this passes."
    )
    similarity_review: float = setting(
        NUMBER, 0.85, unit="similarity", high=1, meaning="One more similar than this is reviewed; the rest fail."
    )
    recompute_below: int = setting(
        INTEGER, 1024, unit="rows", meaning="An integer matrix product smaller than this is recomputed, not challenged."
    )
    different_answers: int = setting(
        INTEGER, 3, unit="answers", low=3, high=9, meaning="So many answers, all different, acquit everyone."
    )
