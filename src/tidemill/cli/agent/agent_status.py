"""Shows how an agent stands: the last status of the running agent, or of the one that ran before."""

from collections.abc import Mapping
from typing import Any

from tidemill.agent.home.home import Home, running_pid
from tidemill.agent.home.identity import read_membership
from tidemill.agent.home.status_file import read_status
from tidemill.cli.client.http_calls import moment
from tidemill.cli.terminal.output import print_fields, print_json, print_text
from tidemill.core.nodes.rules.rule_texts import written
from tidemill.host.clocks import wall


def print_status(home: Home, *, as_json: bool) -> None:
    membership = read_membership(home.membership)
    last_status = read_status(home.status, wall())
    fields: dict[str, Any] = {
        "joined": membership is not None and membership.node_id is not None,
        "pid": running_pid(home),
        "age_s": None if last_status is None else round(last_status.age_s, 1),
        **(last_status.fields if last_status else {}),
    }
    if as_json:
        print_json(fields)
        return
    print_fields(_lines(fields))
    for complaint in fields.get("complaints", ()):
        print_text(f"! {complaint}")


def _lines(fields: Mapping[str, Any]) -> dict[str, str]:
    lines = {"agent": _agent(fields)}
    if not fields["joined"]:
        return {**lines, "pool": "not joined: run `tidemill agent join URL` with a join token"}
    if "link" not in fields:
        return {**lines, "pool": "joined: run `tidemill agent run`"}
    lines |= {"node": str(fields["node_id"]), "link": _link(fields["link"]), "work": _work(fields["work"])}
    lines |= {f"attempt {attempt['attempt']}": _attempt(attempt) for attempt in fields["work"]["attempts"]}
    lines |= {"sandbox": sandboxes(fields), "kinds": _kinds(fields["work"]["can"])}
    lines |= {f"device {number}": _device(device) for number, device in enumerate(fields["devices"])}
    lines["rules"] = _rules(fields["rules"])
    lines["reports"] = f"{fields['reports_waiting'] or 'none'} wait for the pool"
    lines["network"] = _network(fields["speed"])
    return {**lines, "version": fields["version"], "as of": f"{fields['age_s']} s ago"}


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


def _attempt(attempt: Mapping[str, Any]) -> str:
    devices = f" on device {', '.join(map(str, attempt['devices']))}" if attempt["devices"] else ""
    progress = f", {attempt['progress_pct']:g} %" if attempt["progress_pct"] else ""
    return f"{attempt['kind'] or 'finished'}: {attempt['stage']}{devices}{progress}"


def sandboxes(fields: Mapping[str, Any]) -> str:
    """The sandboxes that tasks run in. The status of an older agent does not have them."""
    return "; ".join(fields.get("work", {}).get("sandboxes", ())) or "none works: `tidemill agent doctor` says why"


def _kinds(can: Mapping[str, Any] | None) -> str:
    if can is None:
        return "not known yet"
    return ", ".join(can["kinds"]) or "none: `tidemill agent doctor` says why"


def _rules(rules: Mapping[str, Any]) -> str:
    """All rules but `work`, which is shown beside the work."""
    values = {name: rule["value"] for name, rule in rules.items() if rule["value"] is not None and name != "work"}
    return " ".join(f"{name}={written(name, value)}" for name, value in values.items()) or "none"


def _network(speed: Mapping[str, Any] | None) -> str:
    if speed is None:
        return "not measured yet"
    rates = f"{speed['down_bps'] / 10**6:,.0f} Mbit/s down, {speed['up_bps'] / 10**6:,.0f} Mbit/s up"
    return f"{rates}, {speed['latency_ms']} ms to the pool"


def _device(device: Mapping[str, Any]) -> str:
    if device["failing"]:
        return f"{device['name'] or 'unknown'}: fails ({device['failing']})"
    readings = {"% used": "utilisation_pct", "°C": "temperature_c", "W": "power_w"}
    readings_text = [f"{device[name]} {unit}" for unit, name in readings.items() if device[name] is not None]
    return ", ".join([f"{device['name']}, {device['memory_mib']:,} MiB", *readings_text])
