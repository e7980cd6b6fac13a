"""Worlds and task types from a cluster's lists of nodes and pods.

The lists contain machines and what pods took of them, not owners, prices or speeds: so each node is a provider of its
own, all have the same price, and all are equally fast. Where pods have times, tasks last in proportion to them.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from uuid import UUID

from tidemill.core.placement.demand import Demand
from tidemill.core.placement.supply import Seller
from tidemill.sim.days.worlds.task_types import TaskType
from tidemill.sim.days.worlds.world import Member, World, WorldFault, checked_world
from tidemill.sim.openb.experiment import Cluster, read_cluster

HOURLY_UC = 1_000_000
SPEED = 1e12
TIME_MAX_S = 2**40

_PROVIDERS = 1 << 64


def world_of(cluster: Cluster) -> World:
    """The nodes with GPUs of a list."""
    members = []
    for number, node in enumerate(cluster.nodes):
        candidate = replace(node, owner_id=UUID(int=_PROVIDERS + number), price_uc=HOURLY_UC)
        members.append(Member(Seller(candidate, False, SPEED, SPEED), f"provider-{number + 1}"))
    return checked_world(members)


def read_task_types(nodes: Path, pods: Path) -> tuple[World, tuple[TaskType, ...]]:
    """The world of a list of nodes, and a task type for each shape in a list of pods, as often as it occurs."""
    cluster = read_cluster(nodes, pods)
    lengths = _lengths(pods)
    pods_by_shape: dict[tuple[object, ...], list[tuple[Demand, float]]] = {}
    for pod, length in zip(cluster.pods, lengths or [0.0] * len(cluster.pods), strict=True):
        pods_by_shape.setdefault(pod.shape, []).append((pod, length))
    return world_of(cluster), tuple(
        TaskType(_named(alike[0][0]), alike[0][0], len(alike), lengths=tuple(length for _, length in alike if length))
        for alike in pods_by_shape.values()
    )


def _lengths(pods: Path) -> Sequence[float]:
    """How long each pod lasted, the mean being 1, in the order of their names; none where the list has no times."""
    with pods.open(encoding="utf-8-sig", newline="") as opened:
        rows = sorted(csv.DictReader(opened), key=lambda row: row["name"])
    if not rows or not {"creation_time", "deletion_time"} <= rows[0].keys():
        return ()
    try:
        lasted = [_lasted(row) for row in rows]
    except ValueError as error:
        raise WorldFault(f"A time in {pods} is none ({error}): times are whole seconds.") from error
    mean = fmean(lasted)
    return [length / mean for length in lasted]


def _lasted(row: Mapping[str, str]) -> float:
    began, ended = float(row["creation_time"] or 0), float(row["deletion_time"] or 0)
    if not 0 <= began <= TIME_MAX_S or not 0 <= ended <= TIME_MAX_S:
        raise ValueError(f"{began:g} to {ended:g}")
    return max(1.0, ended - began)


def _named(pod: Demand) -> str:
    devices = f"{pod.milli / 1000:g} of a device" if pod.milli < 1000 and pod.devices else f"{pod.devices} devices"
    models = f" of {' or '.join(sorted(pod.device_models))}" if pod.device_models else ""
    return f"{devices}{models}, {pod.cpu_milli / 1000:g} cores, {pod.memory_mib} MiB"
