"""What is for sale, at which price, and how long a task takes there: one rule for quotes, for placement and for pay.

A node has one price per device-hour, and a task pays for its share of the machine: the largest of its shares of
devices, cores and memory. Known work is paid by its amount, at the reference speed of the device's model; a customer's
own program by its time. How long a task may take follows from the measured speed of the node's device, never from its
claims.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import NamedTuple
from uuid import UUID

from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.jobs.kinds.needs import ROOM, Needs
from tidemill.core.nodes.machine.gpu_types import GpuType
from tidemill.core.nodes.rules.rules import NodeRules
from tidemill.core.placement.candidate import Candidate
from tidemill.core.settings.sections.money import BonusFundSettings, MoneySettings, PlansSettings
from tidemill.core.settlement.pay import PayTerms, RewardPlan, UsedTime, attempt_pay, cost_max_uc

SPREAD = 3.0
"""An estimate of operations is right within this factor: see `core.kinds.needs`."""

START_MS = 2_000
"""The time to fetch a task, to start its sandbox and to send its result off."""

SANDBOX_MIB = 128
"""What a sandbox takes besides: shared memory and temporary files."""

USUAL_GPU_OPERATIONS_PER_S = 1e13
"""The reference speed of a GPU that the catalogue does not know."""

PLAUSIBLE_MS = 366 * 24 * 3_600_000
"""Nothing is quoted for longer than a year."""


class MachineSize(NamedTuple):
    """How much a whole machine has."""

    devices: int
    cores: int
    memory_mib: int


@dataclass(frozen=True)
class Seller:
    """A node that may get work, as if it had none. The speeds are those of its slowest GPU and of one core."""

    candidate: Candidate
    house: bool
    device_ops_per_s: float
    core_ops_per_s: float
    reference_ops_per_s: float = USUAL_GPU_OPERATIONS_PER_S
    """The speed by which work on one of its GPUs is paid."""

    @property
    def node_id(self) -> UUID:
        return self.candidate.node_id

    @property
    def price_uc(self) -> int:
        """Of a device-hour."""
        return self.candidate.price_uc

    @cached_property
    def size(self) -> MachineSize:
        """GPUs count as devices; a task that asks for none works with the processors."""
        candidate = self.candidate
        return MachineSize(len(candidate.devices), candidate.cpu_milli // 1_000, candidate.memory_mib)

    @cached_property
    def gpu_memory_mib(self) -> int:
        """Of its smallest GPU."""
        return min((device.memory_mib for device in self.candidate.devices), default=0)

    def speed(self, needs: Needs) -> float:
        """How fast it does such a task: with as many GPUs as it needs, or else with one core."""
        return self.device_ops_per_s * needs.devices if needs.devices else self.core_ops_per_s

    def terms(self, needs: Needs) -> PayTerms:
        """The terms of a task with these needs, where there is room for it."""
        return PayTerms(
            share_uc(self.price_uc, self.size, needs),
            quoted_ms(needs, self.speed(needs)),
            work_ms(needs, self.reference_ops_per_s),
        )

    def can_run(self, kind: str, needs: Needs) -> bool:
        """Whether it is large enough for a task, and carries out its kind."""
        size = self.size
        return (
            kind in self.candidate.kinds
            and size.memory_mib >= needs.memory_mib * ROOM + SANDBOX_MIB
            and size.cores >= needs.cores
            and size.devices >= needs.devices
            and (needs.devices == 0 or self.gpu_memory_mib >= needs.gpu_memory_mib)
        )


@dataclass(frozen=True)
class Supply:
    """Everything for sale at a moment, and the price of an hour where no node is available."""

    sellers: Sequence[Seller]
    default_uc: int
    houses: Sequence[Candidate] = ()
    """The pool's house nodes as whole machines, also those that get no work now."""

    @property
    def any_houses(self) -> Sequence[Candidate]:
        """Every house node that there is."""
        return [*self.houses, *(seller.candidate for seller in self.sellers if seller.house)]


def price_uc(rules: NodeRules, default_uc: int) -> int:
    """The price of a device-hour: the owner's, or the pool's usual one."""
    return default_uc if rules.asked_uc is None else rules.asked_uc


def share_uc(device_hour_uc: int, machine: MachineSize, needs: Needs) -> int:
    """What an hour of a task's share of a machine costs. A machine without GPUs is one device."""
    whole_uc = device_hour_uc * max(1, machine.devices)
    of_cores_uc = _up(whole_uc * needs.cores, max(needs.cores, machine.cores))
    of_memory_uc = _up(whole_uc * needs.memory_mib, max(1, needs.memory_mib, machine.memory_mib))
    return max(device_hour_uc * needs.devices, of_cores_uc, of_memory_uc)


def unit_prices_uc(device_hour_uc: int, machine: MachineSize, gpu_reference_ops_per_s: float) -> tuple[float, float]:
    """What work on a device costs by the operation, and an hour of one core: by these placement compares nodes."""
    whole_uc = device_hour_uc * max(1, machine.devices)
    return device_hour_uc / gpu_reference_ops_per_s, whole_uc / max(1, machine.cores)


def reference_ops_per_s(gpu: GpuType | None) -> float:
    """The speed by which work on a GPU of this model is paid, whatever this one can do."""
    return USUAL_GPU_OPERATIONS_PER_S if gpu is None else gpu.fp32_tflops * 1e12


def work_ms(needs: Needs, gpu_reference_ops_per_s: float) -> int:
    """The time that known work takes at the reference speed; zero for a customer's own program."""
    if needs.seconds:
        return 0
    of_devices = gpu_reference_ops_per_s * needs.devices
    return max(1, min(PLAUSIBLE_MS, ceil(_estimate_ms(needs, of_devices or OPERATIONS_PER_CORE_S * needs.cores))))


def quoted_ms(needs: Needs, operations_per_s: float) -> int:
    """The longest time that a task may take on a device of this measured speed."""
    if needs.seconds:
        return min(PLAUSIBLE_MS, needs.seconds * 1000)
    return min(PLAUSIBLE_MS, ceil(_estimate_ms(needs, operations_per_s) * SPREAD) + START_MS)


def least_ms(needs: Needs, operations_per_s: float) -> int:
    """The shortest time that it can be expected to take. A customer's own program may end at once."""
    if needs.seconds:
        return 1
    return min(PLAUSIBLE_MS, max(1, int(_estimate_ms(needs, operations_per_s) / SPREAD)))


def costs_uc(plan: RewardPlan, task_terms: PayTerms) -> tuple[int, int]:
    """What a customer pays for a result on these terms, from the least to the most."""
    return attempt_pay(plan, task_terms, UsedTime(0, 0)).cost_uc, cost_max_uc(plan, task_terms)


def plan_of(money: MoneySettings, fund: BonusFundSettings, plans: PlansSettings) -> RewardPlan:
    """The plan that this pool pays by."""
    return RewardPlan(
        commission_ppm=money.commission_ppm,
        fund_ppm=fund.commission_ppm,
        burn_ppm=money.burn_ppm,
        bonus_ppm=plans.market_early_ppm,
        bonus_max_ppm=plans.market_early_most_ppm,
        self_trade_loss_ppm=money.self_trade_loss_ppm,
        minimum_uc=plans.attempt_minimum_uc,
    )


def prices_uc(sellers: Iterable[Seller]) -> dict[str, list[int]]:
    """The prices of a device-hour, by model, the lowest first; processors are the model `cpu`."""
    prices: dict[str, list[int]] = {}
    for seller in sellers:
        prices.setdefault(seller.candidate.device_model or "cpu", []).append(seller.price_uc)
    return {model: sorted(model_prices) for model, model_prices in sorted(prices.items())}


def _estimate_ms(needs: Needs, operations_per_s: float) -> float:
    return needs.operations / max(1.0, operations_per_s) * 1000


def _up(amount: int, by: int) -> int:
    return -(-amount // by)
