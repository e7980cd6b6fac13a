"""The figures that a challenge yields about a node's claims, and every claim that they do not support.

Speed is operations over the time on our own clock, from sending the task to receiving the commitment, the round trip
included. It counts up to the catalogue's figure and not beyond, so an agent with a faster way to multiply small
integers gains nothing by it. Memory counts as shown when every drawn page was right.

Cores are counted by what all of them did at once, over a speed that is the same for every machine: a share of the
speed by which a core is paid. The speed of one core alone is not asked for, since a node that idles while it is
measured would have more cores by it. A fast core may so count as several, each as fast as a customer may expect; a
machine that is slow, busy or far away has fewer than it claims, at least one, and is not refused for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidemill.core.clock import SECOND
from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.nodes.challenge.messages import HOST, LinkRate
from tidemill.core.nodes.challenge.sizes import SPEED_MAX, ChallengedDevice, ChallengePlan
from tidemill.core.refusals import Refusal
from tidemill.core.settings.kinds.quantities import ONE_PPM
from tidemill.core.settings.sections.challenge import ChallengeSettings
from tidemill.core.settings.sections.money import NvlinkSettings

LATE_MAX = 3
"""A node that is late so often in a row has failed."""

_LINK_LEAST_PPM = ONE_PPM // 10
"""A link that carries less than this share of the catalogue's figure counts as none."""


class ChallengeRefusal(Refusal):
    MEMORY_NOT_SHOWN = "The memory was not shown: let the agent detect the hardware again, and free what uses it."
    PRODUCT_WRONG = "The multiplication is wrong: check the device, and run the agent's version that the pool asks for."
    SPEED_BELOW_CATALOGUE = "The device is slower than its model: free it, cool it, or check what it is."
    SPEED_BELOW_EARLIER = "The device is slower than it was before: free it, cool it, or check it."
    CORES_NOT_SHOWN = "It gets work for as many as were shown: free the processors, and wait for the next challenge."
    CHALLENGE_LATE = "The answers came too late: see that the machine and its link are free, and wait for the next try."
    CHALLENGE_MISSED = "The node was not there when its owner's nodes were challenged: stay online for the next try."
    CHALLENGE_IMPOSSIBLE = "The node cannot be challenged: see to the cause, and wait for the next try."
    CHALLENGE_ANSWER_MALFORMED = "This answer cannot be read: run the agent's version that the pool asks for."
    CHALLENGE_ANSWER_STRAY = "Nobody asked for this answer, or it came too late; it was not kept."


OF_SPEED = frozenset({ChallengeRefusal.SPEED_BELOW_CATALOGUE, ChallengeRefusal.SPEED_BELOW_EARLIER})


@dataclass(frozen=True)
class Figures:
    """What was claimed and what was measured of one device. Zero is not known."""

    index: int
    name: str
    claimed_mib: int
    measured_mib: int
    measured_ops_per_s: int
    catalogue_ops_per_s: int
    earlier_ops_per_s: int
    elapsed_us: int
    nvlink_ppm: int


@dataclass(frozen=True)
class MachineFigures:
    """What was claimed and what was measured of the machine itself: its cores, all at once, and its memory."""

    claimed_cores: int
    measured_cores: int
    claimed_mib: int
    measured_mib: int
    measured_ops_per_s: int


@dataclass(frozen=True)
class UnsupportedClaim:
    """A claim that is not supported: the refusal, and the figures that do not fit."""

    refusal: ChallengeRefusal
    figures: str

    @property
    def sentence(self) -> str:
        return f"{self.figures} {self.refusal.sentence}"


@dataclass(frozen=True)
class DeviceCheck:
    """What of one device was shown, and how long its multiplication took on our clock."""

    memory: bool
    product: bool
    elapsed_us: int


def figures(
    plan: ChallengePlan, checks: Mapping[int, DeviceCheck], rates: Sequence[LinkRate], nvlink: NvlinkSettings
) -> list[Figures]:
    """The figures of everything that was challenged: devices, and the machine itself where it is none of them."""
    return [
        _figures(device, checks[device.task.index], nvlink_ppm(plan, device, rates, nvlink)) for device in plan.devices
    ]


def machine_figures(plan: ChallengePlan, challenged: Sequence[Figures], rules: ChallengeSettings) -> MachineFigures:
    """The figures of the machine. All the memory that it claims counts if it filled the share that was asked for."""
    shown = next(figures for figures in challenged if figures.index == plan.machine.index)
    claimed = plan.machine.cores
    cores = int(shown.measured_ops_per_s / (OPERATIONS_PER_CORE_S * rules.core_share))
    return MachineFigures(
        claimed_cores=claimed,
        measured_cores=min(claimed, max(1, cores)),
        claimed_mib=plan.machine.memory_mib,
        measured_mib=plan.machine.memory_mib if shown.measured_mib else 0,
        measured_ops_per_s=shown.measured_ops_per_s,
    )


def unsupported_claims(
    challenged: Sequence[Figures], checks: Mapping[int, DeviceCheck], rules: ChallengeSettings
) -> list[UnsupportedClaim]:
    """Every claim that the figures do not support; none is a pass."""
    return [finding for one in challenged for finding in _about(one, checks[one.index], rules)]


def reduced_claims(machine: MachineFigures) -> list[UnsupportedClaim]:
    """Every claim that counts for less than was said, and fails nobody."""
    if machine.measured_cores == machine.claimed_cores:
        return []
    measured = f"all at once did {_giga(machine.measured_ops_per_s)}, as {machine.measured_cores:,} would."
    claim = f"The machine claims {machine.claimed_cores:,} cores, which {measured}"
    return [UnsupportedClaim(ChallengeRefusal.CORES_NOT_SHOWN, claim)]


def nvlink_ppm(
    plan: ChallengePlan, device: ChallengedDevice, rates: Sequence[LinkRate], settings: NvlinkSettings
) -> int:
    """What the links of a device are worth: by what they carried, as a share of what its model can."""
    index = device.task.index
    claimed = {(pair.one, pair.other) for pair in plan.pairs}
    carried = {(rate.one, rate.other): rate.mb_per_s for rate in rates if (rate.one, rate.other) in claimed}
    both_ways_mb_per_s = 2 * sum(carried[pair] for pair in carried if index in pair)
    if not device.nvlink_gb_per_s or not both_ways_mb_per_s:
        return settings.without_ppm
    share_ppm = min(ONE_PPM, both_ways_mb_per_s * ONE_PPM // (device.nvlink_gb_per_s * 1000))
    if share_ppm < _LINK_LEAST_PPM:
        return settings.without_ppm
    return settings.low_ppm + (settings.high_ppm - settings.low_ppm) * share_ppm // ONE_PPM


def late(times: int) -> UnsupportedClaim:
    return UnsupportedClaim(ChallengeRefusal.CHALLENGE_LATE, f"The node was late; that is number {times} in a row.")


def missed() -> UnsupportedClaim:
    return UnsupportedClaim(ChallengeRefusal.CHALLENGE_MISSED, "The node could not be reached.")


def impossible(index: int, words: str) -> UnsupportedClaim:
    return UnsupportedClaim(ChallengeRefusal.CHALLENGE_IMPOSSIBLE, f"{_named(index)}: {words}")


def _figures(device: ChallengedDevice, check: DeviceCheck, of_links_ppm: int) -> Figures:
    speed = device.task.speed.operations * SECOND // max(1, check.elapsed_us) if check.product else 0
    ceiling = device.catalogue_ops_per_s or SPEED_MAX
    return Figures(
        index=device.task.index,
        name=device.name,
        claimed_mib=device.memory_mib,
        measured_mib=device.task.memory.mib if check.memory else 0,
        measured_ops_per_s=min(speed, ceiling),
        catalogue_ops_per_s=device.catalogue_ops_per_s,
        earlier_ops_per_s=device.earlier_ops_per_s,
        elapsed_us=check.elapsed_us,
        nvlink_ppm=of_links_ppm,
    )


def _about(device: Figures, check: DeviceCheck, rules: ChallengeSettings) -> Iterator[UnsupportedClaim]:
    name = f"{_named(device.index)}, {device.name},"
    if not check.memory:
        claim = f"{name} claims {device.claimed_mib:,} MiB and could not show what was asked for."
        yield UnsupportedClaim(ChallengeRefusal.MEMORY_NOT_SHOWN, claim)
    if not check.product:
        yield UnsupportedClaim(ChallengeRefusal.PRODUCT_WRONG, f"{name} showed rows that are not those of the product.")
        return
    measured = f"{name} did {_giga(device.measured_ops_per_s)}, the way to it and back included;"
    if device.measured_ops_per_s < device.catalogue_ops_per_s * rules.catalogue_share:
        least = f"its model does {_giga(device.catalogue_ops_per_s)}, and {rules.catalogue_share:.0%} of that is asked."
        yield UnsupportedClaim(ChallengeRefusal.SPEED_BELOW_CATALOGUE, f"{measured} {least}")
    if device.measured_ops_per_s < device.earlier_ops_per_s * rules.earlier_share:
        least = f"it did {_giga(device.earlier_ops_per_s)} before, and {rules.earlier_share:.0%} of that is asked."
        yield UnsupportedClaim(ChallengeRefusal.SPEED_BELOW_EARLIER, f"{measured} {least}")


def _named(index: int) -> str:
    return "The machine" if index == HOST else f"Device {index}"


def _giga(speed: int) -> str:
    return f"{speed / 10**9:,.1f} billion operations a second"
