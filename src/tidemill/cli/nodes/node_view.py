"""Shows nodes: a list that fits a terminal, or one node with everything that its owner should know.

Programs ask for JSON. The list has ids only if a name is not unique.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidemill.cli.client.http_calls import moment
from tidemill.cli.terminal.output import print_json, print_pairs, print_table
from tidemill.core.events.node_sentences import operations
from tidemill.core.ids import short_id
from tidemill.core.nodes.rules.rule_texts import written
from tidemill.host.standard_error import say

_HEARD = "last heard (UTC)"
_COLUMNS = ("name", "state", "devices", "agent", _HEARD)
_OF_MANY = ("name", "owner", "state", "devices", _HEARD)
"""Of several owners, as operators see them."""

NONE_YET = (
    "You have no nodes here. A provider's machine joins with a token: `tidemill account become provider`, then "
    "`tidemill nodes tokens make NAME`."
)
_ALL_WELL = "It is offered work whenever there is some that fits."
_GIB_MIB = 1024

_View = Mapping[str, Any]


def print_nodes(nodes: Sequence[_View], *, as_json: bool, none: str = NONE_YET) -> None:
    """Print the list, or a sentence if it is empty."""
    if as_json:
        print_json(nodes)
        return
    if not nodes:
        say(none)
        return
    names = Counter(node["name"] for node in nodes)
    by_id = any(node["removed_at"] or names[node["name"]] > 1 for node in nodes)
    many = len({node["account_id"] for node in nodes}) > 1
    columns = list(_OF_MANY if many else _COLUMNS)
    rows = [{**_row(node), "id": short_id(node["id"])} for node in nodes]
    columns += ["id"] * by_id
    print_table(columns, [[row[column] for column in columns] for row in rows])


def print_node(node: _View) -> None:
    rows = [
        *_fields(node),
        *_machine(node["machine"] or {}),
        *_counted_of(node),
        *_carries(node["carries"]),
        *_devices(node["devices"]),
    ]
    rows += [*rule_rows(node), *_concerns(node)]
    print_pairs(rows)


def rule_rows(node: _View) -> Iterator[tuple[str, str]]:
    """Each rule in force, and who set it where."""
    for name, rule in node["rules"].items():
        if rule["value"] is not None:
            author = "its owner" if rule["by"] == f"account:{node['account_id']}" else rule["by"]
            origin = "in the pool" if rule["place"] == "pool" else "on the machine"
            yield f"rule {name}", f"{written(name, rule['value'])}  (set {origin} by {author})"


def _row(node: _View) -> dict[str, str]:
    return {
        "name": node["name"],
        "owner": _owner(node),
        "state": _state(node),
        "devices": _counted(node["devices"]),
        "agent": node["agent"].removeprefix("tidemill/"),
        _HEARD: moment(node["heard_at"]),
    }


def _owner(node: _View) -> str:
    """Who a node belongs to: the house, an address, or what is left of a deleted account."""
    return "the house" if node["house"] else node.get("owner") or short_id(node["account_id"])


def _state(node: _View) -> str:
    return " ".join([node["life"], *([] if node["removed_at"] else node["conditions"])])


def _counted(devices: Sequence[_View]) -> str:
    names = [device["model"] or device["name"] for device in devices]
    return ", ".join(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))


def _fields(node: _View) -> Iterator[tuple[str, str]]:
    fields = {
        "node": node["id"],
        "name": node["name"],
        "owner": (node.get("owner") or short_id(node["account_id"]))
        + (" (the pool's own machine)" if node["house"] else ""),
        "state": _state(node),
        "agent": node["agent"].removeprefix("tidemill/")
        + ("" if node["version_accepted"] else " (too old to get work)"),
        "joined": _time(node["joined_at"]),
        "last heard": _time(node["heard_at"]),
        "link": f"open since {_time(node['linked_at'])}" if node["linked_at"] else "none is open",
        "record": _record(node["record"]),
        "suspended": node["suspended_reason"] or "",
        "removed": _removed(node),
    }
    return ((name, value) for name, value in fields.items() if value)


def _record(record: _View) -> str:
    """What the attempts of the owner's nodes came to; nothing is said of what never happened."""
    words = {
        "verified": "verified",
        "late": "late",
        "crashed": "failed",
        "broke_its_word": "given back",
        "wrong": "wrong",
    }
    return ", ".join(f"{record[name]:,} {word}" for name, word in words.items() if record[name])


def _removed(node: _View) -> str:
    reason = f": {node['removed_reason']}" if node["removed_reason"] else ""
    return f"{_time(node['removed_at'])}{reason}" if node["removed_at"] else ""


def _machine(machine: _View) -> Iterator[tuple[str, str]]:
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
    parts_of_network = [f"{rate / 10**6:,.0f} Mbit/s {name}" for name, rate in rates.items() if rate]
    parts_of_network += [f"{network['latency_ms']} ms to the pool"] if network.get("latency_ms") is not None else []
    if parts_of_network:
        yield "network", ", ".join(parts_of_network)


def _counted_of(node: _View) -> Iterator[tuple[str, str]]:
    """What counts of the machine's cores and memory. Older pools do not measure it."""
    claimed, cores, mib = node["machine"] or {}, node.get("measured_cores"), node.get("measured_mib")
    if cores is None or mib is None:
        return
    cores, mib = min(cores, claimed.get("cores", cores)), min(mib, claimed.get("memory_mib", mib))
    yield (
        "measured",
        f"{cores} {'core' if cores == 1 else 'cores'} and {mib / _GIB_MIB:,.0f} GiB of memory, for which it gets work",
    )


def _carries(carries: _View | None) -> Iterator[tuple[str, str]]:
    if carries is None:
        return
    yield "kinds", ", ".join(carries["kinds"]) or "none"
    yield "sandbox", ", ".join(name.lower() for name in carries["abilities"]) or "none works"
    for missing in carries.get("why_not", ()):
        yield f"no {missing['what'].lower()}", missing["why"]


def _devices(devices: Sequence[_View]) -> Iterator[tuple[str, str]]:
    for device in devices:
        yield f"device {device['index']}", f"{device['model'] or device['name']}, {device['memory_mib']:,} MiB"
        if device["failing"]:
            yield "", f"failing: {device['failing']}"
        yield "", _measured(device)


def _measured(device: _View) -> str:
    if device.get("measured_at") is None:
        return "not measured yet"
    links = device["nvlink_ppm"] or 0
    worth = f", its links to others worth {links / 10**6:.2f}" if links > 10**6 else ""
    speed = operations(device["measured_ops_per_s"])
    return f"measured {_time(device['measured_at'])}: {speed}, {device['measured_mib']:,} MiB shown{worth}"


def _concerns(node: _View) -> Iterator[tuple[str, str]]:
    """What needs the owner, and what keeps the node from work."""
    for alert in node["alerts"]:
        yield f"alert {alert['kind']}", f"{alert['sentence']}  (since {_time(alert['since'])})"
    for reason in node["no_work"]:
        yield "no work", reason["sentence"]
    if not node["no_work"]:
        yield "work", _ALL_WELL


def _time(text: str | None) -> str:
    return f"{moment(text)} UTC" if text else ""
