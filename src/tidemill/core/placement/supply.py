"""What is for sale, at which price, and how long a task takes there: one rule for quotes, for placement and for pay.

A node has one price per device-hour, and a task without a device pays for one. How long a task takes follows from the
measured speed of the node's device, never from its claims. Estimates of operations are right within a factor of three,
so a quote has two ends, and the upper one is the most that a node may be paid.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from uuid import UUID

from tidemill.core.jobs.kinds.needs import ROOM, Needs
from tidemill.core.nodes.rules.rules import NodeRules
from tidemill.core.settings.sections.money import BonusFundSettings, MoneySettings, PlansSettings
from tidemill.core.settlement.rewards import RewardPlan, attempt_pay, cost_max_uc

SPREAD = 3.0
"""An estimate of operations is right within this factor: see `core.kinds.needs`."""

START_MS = 2_000
"""The time to fetch a task, to start its sandbox and to send its result off."""

SANDBOX_MIB = 128
"""What a sandbox takes besides: shared memory and temporary files."""

PLAUSIBLE_MS = 366 * 24 * 3_600_000
"""Nothing is quoted for longer than a year."""


@dataclass(frozen=True, slots=True)
class SupplyNode:
    """A node that may get work: its price per device-hour, the speed of its processors, and of its slowest GPU.

    `devices` counts GPUs; a task that asks for none works with the processors. Memory is one GPU's and the machine's.
    """

    node_id: UUID
    owner_id: UUID
    price_uc: int
    cpu_operations_per_s: float
    gpu_operations_per_s: float = 0.0
    devices: int = 0
    gpu_memory_mib: int = 0
    memory_mib: int = 0
    cores: int = 1
    kinds: frozenset[str] = frozenset()
    device_model: str = ""
    region: str = ""
    house: bool = False


@dataclass(frozen=True)
class Supply:
    """Everything for sale at a moment, and the price of an hour where no node is available."""

    nodes: Sequence[SupplyNode]
    default_uc: int


@dataclass(frozen=True, slots=True)
class TaskTerms:
    """The terms of a task on a node: its price an hour, and its time from the least to the most that is paid."""

    hourly_uc: int
    least_ms: int
    quoted_ms: int


def hourly_uc(rules: NodeRules, default_uc: int, devices: int = 0) -> int:
    """The price of an hour of a node for a task with so many devices: the owner's price, or the pool's usual one."""
    asked_uc = rules.asked_uc
    return (default_uc if asked_uc is None else asked_uc) * max(1, devices)


def quoted_ms(needs: Needs, operations_per_s: float) -> int:
    """The longest time that a task is paid for on a device of this measured speed."""
    if needs.seconds:
        return min(PLAUSIBLE_MS, needs.seconds * 1000)
    return min(PLAUSIBLE_MS, ceil(_estimate_ms(needs, operations_per_s) * SPREAD) + START_MS)


def least_ms(needs: Needs, operations_per_s: float) -> int:
    """The shortest time that it can be expected to take. A customer's own program may end at once."""
    if needs.seconds:
        return 1
    return min(PLAUSIBLE_MS, max(1, int(_estimate_ms(needs, operations_per_s) / SPREAD)))


def terms(needs: Needs, node: SupplyNode) -> TaskTerms:
    """The terms of a task with these needs on a node that has room for it."""
    price_uc = node.price_uc * max(1, needs.devices)
    speed = speed_of(node, needs)
    return TaskTerms(price_uc, least_ms(needs, speed), quoted_ms(needs, speed))


def speed_of(node: SupplyNode, needs: Needs) -> float:
    """How fast a node does such a task: with as many GPUs as it needs, or else with its processors."""
    return node.gpu_operations_per_s * needs.devices if needs.devices else node.cpu_operations_per_s


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


def costs_uc(plan: RewardPlan, task_terms: TaskTerms) -> tuple[int, int]:
    """What a customer pays for a task on these terms, from the least to the most."""
    least_uc = attempt_pay(plan, task_terms.hourly_uc, task_terms.quoted_ms, task_terms.least_ms).cost_uc
    return least_uc, cost_max_uc(plan, task_terms.hourly_uc, task_terms.quoted_ms)


def plan_of(money: MoneySettings, fund: BonusFundSettings, plans: PlansSettings) -> RewardPlan:
    """The plan that this pool pays by."""
    return RewardPlan(
        commission_ppm=money.commission_ppm,
        fund_ppm=fund.commission_ppm,
        burn_ppm=money.burn_ppm,
        bonus_ppm=plans.market_early_ppm,
        bonus_max_ppm=plans.market_early_most_ppm,
        self_trade_loss_ppm=money.self_trade_loss_ppm,
    )


def prices_uc(nodes: Iterable[SupplyNode]) -> dict[str, list[int]]:
    """The prices of a device-hour, by model, the lowest first; processors are the model `cpu`."""
    prices: dict[str, list[int]] = {}
    for node in nodes:
        prices.setdefault(node.device_model or "cpu", []).append(node.price_uc)
    return {model: sorted(model_prices) for model, model_prices in sorted(prices.items())}


def _estimate_ms(needs: Needs, operations_per_s: float) -> float:
    return needs.operations / max(1.0, operations_per_s) * 1000
