"""The inflation experiment on a cluster's lists of nodes and pods: how much of its GPUs a policy can allocate.

Pods are sorted by name and shuffled; then pods drawn with replacement follow, until enough has been demanded. They are
placed in that order by the same pool that places tasks; nothing departs, and a pod that does not fit is skipped. The
figure is the share of all GPUs allocated when the demand reaches all there is, and 1.3 times that.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from random import Random
from statistics import fmean, pstdev
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.faults import Fault
from tidemill.core.placement.candidate import Candidate, CandidateDevice, MedianPrices
from tidemill.core.placement.demand import WHOLE_MILLI, Demand
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.policies.packed import PackedPolicy
from tidemill.core.placement.workload import Workload

INFLATION = 1.3
KIND = "pod"
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
GPUS_MAX = 256
MACHINE_MAX = 2**31 - 1
DIGITS_MAX = 20

_NOBODY = UUID(int=0)
_START = Instant(0)


class UnreadableList(Fault):
    """A list of nodes or pods is not what it should be."""

    code = "unreadable_list"


@dataclass(frozen=True)
class Cluster:
    """Nodes with GPUs, and the pods that were run on them, sorted by name."""

    nodes: tuple[Candidate, ...]
    pods: tuple[Demand, ...]

    @property
    def gpu_milli(self) -> int:
        return WHOLE_MILLI * sum(len(node.devices) for node in self.nodes)


@dataclass(frozen=True)
class Allocation:
    """Per cent of all GPUs, when arrivals reached 100 % and 130 %."""

    at_100_pct: float
    at_130_pct: float


@dataclass(frozen=True)
class PolicyOutcome:
    """The mean over seeds, and the deviation at 130 %."""

    policy: str
    at_100_pct: float
    at_130_pct: float
    sd: float

    @classmethod
    def of(cls, policy: str, runs: Sequence[Allocation]) -> "PolicyOutcome":
        at_130_pct = [run.at_130_pct for run in runs]
        return cls(policy, fmean(run.at_100_pct for run in runs), fmean(at_130_pct), pstdev(at_130_pct))


def read_cluster(nodes: Path, pods: Path) -> Cluster:
    """The lists in the files; a fault that names the file and the row if one cannot be read."""
    machines = tuple(
        candidate for number, row in enumerate(_rows(nodes, NODE_COLUMNS), start=1) if (candidate := _node(number, row))
    )
    demands = tuple(map(_pod, _rows(pods, POD_COLUMNS)))
    cluster = Cluster(machines, demands)
    if not any(pod.devices for pod in demands) or not machines:
        raise UnreadableList("There is no node with a GPU in the list, or no pod that asks for one.")
    return cluster


def arrivals(cluster: Cluster, dice: Random) -> list[Demand]:
    """All pods in a random order, and then as many more as inflation takes."""
    pods = list(cluster.pods)
    dice.shuffle(pods)
    asked_milli, enough_milli = sum(pod.asked_milli for pod in pods), INFLATION * cluster.gpu_milli
    while asked_milli < enough_milli:
        pods.append(dice.choice(cluster.pods))
        asked_milli += pods[-1].asked_milli
    return pods


def inflate(cluster: Cluster, policy: Policy, dice: Random) -> Allocation:
    """One run. A policy that learns from the workload gets that of the list."""
    if isinstance(policy, PackedPolicy):
        policy = policy.knowing(Workload.of(cluster.pods))
    pool = CandidatePool({"": policy}, MedianPrices.of(cluster.nodes))
    for node in cluster.nodes:
        pool.put(node)
    total_milli, asked_milli, given_milli = cluster.gpu_milli, 0, 0
    at_100_milli: int | None = None
    for pod in arrivals(cluster, dice):
        asked_milli += pod.asked_milli
        if pool.place(pod, _START) is not None:
            given_milli += pod.asked_milli
        if at_100_milli is None and asked_milli >= total_milli:
            at_100_milli = given_milli
        if asked_milli >= INFLATION * total_milli:
            break
    return Allocation(100 * (at_100_milli or given_milli) / total_milli, 100 * given_milli / total_milli)


class ListRow:
    """A row of a list, with its position for faults."""

    def __init__(self, file: Path, number: int, texts: Mapping[str, str | None]) -> None:
        self._where, self._texts = f"Row {number} of {file}", texts

    def text(self, column: str) -> str:
        return (self._texts.get(column) or "").strip()

    def whole(self, column: str, most: int, least: int = 0) -> int:
        """A whole number between bounds."""
        text = self.text(column)
        number = int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS_MAX else -1
        if not least <= number <= most:
            raise UnreadableList(
                f"{self._where} cannot be used: {column} is {text[:40]!r} and no whole number from {least} to {most}."
            )
        return number


def _rows(file: Path, columns: Sequence[str]) -> list[ListRow]:
    """All rows, in the order of the names in the first column."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            read = csv.DictReader(opened)
            rows = [(row.get(columns[0]) or "", number, row) for number, row in enumerate(read, start=2)]
            header = read.fieldnames or ()
    except UnicodeDecodeError as error:
        raise UnreadableList(f"{file} is no text: a list is CSV with the columns {', '.join(columns)}.") from error
    except csv.Error as error:
        raise UnreadableList(f"{file} is no CSV ({error}): a list has the columns {', '.join(columns)}.") from error
    if missing := [column for column in columns if column not in header]:
        raise UnreadableList(f"{file} lacks {', '.join(missing)}: a list has the columns {', '.join(columns)}.")
    return [ListRow(file, number, row) for _, number, row in sorted(rows, key=itemgetter(0))]


def _node(number: int, row: ListRow) -> Candidate | None:
    """A node; None if it has no GPU."""
    devices = (CandidateDevice(row.text("model"), 0),) * row.whole("gpu", GPUS_MAX)
    if not devices:
        return None
    machine = (row.whole("cpu_milli", MACHINE_MAX), row.whole("memory_mib", MACHINE_MAX))
    return Candidate(UUID(int=number), _NOBODY, devices, *machine, kinds=frozenset({KIND}))


def _pod(row: ListRow) -> Demand:
    """A pod with several GPUs gets them whole, whatever it says of parts."""
    devices = row.whole("num_gpu", GPUS_MAX)
    return Demand(
        KIND,
        devices=devices,
        milli=row.whole("gpu_milli", WHOLE_MILLI, 1) if devices == 1 else WHOLE_MILLI,
        device_models=frozenset(filter(None, row.text("gpu_spec").split("|"))),
        cpu_milli=row.whole("cpu_milli", MACHINE_MAX),
        memory_mib=row.whole("memory_mib", MACHINE_MAX),
        policy="",
    )
