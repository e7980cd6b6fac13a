"""The inflation experiment on a cluster's list of nodes and of pods: how much of its GPUs a policy can hand out.

Pods are sorted by name and shuffled; then pods drawn with replacement follow, until enough has been asked for. They are
placed in that order by the same pool that places tasks; nothing departs, and a pod that does not fit is passed over.
The figure is the share of all GPUs that is handed out when as much as there is was asked for, and 1.3 times that.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, pstdev
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.faults import Fault
from tidemill.core.placement.candidate import Candidate, Device, Market
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.policies.packed import Packed
from tidemill.core.placement.pool import Pool
from tidemill.core.placement.request import WHOLE_MILLI, Request

INFLATION = 1.3
KIND = "pod"

_NOBODY = UUID(int=0)
_START = Instant(0)


class UnreadableList(Fault):
    """A list of nodes or pods is not what it should be."""

    code = "unreadable_list"


@dataclass(frozen=True)
class Cluster:
    """Nodes with GPUs, and the pods that were run on them, sorted by name."""

    nodes: tuple[Candidate, ...]
    pods: tuple[Request, ...]

    @property
    def gpu_milli(self) -> int:
        return WHOLE_MILLI * sum(len(node.devices) for node in self.nodes)


@dataclass(frozen=True)
class Allocated:
    """Per cent of all GPUs, when arrivals reached 100 % and 130 %."""

    at_100_pct: float
    at_130_pct: float


@dataclass(frozen=True)
class Outcome:
    """The mean over seeds, and the deviation at 130 %."""

    policy: str
    at_100_pct: float
    at_130_pct: float
    sd: float

    @classmethod
    def of(cls, policy: str, runs: Sequence[Allocated]) -> "Outcome":
        last = [run.at_130_pct for run in runs]
        return cls(policy, fmean(run.at_100_pct for run in runs), fmean(last), pstdev(last))


def read_cluster(nodes: Path, pods: Path) -> Cluster:
    try:
        rows = sorted(_rows(nodes), key=lambda row: row["sn"])
        machines = tuple(_node(number, row) for number, row in enumerate(rows, start=1) if int(row["gpu"]))
        wanted = tuple(map(_pod, sorted(_rows(pods), key=lambda row: row["name"])))
    except (KeyError, ValueError, TypeError, AssertionError, csv.Error) as error:
        raise UnreadableList(f"One of the lists cannot be read ({error!r}): it needs the columns of openb.") from error
    cluster = Cluster(machines, wanted)
    if not any(pod.devices for pod in wanted) or not machines:
        raise UnreadableList("There is no node with a GPU in the list, or no pod that asks for one.")
    return cluster


def arrivals(cluster: Cluster, dice: Random) -> list[Request]:
    """All pods in a random order, and then as many more as inflation takes."""
    pods = list(cluster.pods)
    dice.shuffle(pods)
    asked_milli, enough_milli = sum(pod.asked_milli for pod in pods), INFLATION * cluster.gpu_milli
    while asked_milli < enough_milli:
        pods.append(dice.choice(cluster.pods))
        asked_milli += pods[-1].asked_milli
    return pods


def inflate(cluster: Cluster, policy: Policy, dice: Random) -> Allocated:
    """One run. A policy that learns from demand is told what the list asks for."""
    if isinstance(policy, Packed):
        policy = policy.knowing(Demand.of(cluster.pods))
    pool = Pool({"": policy}, Market.of(cluster.nodes))
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
    return Allocated(100 * (at_100_milli or given_milli) / total_milli, 100 * given_milli / total_milli)


def _rows(file: Path) -> list[Mapping[str, str]]:
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def _node(number: int, row: Mapping[str, str]) -> Candidate:
    devices = (Device(row["model"], 0),) * int(row["gpu"])
    return Candidate(
        UUID(int=number), _NOBODY, devices, int(row["cpu_milli"]), int(row["memory_mib"]), kinds=frozenset({KIND})
    )


def _pod(row: Mapping[str, str]) -> Request:
    """A pod with several GPUs gets them whole, whatever it says of parts."""
    devices = int(row["num_gpu"])
    milli = int(row["gpu_milli"] or 0)
    return Request(
        KIND,
        devices=devices,
        milli=milli if devices == 1 else WHOLE_MILLI,
        models=frozenset(filter(None, (row.get("gpu_spec") or "").split("|"))),
        cpu_milli=int(row["cpu_milli"]),
        memory_mib=int(row["memory_mib"]),
        policy="",
    )
