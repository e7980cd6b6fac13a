"""How many nodes an order fits, and which one limit keeps most of the others away. Pure.

The rule of placement decides which nodes fit, as if they had nothing to do. Where few do, each limit that the customer
can change is tried by itself: it is relaxed as far as four fifths of the nodes need that fail it alone, so that one odd
node does not set it, and whoever has no objection then would fit.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import ceil
from typing import NamedTuple

from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds.guide import GUIDES
from tidemill.core.jobs.kinds.needs import ROOM
from tidemill.core.jobs.quotes import chunks
from tidemill.core.jobs.quotes.order import Order
from tidemill.core.money import credits_of
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.rule import PlacementObjection, objections
from tidemill.core.placement.supply import Seller
from tidemill.core.placement.task_demand import usable_mib

COVERED = 0.8
"""The share of the nodes kept away by one limit alone that relaxing it lets in."""

FEW = 0.5
"""Where a smaller share of the nodes fits, a limit to relax is looked for."""

_INSTALLED = {"container": "Docker or Podman", "embed": "the embedding model MiniLM", "script": "a sandbox"}
"""What a node of some kinds must have installed."""

STEP_MIB = 256
GIB_MIB = 1024


@dataclass(frozen=True)
class Relaxation:
    """One limit, relaxed: so many nodes would fit then."""

    field: str
    before: str
    to: str
    nodes: int
    sentence: str


@dataclass(frozen=True)
class Fit:
    """How many nodes fit, of how many that may get work now."""

    nodes: int
    of: int
    relax: Relaxation | None = None
    lack: str = ""
    """Where none fits and no limit can be relaxed: what the nodes lack, in a sentence."""


NOTHING_FITS = Fit(0, 0)


class FittingNodes(NamedTuple):
    """The sellers that fit, and what is told of it."""

    sellers: Sequence[Seller]
    fit: Fit


class _Case(NamedTuple):
    """The nodes that one limit alone keeps away from a demand."""

    order: Order
    demand: Demand
    kept_away: Sequence[Seller]


class _Relaxed(NamedTuple):
    """A demand with one limit relaxed, and in which words."""

    demand: Demand
    field: str
    before: str
    to: str
    words: str


def fitting(order: Order, demand: Demand, sellers: Sequence[Seller], now: Instant) -> FittingNodes:
    """The nodes that a task may be placed on when they have nothing else to do."""
    fit: list[Seller] = []
    alone: dict[PlacementObjection, list[Seller]] = defaultdict(list)
    counts = Counter[PlacementObjection]()
    for seller in sellers:
        against = list(objections(seller.candidate, demand, now))
        counts.update(against)
        if not against:
            fit.append(seller)
        elif len(against) == 1:
            alone[against[0]].append(seller)
    relax = _best(order, demand, alone, len(fit), now) if len(fit) < FEW * len(sellers) else None
    lack = "" if fit or relax else _lack(demand, counts, len(sellers))
    return FittingNodes(fit, Fit(len(fit), len(sellers), relax, lack))


def size_text(size_mib: int) -> str:
    """A size as a customer can write it in an order."""
    return f"{size_mib}MiB" if size_mib % STEP_MIB else f"{size_mib / GIB_MIB:g}GiB"


def _best(
    order: Order, demand: Demand, alone: Mapping[PlacementObjection, Sequence[Seller]], fit: int, now: Instant
) -> Relaxation | None:
    """The relaxation that lets most nodes in; None if none lets any in."""
    best: Relaxation | None = None
    for against, kept_away in alone.items():
        relaxed = _RELAX[against](_Case(order, demand, kept_away)) if against in _RELAX else None
        if relaxed is None:
            continue
        more = sum(not any(objections(seller.candidate, relaxed.demand, now)) for seller in kept_away)
        if more and (best is None or fit + more > best.nodes):
            nodes = fit + more
            sentence = f"{relaxed.words}, {nodes:,} node{'' if nodes == 1 else 's'} would fit."
            best = Relaxation(relaxed.field, relaxed.before, relaxed.to, nodes, sentence)
    return best


def _lack(demand: Demand, counts: Counter[PlacementObjection], nodes: int) -> str:
    """What keeps most of the nodes away, in a sentence; of equals, what the rule looks at first."""
    if not counts:
        return ""
    [(against, count)] = counts.most_common(1)
    who = "none of them has" if count == nodes else f"{count:,} of {nodes:,} nodes lack"
    if against is PlacementObjection.KIND_NOT_OFFERED:
        needed = _INSTALLED.get(demand.kind, f"what {demand.kind} needs")
        return f"It needs {needed}, which {who} (or its owner does not allow it)."
    if against is PlacementObjection.MODEL_DIFFERS:
        return f"It needs {'a GPU of a model that it asks for' if demand.device_models else 'a GPU'}, which {who}."
    return f"Of {nodes:,} node{'' if nodes == 1 else 's'}, this keeps {count:,} away: {against.sentence}"


def _covering(values: Iterable[int], *, downwards: bool) -> int:
    """The mildest value that lets four fifths of the nodes in."""
    mildest_first = sorted(values, reverse=downwards)
    return mildest_first[ceil(COVERED * len(mildest_first)) - 1]


def _commonest(values: Iterable[str]) -> str | None:
    """The value that most nodes have, the first by name among equals."""
    counts = Counter(value for value in values if value)
    return min(counts, key=lambda value: (-counts[value], value), default=None)


def _parameter(order: Order, name: str) -> str | None:
    """The order's field for a parameter, if its kind has it."""
    has_it = any(field.name == name for field in fields(GUIDES[order.kind].shape))
    return f"parameters.{name}" if has_it else None


def _models(case: _Case) -> _Relaxed | None:
    model = _commonest(device.device_model for seller in case.kept_away for device in seller.candidate.devices[:1])
    if model is None:
        return None
    wider, asked = case.demand.device_models | {model}, ", ".join(sorted(case.demand.device_models))
    words = f"With {model} as well as {asked}"
    return _Relaxed(replace(case.demand, device_models=wider), "gpu_models", asked, ", ".join(sorted(wider)), words)


def _gpu_memory(case: _Case) -> _Relaxed | None:
    asked_mib = case.order.requirements.gpu_memory_mib
    stated_mib = getattr(case.order.work, "gpu_memory_mib", 0)
    field, before_mib = ("gpu_memory", asked_mib) if usable_mib(asked_mib) >= stated_mib else (
        "parameters.gpu_memory_mib",
        stated_mib,
    )  # fmt: skip
    largest = [max(device.memory_mib for device in seller.candidate.devices) for seller in case.kept_away]
    to_mib = _covering(largest, downwards=True) // STEP_MIB * STEP_MIB
    if not before_mib or to_mib <= 0:
        return None
    words = f"With {_spoken(to_mib)} instead of {_spoken(before_mib)} of GPU memory"
    relaxed = replace(case.demand, gpu_memory_mib=to_mib)
    return _Relaxed(relaxed, field, *_sizes(field, before_mib, to_mib), words)


def _gpu_count(case: _Case) -> _Relaxed | None:
    """Nodes that have too few devices of the right kind: as if they had none of another."""
    count = _covering((len(seller.candidate.devices) for seller in case.kept_away), downwards=True)
    if not 0 < count < case.demand.devices:
        return None
    field = "parameters.devices" if case.order.gpu_count is None else "gpu_count"
    words = f"With {count} instead of {case.demand.devices} GPUs"
    return _Relaxed(replace(case.demand, devices=count), field, str(case.demand.devices), str(count), words)


def _nvlink(case: _Case) -> _Relaxed | None:
    return _Relaxed(replace(case.demand, nvlink=False), "nvlink", "true", "false", "Without NVLink")


def _cores(case: _Case) -> _Relaxed | None:
    field = _parameter(case.order, "cores")
    cores = _covering((seller.candidate.cpu_milli // 1_000 for seller in case.kept_away), downwards=True)
    if field is None or cores < 1:
        return None
    before = case.demand.cpu_milli // 1_000
    words = f"With {cores} instead of {before} cores"
    return _Relaxed(replace(case.demand, cpu_milli=cores * 1_000), field, str(before), str(cores), words)


def _memory(case: _Case) -> _Relaxed | None:
    """A run may take more than was asked for, and its sandbox takes some besides."""
    stated_mib = getattr(case.order.work, "memory_mib", 0)
    field = "memory" if case.order.memory_mib > stated_mib else _parameter(case.order, "memory_mib")
    before_mib = max(case.order.memory_mib, stated_mib)
    besides_mib = case.demand.memory_mib - ceil(before_mib * ROOM)
    room_mib = _covering((seller.candidate.memory_mib for seller in case.kept_away), downwards=True) - besides_mib
    needed_mib = chunks.DIVIDED[case.order.kind].whole(case.order.work, case.order.parameters).memory_mib
    least_mib = needed_mib if field == "memory" else 1
    to_mib = max(least_mib, int(room_mib / ROOM) // STEP_MIB * STEP_MIB)
    if field is None or not 0 < to_mib < before_mib:
        return None
    words = f"With {_spoken(to_mib)} instead of {_spoken(before_mib)} of memory"
    relaxed = replace(case.demand, memory_mib=besides_mib + ceil(to_mib * ROOM))
    return _Relaxed(relaxed, field, *_sizes(field, before_mib, to_mib), words)


def _hourly(case: _Case) -> _Relaxed | None:
    before_uc = case.demand.price_max_uc or 0
    to_uc = _covering((seller.price_uc for seller in case.kept_away), downwards=False)
    before, to = credits_of(before_uc), credits_of(to_uc)
    words = f"With {to} instead of {before} for a device-hour"
    return _Relaxed(replace(case.demand, price_max_uc=to_uc), "hourly", before, to, words)


def _reputation(case: _Case) -> _Relaxed | None:
    floor = _covering((seller.candidate.reputation for seller in case.kept_away), downwards=True)
    before, to = f"{case.demand.reputation_floor / 10:g}", f"{floor / 10:g}"
    words = f"With a reputation of {to} instead of {before}"
    return _Relaxed(replace(case.demand, reputation_floor=floor), "reputation", before, to, words)


def _regions(case: _Case) -> _Relaxed | None:
    asked = ", ".join(sorted(case.demand.regions))
    region = _commonest(seller.candidate.region for seller in case.kept_away)
    if region is None:
        return _Relaxed(replace(case.demand, regions=frozenset()), "regions", asked, "", "In any region")
    wider = case.demand.regions | {region}
    words = f"With the region {region} as well as {asked}"
    return _Relaxed(replace(case.demand, regions=wider), "regions", asked, ", ".join(sorted(wider)), words)


def _labels(case: _Case) -> _Relaxed | None:
    """Leave out the one label that most of those lack which lack only one."""
    asked = case.order.requirements.labels
    missing = [asked - seller.candidate.labels for seller in case.kept_away]
    label = _commonest(next(iter(labels)) for labels in missing if len(labels) == 1)
    if label is None:
        return None
    before, to = (", ".join(sorted(labels)) for labels in (asked, asked - {label}))
    relaxed = replace(case.demand, labels=case.demand.labels - {label})
    return _Relaxed(relaxed, "labels", before, to, f"Without the label {label}")


def _avoid(case: _Case) -> _Relaxed | None:
    avoided = ", ".join(sorted(map(str, case.demand.excluded_nodes)))
    relaxed = replace(case.demand, excluded_nodes=frozenset())
    return _Relaxed(relaxed, "avoid", avoided, "", "Without nodes to avoid")


_RELAX: Mapping[PlacementObjection, Callable[["_Case"], _Relaxed | None]] = {
    PlacementObjection.MODEL_DIFFERS: _models,
    PlacementObjection.DEVICE_MEMORY_TOO_SMALL: _gpu_memory,
    PlacementObjection.DEVICES_BUSY: _gpu_count,
    PlacementObjection.NVLINK_MISSING: _nvlink,
    PlacementObjection.PROCESSOR_BUSY: _cores,
    PlacementObjection.MEMORY_BUSY: _memory,
    PlacementObjection.TOO_DEAR: _hourly,
    PlacementObjection.REPUTATION_TOO_LOW: _reputation,
    PlacementObjection.REGION_DIFFERS: _regions,
    PlacementObjection.LABELS_MISSING: _labels,
    PlacementObjection.EXCLUDED: _avoid,
}
"""How the limit behind an objection is relaxed. What no customer can change is not here."""


def _sizes(field: str, before_mib: int, to_mib: int) -> tuple[str, str]:
    """Both sizes as the field is written: parameters are numbers of MiB."""
    if field.startswith("parameters."):
        return str(before_mib), str(to_mib)
    return size_text(before_mib), size_text(to_mib)


def _spoken(size_mib: int) -> str:
    return f"{size_mib * 10 // GIB_MIB / 10:,g} GiB" if size_mib >= GIB_MIB else f"{size_mib} MiB"
