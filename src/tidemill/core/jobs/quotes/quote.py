"""What a job will cost: a range, line by line, with the reasoning in sentences. Pure.

The lower end is the price on the cheapest node that fits, if the work goes as well as it can. The upper end is held,
and the job never costs more. It covers the cheapest four fifths of the nodes that fit, so that one expensive node does
not set the price. Where none fits, the pool's usual price and a usual speed stand for one, and the quote says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil
from typing import Any
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.currency import CREDIT
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.jobs.kinds.kind import CheckMethod
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.quotes import training
from tidemill.core.jobs.quotes.fit import NOTHING_FITS, Fit, Relaxation
from tidemill.core.jobs.quotes.fit import fitting as fitting_nodes
from tidemill.core.jobs.quotes.order import Order
from tidemill.core.jobs.quotes.quote_words import counted, durations, fit_told, span, spoken
from tidemill.core.jobs.quotes.tasks import OrderPart, demanded
from tidemill.core.money import AMOUNT_MAX_UC, credits_of
from tidemill.core.placement import supply as markets
from tidemill.core.placement.candidate import Candidate, CandidateDevice
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.rule import objections
from tidemill.core.placement.supply import USUAL_GPU_OPERATIONS_PER_S, Seller, Supply
from tidemill.core.placement.task_demand import for_house
from tidemill.core.settings.sections.market import MarketSettings
from tidemill.core.settings.sections.money import MoneySettings
from tidemill.core.settings.sections.work import ContainersSettings, JobsSettings
from tidemill.core.settlement.pay import HOUR_MS, PayTerms, RewardPlan, UsedTime, attempt_pay

COVERED = 0.8
"""The share of fitting nodes, the cheapest first, that the upper end pays for."""

CLASSES_MAX = 16
"""Tasks of one job are priced in at most so many classes by size; each costs as much as the largest of its class."""

COST_MAX_UC = AMOUNT_MAX_UC // 2
"""Nodes on which one task could cost more are left out: the books hold no more, with whatever commission."""

_CHECKS: Mapping[CheckMethod, str] = {
    CheckMethod.RECOMPUTE: "Each result is computed again.",
    CheckMethod.FREIVALDS: "Each product is proved and checked with random vectors.",
    CheckMethod.HASH: "Each result is made again by a house node, and must be the same.",
    CheckMethod.SIMILARITY: "Each result is made again by a house node, and must be alike.",
    CheckMethod.PIXELS: "Each picture is made again by a house node, and every pixel must be the same.",
    CheckMethod.REPLAY: "Each result is made again by a house node, and its files must be the same.",
}
_PROVED = frozenset({CheckMethod.RECOMPUTE, CheckMethod.FREIVALDS})
_WORK_BY_TIME = "What the owners of the nodes ask for, by the time that passes, up to the time quoted."
_WORK_BY_AMOUNT = "What the owners of the nodes ask for, by the amount of work, however long it takes."
_TRAINING_CHECK = "Weights are checked by replaying steps."
_CALLED_OFF = "If you call the job off, you pay for the time that its tasks have run, and no more than what is held."
_OWN_FAULT = (
    "The same goes for a program of yours that fails, or that gives another result each time it runs; then two runs by "
    "the house are charged, too."
)
_IS_EXPECTED = "Each result must have the hash that you expect."


@dataclass(frozen=True)
class QuoteRules:
    """The rules of a pool's quotes: the plan it pays by, how long a quote is valid, and when a run is too late."""

    plan: RewardPlan
    valid_us: int
    deadline_factor: float
    currency: str = CREDIT
    light_max: int = 1
    medium_max: int = 7
    heavy_max: int = 16
    containers: ContainersSettings = field(default_factory=ContainersSettings)


@dataclass(frozen=True)
class QuoteLine:
    """One line of the price."""

    what: str
    low_uc: int
    high_uc: int
    why: str


@dataclass(frozen=True)
class Quote:
    """A price from `low_uc` to `high_uc`, and hours of work from low to high, without the wait for free nodes.

    `costs_max_uc` is the most that each task may cost, and `limit_s` how long one may run. `is_rerun` says that a house
    node makes each result again, `has_house` that one is online which can, and `is_checkable` that the pool has one,
    online or not, which could. `nodes` are those that the price covers, of those that fit.
    """

    kind: str
    size: str
    tasks: int
    nodes: int
    devices: int
    memory_mib: int
    gpu_memory_mib: int
    low_uc: int
    high_uc: int
    hours_low: float
    hours_high: float
    lines: Sequence[QuoteLine]
    reasoning: Sequence[str]
    expires_at: Instant
    has_runner: bool
    costs_max_uc: Sequence[int] = ()
    limit_s: int = 0
    is_own_program: bool = False
    is_rerun: bool = False
    has_house: bool = True
    is_checkable: bool = True
    fit: Fit = NOTHING_FITS


def quote(
    order: Order, parts: Sequence[OrderPart], supply: Supply, rules: QuoteRules, customer_id: UUID | None, now: Instant
) -> Quote:
    """What an order costs today. `parts` are its tasks; a training has none."""
    if order.training is not None:
        return _of_training(order, supply, rules, Instant(now + rules.valid_us))
    part = max(parts, key=lambda part: part.needs.operations)
    largest, demand = part.needs, demanded(order, part, rules.containers)
    fit = fitting_nodes(order, replace(demand, customer_id=customer_id), supply.sellers, now)
    fitting = _affordable(fit.sellers, largest, rules.plan)
    sellers = fitting or [_usual(supply, order, largest)]
    least, most = _prices(sellers, [part.needs for part in parts], rules.plan)
    speeds = [seller.speed(largest) for seller in sellers]
    least_ms, most_ms = markets.least_ms(largest, max(speeds)), markets.quoted_ms(largest, min(speeds))
    rounds = ceil(len(parts) / len(sellers))
    low_uc, high_uc = sum(least), sum(most)
    return Quote(
        kind=order.kind,
        size=size_of(largest.devices * len(parts), rules),
        tasks=len(parts),
        nodes=len(fitting),
        devices=largest.devices,
        memory_mib=largest.memory_mib,
        gpu_memory_mib=largest.gpu_memory_mib,
        low_uc=low_uc,
        high_uc=high_uc,
        hours_low=least_ms * rounds / HOUR_MS,
        hours_high=most_ms * rounds / HOUR_MS,
        lines=_lines(low_uc, high_uc, rules.plan.commission_ppm, _check_of(order), by_time=largest.seconds > 0),
        reasoning=(*fit_told(fit.fit), *_reasoning(len(parts), largest, sellers, fitting, rules)),
        expires_at=Instant(now + rules.valid_us),
        has_runner=True,
        costs_max_uc=tuple(most),
        limit_s=largest.seconds or ceil(most_ms / 1000 * rules.deadline_factor),
        is_own_program=largest.seconds > 0,
        is_rerun=_is_rerun(order),
        has_house=_has_house(demand, [seller.candidate for seller in supply.sellers if seller.house], now),
        is_checkable=_could_check(order, parts, supply, rules, now),
        fit=fit.fit,
    )


def size_of(devices: int, rules: QuoteRules) -> str:
    """How large a job is, by the devices that it could use at once."""
    for name, most in (("light", rules.light_max), ("medium", rules.medium_max), ("heavy", rules.heavy_max)):
        if devices <= most:
            return name
    return "parallel"


def quote_json(quote_: Quote) -> dict[str, Any]:
    """A quote as JSON can hold it."""
    return asdict(quote_)


def quote_from_json(fields: Mapping[str, Any]) -> Quote:
    """The inverse."""
    lines = tuple(QuoteLine(**line) for line in fields["lines"])
    texts, costs = tuple(fields["reasoning"]), tuple(fields["costs_max_uc"])
    fit = fields["fit"]
    relax = None if fit["relax"] is None else Relaxation(**fit["relax"])
    nodes = Fit(fit["nodes"], fit["of"], relax, fit["lack"])
    told = {"lines": lines, "reasoning": texts, "costs_max_uc": costs, "fit": nodes}
    return Quote(**{**fields, **told})


def _affordable(fit: Sequence[Seller], needs: Needs, plan: RewardPlan) -> list[Seller]:
    """The cheapest of the nodes that fit."""
    ranked = sorted(
        (cost_uc, seller.node_id, seller)
        for seller in fit
        if seller.price_uc <= AMOUNT_MAX_UC
        and (cost_uc := markets.costs_uc(plan, seller.terms(needs))[1]) <= COST_MAX_UC
    )
    return [seller for _, _, seller in ranked[: ceil(len(ranked) * COVERED)]]


def _usual(supply: Supply, order: Order, needs: Needs) -> Seller:
    """A stand-in for a node where none fits."""
    hourly_uc = order.requirements.hourly_max_uc
    price_uc = supply.default_uc if hourly_uc is None else min(supply.default_uc, hourly_uc)
    device = CandidateDevice("", needs.gpu_memory_mib)
    machine = Candidate(
        node_id=UUID(int=0),
        owner_id=UUID(int=0),
        devices=(device,) * needs.devices,
        cpu_milli=needs.cores * 1_000,
        memory_mib=needs.memory_mib,
        price_uc=price_uc,
    )
    return Seller(machine, False, USUAL_GPU_OPERATIONS_PER_S, OPERATIONS_PER_CORE_S)


def _prices(sellers: Sequence[Seller], needs: Sequence[Needs], plan: RewardPlan) -> tuple[list[int], list[int]]:
    """The least and the most that each task costs on these nodes."""
    classes = _classes(needs)
    alike = {(seller.price_uc, seller.size, seller.reference_ops_per_s): seller for seller in sellers}.values()
    priced: dict[Needs, tuple[int, int]] = {}
    for class_needs in set(classes):
        costs = [markets.costs_uc(plan, seller.terms(class_needs)) for seller in alike]
        lows, highs = zip(*costs, strict=True)
        priced[class_needs] = max(1, min(lows)), max(1, *highs)
    return [priced[class_needs][0] for class_needs in classes], [priced[class_needs][1] for class_needs in classes]


def _classes(needs: Sequence[Needs]) -> list[Needs]:
    """Each task's needs, or the largest of its class where there are too many to price each."""
    distinct = sorted(set(needs), key=lambda task_needs: task_needs.operations)
    if len(distinct) <= CLASSES_MAX:
        return list(needs)
    width = ceil(len(distinct) / CLASSES_MAX)
    tops: dict[Needs, Needs] = {}
    for start in range(0, len(distinct), width):
        group = distinct[start : start + width]
        memory_mib, cores = (max(getattr(member, name) for member in group) for name in ("memory_mib", "cores"))
        tops.update(dict.fromkeys(group, replace(group[-1], memory_mib=memory_mib, cores=cores)))
    return [tops[task_needs] for task_needs in needs]


def _check_of(order: Order) -> str:
    check = _IS_EXPECTED if order.expected else _CHECKS[KINDS[order.kind].check(order.work)]
    return f"{check} Only what passes is paid. The pool pays for checks out of its commission."


def _is_rerun(order: Order) -> bool:
    """Whether a house node makes each result again to check it."""
    return not order.expected and KINDS[order.kind].check(order.work) not in _PROVED


def _could_check(order: Order, parts: Sequence[OrderPart], supply: Supply, rules: QuoteRules, now: Instant) -> bool:
    """Whether the pool has house nodes that could make each result again, once they are online, if it takes that."""
    if not _is_rerun(order):
        return True
    alike = {part.needs: part for part in parts}.values()
    return all(_has_house(demanded(order, part, rules.containers), supply.any_houses, now) for part in alike)


def _has_house(demand: Demand, houses: Sequence[Candidate], now: Instant) -> bool:
    """Whether one of these house nodes could make a result again."""
    checking = for_house(demand)
    return any(not any(objections(house, checking, now)) for house in houses)


def _lines(low_uc: int, high_uc: int, commission_ppm: int, check: str, *, by_time: bool) -> tuple[QuoteLine, ...]:
    """The price, divided as it will be paid: the owners' share, and the pool's commission on top."""
    low, high = (amount_uc * 1_000_000 // (1_000_000 + commission_ppm) for amount_uc in (low_uc, high_uc))
    return (
        QuoteLine("work", low, high, _WORK_BY_TIME if by_time else _WORK_BY_AMOUNT),
        QuoteLine("commission", low_uc - low, high_uc - high, f"{commission_ppm / 10_000:g} % on top, for the pool."),
        QuoteLine("verification", 0, 0, check),
    )


def _reasoning(
    tasks: int, needs: Needs, sellers: Sequence[Seller], fitting: Sequence[Seller], rules: QuoteRules
) -> tuple[str, ...]:
    share = f"{tasks} tasks, the largest of which needs" if tasks > 1 else "One task, which needs"
    cores, devices = counted(needs.cores, "core"), counted(needs.devices, "device")
    on = f"{devices} with {needs.gpu_memory_mib:,} MiB" if needs.devices else cores
    prices = [seller.price_uc for seller in sellers]
    between = f"{span(min(prices), max(prices))} {rules.currency}s"
    return (
        f"{share} {needs.memory_mib:,} MiB of memory, {needs.disk_mib:,} MiB of disk and {on}.",
        _of_time(needs),
        f"The price is that of {counted(len(fitting), 'node')} online that can do it, at {between} a device-hour."
        if fitting
        else f"No node that is online can do it. The pool's usual price of {between} and a usual speed stand for one; "
        "the job would wait until such a node comes.",
        "The upper end is held when you confirm, and what is not used goes back.",
        _CALLED_OFF,
        *((_OWN_FAULT,) if needs.seconds else ()),
    )


def _of_time(needs: Needs) -> str:
    if needs.seconds:
        return f"You say that a task takes up to {needs.seconds:,} seconds; it is stopped then, and may end earlier."
    return (
        f"It takes about {spoken(needs.operations)} operations, known within a factor of {markets.SPREAD:g}; "
        "the time follows from what was measured of each node."
    )


def _of_training(order: Order, supply: Supply, rules: QuoteRules, expires_at: Instant) -> Quote:
    """An estimate only: it cannot be confirmed."""
    assert order.training
    estimate = training.estimate(order.training)
    owned = sorted(seller.price_uc for seller in supply.sellers if seller.gpu_memory_mib >= training.DEVICE_MIB // 2)
    prices = owned[: ceil(len(owned) * COVERED)] or [supply.default_uc]
    ends = [
        attempt_pay(rules.plan, PayTerms(price_uc * estimate.devices, ms), UsedTime(ms, ms)).cost_uc
        for price_uc, ms in zip(
            (prices[0], prices[-1]), (ceil(hours * HOUR_MS) for hours in estimate.hours), strict=True
        )
    ]
    source = "asked by nodes with such devices" if owned else "the pool's usual one, since no such node is online"
    between = f"{span(prices[0], prices[-1])} {rules.currency}s"
    return Quote(
        kind=order.kind,
        size=size_of(estimate.devices, rules),
        tasks=estimate.devices,
        nodes=len(owned),
        fit=Fit(len(owned), len(supply.sellers)),
        devices=estimate.devices,
        memory_mib=0,
        gpu_memory_mib=estimate.memory_mib,
        low_uc=ends[0],
        high_uc=ends[1],
        hours_low=estimate.hours[0],
        hours_high=estimate.hours[1],
        lines=_lines(ends[0], ends[1], rules.plan.commission_ppm, _TRAINING_CHECK, by_time=True),
        reasoning=(
            _training_told(order, estimate.hours, (ends[0], ends[1]), rules.currency),
            *estimate.reasoning,
            f"The price of a device-hour is {source}: {between}.",
            "No runner of this pool trains yet, so this is an estimate, and cannot be confirmed.",
        ),
        expires_at=expires_at,
        has_runner=False,
    )


def _training_told(order: Order, hours: tuple[float, float], ends: tuple[int, int], currency: str) -> str:
    """How long it takes and what it costs, before all else; and what the budget would buy."""
    assert order.training
    takes = durations(*(hour * 3600 for hour in hours))
    told = f"It takes {takes} and costs {span(*ends)} {currency}s."
    if order.budget_uc is None or ends[1] <= order.budget_uc:
        return told
    times = ends[1] / order.budget_uc
    share = training.within(order.training, order.budget_uc / ends[1])
    budget = f"{credits_of(order.budget_uc)} {currency}s"
    far = f"{times:,.0f} times" if times >= 2 else "above"
    return f"{told} That is {far} your budget of {budget}, which is enough for {share}."


def rules_of(
    plan: RewardPlan,
    money: MoneySettings,
    market: MarketSettings,
    jobs: JobsSettings,
    containers: ContainersSettings,
) -> QuoteRules:
    """The rules of this pool."""
    return QuoteRules(
        plan=plan,
        valid_us=int(market.quote_valid_s * SECOND),
        deadline_factor=jobs.deadline_factor,
        currency=money.currency,
        light_max=jobs.light_devices_max,
        medium_max=jobs.medium_devices_max,
        heavy_max=jobs.heavy_devices_max,
        containers=containers,
    )
