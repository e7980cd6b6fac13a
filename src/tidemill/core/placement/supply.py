"""What is for sale, at which price, and how long a task takes there: one rule for quotes, for placement and for pay.

A node has one price per device-hour, and a task pays for its share of the machine: the largest of its shares of
devices, cores and memory. Known work is paid by its amount, at the reference speed of the device's model; a customer's
own program by its time. How long a task may take follows from the measured speed of the node's device, never from its
claims.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple
from uuid import UUID

from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.jobs.kinds.needs import ROOM, Needs
from tidemill.core.nodes.machine.gpu_types import GpuType
from tidemill.core.nodes.rules.rules import NodeRules
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


@dataclass(frozen=True, slots=True)
class SupplyNode:
    """A node that may get work: its price per device-hour, the speed of one core, and of its slowest GPU.

    `devices` counts GPUs; a task that asks for none works with the processors. Memory is one GPU's and the machine's.
    """

    node_id: UUID
    owner_id: UUID
    price_uc: int
    core_operations_per_s: float
    gpu_operations_per_s: float = 0.0
    devices: int = 0
    gpu_memory_mib: int = 0
    memory_mib: int = 0
    cores: int = 1
    kinds: frozenset[str] = frozenset()
    device_model: str = ""
    region: str = ""
    house: bool = False
    reference_ops_per_s: float = USUAL_GPU_OPERATIONS_PER_S
    """The reference speed of one of its GPUs."""

    @property
    def size(self) -> MachineSize:
        return MachineSize(self.devices, self.cores, self.memory_mib)


@dataclass(frozen=True)
class Supply:
    """Everything for sale at a moment, and the price of an hour where no node is available."""

    nodes: Sequence[SupplyNode]
    default_uc: int


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


def terms(needs: Needs, node: SupplyNode) -> PayTerms:
    """The terms of a task with these needs on a node that has room for it."""
    return PayTerms(
        share_uc(node.price_uc, node.size, needs),
        quoted_ms(needs, speed_of(node, needs)),
        work_ms(needs, node.reference_ops_per_s),
    )


def speed_of(node: SupplyNode, needs: Needs) -> float:
    """How fast a node does such a task: with as many GPUs as it needs, or else with one core."""
    return node.gpu_operations_per_s * needs.devices if needs.devices else node.core_operations_per_s


def can_run(node: SupplyNode, kind: str, needs: Needs) -> bool:
    """Whether a node is large enough for a task, and carries out its kind."""
    return (
        kind in node.kinds
        and node.memory_mib >= needs.memory_mib * ROOM + SANDBOX_MIB
        and node.cores >= needs.cores
        and node.devices >= needs.devices
        and (needs.devices == 0 or node.gpu_memory_mib >= needs.gpu_memory_mib)
    )


def fitting(supply: Supply, kind: str, needs: Needs, customer_id: UUID | None) -> list[SupplyNode]:
    """The nodes that a task may be placed on. Nobody works for themselves."""
    return [node for node in supply.nodes if node.owner_id != customer_id and can_run(node, kind, needs)]


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


def prices_uc(nodes: Iterable[SupplyNode]) -> dict[str, list[int]]:
    """The prices of a device-hour, by model, the lowest first; processors are the model `cpu`."""
    prices: dict[str, list[int]] = {}
    for node in nodes:
        prices.setdefault(node.device_model or "cpu", []).append(node.price_uc)
    return {model: sorted(model_prices) for model, model_prices in sorted(prices.items())}


def _estimate_ms(needs: Needs, operations_per_s: float) -> float:
    return needs.operations / max(1.0, operations_per_s) * 1000


def _up(amount: int, by: int) -> int:
    return -(-amount // by)
