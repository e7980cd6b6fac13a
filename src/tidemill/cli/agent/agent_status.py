"""Showing how an agent stands: what the running one wrote last, or what is left of the one that ran."""

from collections.abc import Mapping
from typing import Any

from tidemill.agent.home.home import Home, running_pid
from tidemill.agent.home.identity import read_membership
from tidemill.agent.home.status_file import read_status
from tidemill.cli.client.http_calls import moment
from tidemill.cli.nodes.rule_words import written
from tidemill.cli.terminal.output import print_fields, print_json, print_line
from tidemill.host.clocks import wall


def print_status(home: Home, *, as_json: bool) -> None:
    membership = read_membership(home.membership)
    found = read_status(home.status, wall())
    fields: dict[str, Any] = {
        "joined": membership is not None and membership.node_id is not None,
        "pid": running_pid(home),
        "age_s": None if found is None else round(found.age_s, 1),
        **(found.fields if found else {}),
    }
    if as_json:
        print_json(fields)
        return
    print_fields(_lines(fields))
    for complaint in fields.get("complaints", ()):
        print_line(f"! {complaint}")


def _lines(fields: Mapping[str, Any]) -> dict[str, str]:
    shown = {"agent": _agent(fields)}
    if not fields["joined"]:
        return {**shown, "pool": "not joined: run `tidemill agent join URL` with a join token"}
    if "link" not in fields:
        return {**shown, "pool": "joined: run `tidemill agent run`"}
    shown |= {"node": str(fields["node_id"]), "link": _link(fields["link"]), "work": _work(fields["work"])}
    shown |= {f"attempt {one['attempt']}": _attempt(one) for one in fields["work"]["attempts"]}
    shown |= {"sandbox": sandboxes(fields), "kinds": _kinds(fields["work"]["can"])}
    shown |= {f"device {place}": _device(one) for place, one in enumerate(fields["devices"])}
    shown["rules"] = _rules(fields["rules"])
    shown["reports"] = f"{fields['reports_waiting'] or 'none'} wait for the pool"
    shown["network"] = _network(fields["speed"])
    return {**shown, "version": fields["version"], "as of": f"{fields['age_s']} s ago"}


def _agent(fields: Mapping[str, Any]) -> str:
    return "not running" if fields["pid"] is None else f"running as process {fields['pid']}"


def _link(link: Mapping[str, Any]) -> str:
    trip = "" if link["round_trip_ms"] is None else f", round trip {link['round_trip_ms']} ms"
    again = "" if link["again_at"] is None else f" The pool is called again at {moment(link['again_at'])} UTC."
    since = f"{link['state']} since {moment(link['since'])} UTC, {link['url']}{trip}."
    return f"{since} {link['sentence']}{again}".rstrip()


def _work(work: Mapping[str, Any]) -> str:
    reasons = " ".join(reason["sentence"] for reason in work["reasons"])
    waiting = f", {work['waiting']} waiting" if work["waiting"] else ""
    uploading = f", {work['uploading']} uploading" if work["uploading"] else ""
    in_hand = f"{work['running'] or 'nothing'} runs{waiting}{uploading}; "
    return in_hand + (f"no new work is taken: {reasons}" if reasons else "new work is taken")


def _attempt(one: Mapping[str, Any]) -> str:
    devices = f" on device {', '.join(map(str, one['devices']))}" if one["devices"] else ""
    progress = f", {one['progress_pct']:g} %" if one["progress_pct"] else ""
    return f"{one['kind'] or 'finished'}: {one['stage']}{devices}{progress}"


def sandboxes(fields: Mapping[str, Any]) -> str:
    """What tasks run in. An agent of an earlier version has not written it."""
    return "; ".join(fields.get("work", {}).get("sandboxes", ())) or "none works: `tidemill agent doctor` says why"


def _kinds(can: Mapping[str, Any] | None) -> str:
    if can is None:
        return "not known yet"
    return ", ".join(can["kinds"]) or "none: `tidemill agent doctor` says why"


def _rules(rules: Mapping[str, Any]) -> str:
    """Whether it may work at all is said beside the work."""
    held = {name: rule["value"] for name, rule in rules.items() if rule["value"] is not None and name != "work"}
    return " ".join(f"{name}={written(name, value)}" for name, value in held.items()) or "none"


def _network(speed: Mapping[str, Any] | None) -> str:
    if speed is None:
        return "not measured yet"
    rates = f"{speed['down_bps'] / 10**6:,.0f} Mbit/s down, {speed['up_bps'] / 10**6:,.0f} Mbit/s up"
    return f"{rates}, {speed['latency_ms']} ms to the pool"


def _device(device: Mapping[str, Any]) -> str:
    if device["failing"]:
        return f"{device['name'] or 'unknown'}: fails ({device['failing']})"
    readings = {"% used": "utilisation_pct", "°C": "temperature_c", "W": "power_w"}
    known = [f"{device[name]} {unit}" for unit, name in readings.items() if device[name] is not None]
    return ", ".join([f"{device['name']}, {device['memory_mib']:,} MiB", *known])
