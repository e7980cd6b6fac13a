"""How nodes are shown: as a list that fits a terminal, and one of them with all that its owner should know.

Programs ask for JSON. A node's id is in the list only where the name does not tell which is meant.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidemill.cli.client.http_calls import moment
from tidemill.cli.nodes.node_events import operations
from tidemill.cli.nodes.rule_words import written
from tidemill.cli.terminal.output import print_json, print_line, print_table
from tidemill.host.standard_error import say

_COLUMNS = ("name", "state", "devices", "agent", "last heard (UTC)")
NONE_YET = "There are no nodes here yet: `tidemill nodes tokens make NAME` makes a token with which a machine joins."
_ALL_WELL = "It is offered work whenever there is some that fits."
_GIB_MIB = 1024

_Shown = Mapping[str, Any]


def print_nodes(found: Sequence[_Shown], *, as_json: bool, none: str = NONE_YET) -> None:
    """The list, or the sentence that there is none."""
    if as_json:
        print_json(found)
        return
    if not found:
        say(none)
        return
    names = Counter(node["name"] for node in found)
    by_id = any(node["removed_at"] or names[node["name"]] > 1 for node in found)
    columns = (*_COLUMNS, "id") if by_id else _COLUMNS
    print_table(columns, [(*_row(node), node["id"])[: len(columns)] for node in found])


def print_node(node: _Shown) -> None:
    rows = [*_fields(node), *_machine(node["machine"] or {}), *_carries(node["carries"]), *_devices(node["devices"])]
    rows += [*rule_rows(node), *_cares(node)]
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print_line(f"{name:<{width}}  {value}")


def rule_rows(node: _Shown) -> Iterator[tuple[str, str]]:
    """Each rule that holds, and who set it where."""
    for name, rule in node["rules"].items():
        if rule["value"] is not None:
            who = "its owner" if rule["by"] == f"account:{node['account_id']}" else rule["by"]
            where = "in the pool" if rule["place"] == "pool" else "on the machine"
            yield f"rule {name}", f"{written(name, rule['value'])}  (set {where} by {who})"


def _row(node: _Shown) -> tuple[str, ...]:
    agent = node["agent"].removeprefix("tidemill/")
    return node["name"], _state(node), _counted(node["devices"]), agent, moment(node["heard_at"])


def _state(node: _Shown) -> str:
    return " ".join([node["life"], *([] if node["removed_at"] else node["conditions"])])


def _counted(devices: Sequence[_Shown]) -> str:
    names = [device["model"] or device["name"] for device in devices]
    return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))


def _fields(node: _Shown) -> Iterator[tuple[str, str]]:
    fields = {
        "node": node["id"],
        "name": node["name"],
        "owner": node["account_id"] + (" (the pool's own machine)" if node["house"] else ""),
        "state": _state(node),
        "agent": node["agent"].removeprefix("tidemill/")
        + ("" if node["version_accepted"] else " (too old to get work)"),
        "joined": _time(node["joined_at"]),
        "last heard": _time(node["heard_at"]),
        "link": f"open since {_time(node['linked_at'])}" if node["linked_at"] else "none is open",
        "suspended": node["suspended_reason"] or "",
        "removed": _removed(node),
    }
    return ((name, value) for name, value in fields.items() if value)


def _removed(node: _Shown) -> str:
    reason = f": {node['removed_reason']}" if node["removed_reason"] else ""
    return f"{_time(node['removed_at'])}{reason}" if node["removed_at"] else ""


def _machine(machine: _Shown) -> Iterator[tuple[str, str]]:
    """What the machine says of itself. An older agent may say less."""
    sizes = {"memory": machine.get("memory_mib"), "disk": machine.get("disk_mib")}
    parts = [str(machine.get("cpu") or ""), f"{machine['cores']} cores" if machine.get("cores") else ""]
    parts += [f"{mib / _GIB_MIB:,.0f} GiB of {name}" for name, mib in sizes.items() if mib]
    if any(parts):
        yield "machine", ", ".join(part for part in parts if part)
    system = ", ".join(str(machine[name]) for name in ("system", "architecture") if machine.get(name))
    if system:
        yield "system", system
    network = machine.get("network") or {}
    rates = {"down": network.get("down_bps"), "up": network.get("up_bps")}
    spoken = [f"{rate / 10**6:,.0f} Mbit/s {name}" for name, rate in rates.items() if rate]
    spoken += [f"{network['latency_ms']} ms to the pool"] if network.get("latency_ms") is not None else []
    if spoken:
        yield "network", ", ".join(spoken)


def _carries(carries: _Shown | None) -> Iterator[tuple[str, str]]:
    if carries is None:
        return
    yield "kinds", ", ".join(carries["kinds"]) or "none"
    yield "sandbox", ", ".join(name.lower() for name in carries["abilities"]) or "none works"
    for one in carries.get("why_not", ()):
        yield f"no {one['what'].lower()}", one["why"]


def _devices(devices: Sequence[_Shown]) -> Iterator[tuple[str, str]]:
    for device in devices:
        yield f"device {device['index']}", f"{device['model'] or device['name']}, {device['memory_mib']:,} MiB"
        if device["failing"]:
            yield "", f"failing: {device['failing']}"
        yield "", _measured(device)


def _measured(device: _Shown) -> str:
    if device.get("measured_at") is None:
        return "not measured yet"
    links = device["nvlink_ppm"] or 0
    worth = f", its links to others worth {links / 10**6:.2f}" if links > 10**6 else ""
    speed = operations(device["measured_ops_per_s"])
    return f"measured {_time(device['measured_at'])}: {speed}, {device['measured_mib']:,} MiB shown{worth}"


def _cares(node: _Shown) -> Iterator[tuple[str, str]]:
    """What needs the owner, and what keeps the node from work."""
    for alert in node["alerts"]:
        yield f"alert {alert['kind']}", f"{alert['sentence']}  (since {_time(alert['since'])})"
    for reason in node["no_work"]:
        yield "no work", reason["sentence"]
    if not node["no_work"]:
        yield "work", _ALL_WELL


def _time(text: str | None) -> str:
    return f"{moment(text)} UTC" if text else ""
