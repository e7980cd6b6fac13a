"""Events of nodes as sentences, for who looks at one node. An unknown kind is shown as its names and values."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from tidemill.core.clock import SECOND
from tidemill.core.ids import short_id
from tidemill.core.nodes.rules.rule_texts import written

NODE_KINDS = ("node.", "join_token.", "link.refused")
"""The prefixes of the kinds of events about nodes and their tokens."""

EventBody: TypeAlias = Mapping[str, Any]


def sentence(event: Mapping[str, Any]) -> str:
    """One event as a sentence. Another version may have written it, so a field may be missing or differ in form."""
    kind, body = event["kind"], event["body"]
    as_sentence = TABLE.get(kind)
    try:
        return as_sentence(body) if as_sentence else plain(kind, body)
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError):
        return plain(kind, body)


def operations(speed: int) -> str:
    """A speed as people read it."""
    return f"{speed / 10**9:,.1f} billion operations a second"


def plain(kind: str, body: EventBody) -> str:
    """The names and values of an event that has no words here."""
    named = ((name, value) for name, value in body.items() if name not in ("account_id", "node_id"))
    shown = ", ".join(f"{name}={_value(value)}" for name, value in named)
    return f"{kind}: {shown}" if shown else kind


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _actor(body: EventBody) -> str:
    """Who did it: its owner, another account by its short id, or a name as the pool knows it."""
    who = str(body["by"])
    if who == f"account:{body['account_id']}":
        return "its owner"
    return f"account {short_id(who)}" if who.startswith("account:") else who


def _reason(body: EventBody) -> str:
    return f": {body['reason']}" if body["reason"] else "."


def _token_made(body: EventBody) -> str:
    until = datetime.fromtimestamp(body["expires_at_us"] / SECOND, UTC)
    machines = "1 machine" if body["uses_max"] == 1 else f"{body['uses_max']} machines"
    return f"{_actor(body)} made the join token {body['name']}, for {machines}, until {until:%Y-%m-%d %H:%M:%S}."


def _joined(body: EventBody) -> str:
    house = " as a machine of the house" if body["house"] else ""
    return f"{body['name']} joined{house} from {body['address']}, with the agent {body['agent']}."


def _suspended(body: EventBody) -> str:
    return f"{'Suspended' if body['suspended'] else 'No longer suspended'}, by {_actor(body)}{_reason(body)}"


def _rules(body: EventBody) -> str:
    rules = body["rules"].items()
    changes = [f"{name}={written(name, value)}" if value is not None else f"{name} taken away" for name, value in rules]
    origin = "in the pool" if body["place"] == "pool" else "on the machine"
    return f"Rules set {origin} by {_actor(body)}: {' '.join(changes)}"


def _link_refused(body: EventBody) -> str:
    times = "" if body["times"] == 1 else f" {body['times']} times"
    return f"Somebody at {body['address']} called as an agent and was turned away{times}: {body['code']}."


def _raised(body: EventBody) -> str:
    return f"Alert {_alert(body)}: {body['sentence']}"


def _alert(body: EventBody) -> str:
    return body["alert"] if body["device"] < 0 else f"{body['alert']} of device {body['device']}"


def _hardware(body: EventBody) -> str:
    devices = ", ".join(body["devices"]) or "none"
    return f"The machine says what it has; devices: {devices}. New or changed: {', '.join(body['changed'])}."


def _dropped(body: EventBody) -> str:
    return f"Reports were dropped before they arrived: {body['full']} for want of room, {body['damaged']} damaged."


def _passed(body: EventBody) -> str:
    of_devices = " ".join(_figures(device) for device in body["devices"])
    machine = body["machine"]
    of_machine = f"{machine['measured_cores']:,} cores and {machine['measured_mib']:,} MiB of memory count."
    return " ".join(filter(None, ("It showed what it claims.", of_devices, of_machine, *body["sentences"])))


def _figures(device: EventBody) -> str:
    speed = operations(device["measured_ops_per_s"])
    return f"Device {device['index']}, {device['name']}: {device['measured_mib']:,} MiB shown, {speed}."


TABLE: Mapping[str, Callable[[EventBody], str]] = {
    "join_token.made": _token_made,
    "join_token.revoked": lambda body: f"{_actor(body)} revoked the join token {body['name']}.",
    "link.refused": _link_refused,
    "node.joined": _joined,
    "node.removed": lambda body: f"Removed from the pool by {_actor(body)}{_reason(body)}",
    "node.suspended": _suspended,
    "node.renamed": lambda body: f"Called {body['name']} now, by {_actor(body)}.",
    "node.rules_changed": _rules,
    "node.cloned": lambda body: f"Another machine, at {body['address']}, showed its identity and was turned away.",
    "node.version_refused": lambda body: f"{body['agent']} is too old to get work: {body['oldest']} is the oldest.",
    "node.times_doubted": lambda body: f"Told of times that cannot be true: {body['sentence']}",
    "node.review_asked": lambda body: f"A result waits for an operator: {body['sentence']}",
    "node.review_decided": lambda body: f"An operator decided on a result, {body['verdict']}: {body['reason']}",
    "node.receipts_refused": lambda body: f"Sent receipts that were not taken: {body['sentence']}",
    "node.offline": lambda _: "Offline: nothing was heard of it for too long.",
    "node.online": lambda _: "Online again; it is challenged before it gets work.",
    "node.alert_raised": _raised,
    "node.alert_cleared": lambda body: f"Alert {_alert(body)} is over.",
    "node.hardware_changed": _hardware,
    "node.facts_refused": lambda body: f"What it said of its {body['about']} was not taken: {body['sentence']}",
    "node.reports_dropped": _dropped,
    "node.challenge_passed": _passed,
    "node.challenge_failed": lambda body: f"It did not show what it claims. {' '.join(body['sentences'])}",
}
