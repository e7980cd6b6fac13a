"""A world as a file: one line of JSON for each node, after a first line that says what the file is.

A file contains machines, prices, speeds, hours and which nodes have the same owner, and no identities: providers are
named by their size, and ids, names, labels, regions and addresses are left out.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from tidemill.core.nodes.machine.gpu_names import recognised
from tidemill.core.nodes.rules.windows import Window
from tidemill.core.placement.candidate import NVLINK_NONE_PCT, Candidate, CandidateDevice
from tidemill.core.placement.supply import (
    USUAL_GPU_OPERATIONS_PER_S,
    MachineSize,
    Seller,
    reference_ops_per_s,
    unit_prices_uc,
)
from tidemill.sim.days.worlds.world import Member, World, WorldFault, checked_world

FORMAT, VERSION = "tidemill world", 1
DEVICES_MAX = 256
NUMBER_MAX = 2**53
SPEED_MAX = 1e30
PERCENT_MAX = 10_000

_DAY_MINUTES = 24 * 60
_PROVIDERS = 1 << 64


def named(owners: Iterable[tuple[UUID, int]]) -> dict[UUID, str]:
    """A name for each owner, the largest first; from each node's owner and number of devices."""
    devices: Counter[UUID] = Counter()
    for owner_id, count in owners:
        devices[owner_id] += max(1, count)
    by_size = sorted(devices, key=lambda owner_id: (-devices[owner_id], owner_id))
    return {owner_id: f"provider-{number}" for number, owner_id in enumerate(by_size, start=1)}


def lines_of(world: World) -> Iterator[str]:
    """The file's lines."""
    yield json.dumps({"format": FORMAT, "version": VERSION, "nodes": len(world.members)})
    for member in world.members:
        yield json.dumps(_row(member))


def read_world(file: Path) -> World:
    """The world in a file; a fault that names the line if it cannot be read."""
    try:
        header, *lines = [line for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (ValueError, UnicodeDecodeError) as error:
        raise WorldFault(f"{file} is empty or no text: `tidemill sim export` writes such a file.") from error
    kind = _parsed(file, 1, header)
    if kind.get("format") != FORMAT or kind.get("version") != VERSION:
        raise WorldFault(f"{file} is no world of version {VERSION}: `tidemill sim export` writes such a file.")
    members: list[Member] = []
    providers: dict[str, int] = {}
    for number, line in enumerate(lines, start=2):
        row = _parsed(file, number, line)
        try:
            owner = _text(row, "owner")
            members.append(_member(len(members), providers.setdefault(owner, len(providers)), owner, row))
        except KeyError as error:
            raise WorldFault(
                f"Line {number} of {file} is no node (it lacks {error}): export the world again."
            ) from error
        except (TypeError, ValueError) as error:
            raise WorldFault(f"Line {number} of {file} is no node ({error}): export the world again.") from error
    return checked_world(members)


def _row(member: Member) -> dict[str, Any]:
    seller, candidate = member.seller, member.seller.candidate
    return {
        "owner": member.owner,
        "house": seller.house,
        "devices": [
            {"model": device.device_model, "memory_mib": device.memory_mib, "nvlink_group": device.nvlink_group}
            for device in candidate.devices
        ],
        "cpu_milli": candidate.cpu_milli,
        "memory_mib": candidate.memory_mib,
        "disk_mib": candidate.disk_mib,
        "price_uc": candidate.price_uc,
        "reputation": candidate.reputation,
        "success": candidate.success,
        "capability": candidate.capability,
        "nvlink_pct": candidate.nvlink_pct,
        "latency_ms": candidate.latency_ms,
        "kinds": sorted(candidate.kinds),
        "device_ops_per_s": seller.device_ops_per_s,
        "core_ops_per_s": seller.core_ops_per_s,
        "windows": [
            {"begins": window.begins, "ends": window.ends, "days": list(window.days)} for window in member.windows
        ],
        "utc_offset_s": member.utc_offset_s,
    }


def _member(number: int, provider: int, owner: str, row: Mapping[str, Any]) -> Member:
    devices = tuple(map(_device, row["devices"]))
    if len(devices) > DEVICES_MAX:
        raise ValueError(f"a node has at most {DEVICES_MAX} devices")
    gpu_types = [recognised(device.device_model, device.memory_mib) for device in devices]
    reference = max(map(reference_ops_per_s, gpu_types), default=USUAL_GPU_OPERATIONS_PER_S)
    price_uc, cpu_milli, memory_mib = (_whole(row, name) for name in ("price_uc", "cpu_milli", "memory_mib"))
    size = MachineSize(len(devices), cpu_milli // 1_000, memory_mib)
    work_price_uc, core_price_uc = unit_prices_uc(price_uc, size, reference)
    candidate = Candidate(
        node_id=UUID(int=number + 1),
        owner_id=UUID(int=_PROVIDERS + provider),
        devices=devices,
        cpu_milli=cpu_milli,
        memory_mib=memory_mib,
        disk_mib=_whole(row, "disk_mib"),
        price_uc=price_uc,
        work_price_uc=work_price_uc,
        core_price_uc=core_price_uc,
        reputation=_whole(row, "reputation", 1000),
        success=_number(row, "success", 1.0),
        capability=_number(row, "capability", SPEED_MAX),
        nvlink_pct=_whole(row, "nvlink_pct", PERCENT_MAX) or NVLINK_NONE_PCT,
        latency_ms=_whole(row, "latency_ms"),
        kinds=_kinds(row),
    )
    speeds = (_number(row, "device_ops_per_s", SPEED_MAX), _number(row, "core_ops_per_s", SPEED_MAX))
    seller = Seller(candidate, _yes_or_no(row, "house"), *speeds, reference)
    offset_s = row["utc_offset_s"]
    if type(offset_s) is not int or abs(offset_s) > 18 * 3600:
        raise ValueError("utc_offset_s is out of bounds")
    return Member(seller, owner, tuple(map(_window, row["windows"])), offset_s)


def _device(row: Mapping[str, Any]) -> CandidateDevice:
    return CandidateDevice(_text(row, "model"), _whole(row, "memory_mib"), nvlink_group=_whole(row, "nvlink_group"))


def _window(row: Mapping[str, Any]) -> Window:
    days: Sequence[int] = row["days"]
    if not all(type(day) is int and 0 <= day < 7 for day in days):
        raise ValueError("days are 0 to 6")
    return Window(_whole(row, "begins", _DAY_MINUTES - 1), _whole(row, "ends", _DAY_MINUTES - 1), tuple(days))


def _parsed(file: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except RecursionError as error:
        raise WorldFault(f"Line {number} of {file} is nested too deeply: export the world again.") from error
    except ValueError as error:
        raise WorldFault(f"Line {number} of {file} is no JSON ({error}): export the world again.") from error
    if not isinstance(row, dict):
        raise WorldFault(f"Line {number} of {file} is no object: export the world again.")
    return row


def _whole(row: Mapping[str, Any], name: str, most: int = NUMBER_MAX) -> int:
    value = row[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{name} is no whole number from 0 to {most}")
    return value


def _number(row: Mapping[str, Any], name: str, most: float) -> float:
    value = row[name]
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{name} is no number from 0 to {most:g}")
    return float(value)


def _yes_or_no(row: Mapping[str, Any], name: str) -> bool:
    value = row[name]
    if not isinstance(value, bool):
        raise TypeError(f"{name} is neither true nor false")
    return value


def _kinds(row: Mapping[str, Any]) -> frozenset[str]:
    kinds = row["kinds"]
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
        raise ValueError("kinds is no list of names")
    return frozenset(kinds)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if not isinstance(value, str) or not 1 <= len(value) <= 200 or not value.isprintable():
        raise ValueError(f"{name} is no name")
    return value
