"""Events of nodes as sentences. An event of an unknown kind is shown as its names and values."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tidemill.cli.nodes.rule_words import written
from tidemill.core.clock import SECOND

NODE_KINDS = ("node.", "join_token.", "link.refused")
"""The prefixes of the kinds of events about nodes and their tokens."""

_Body = Mapping[str, Any]


def sentence(event: Mapping[str, Any]) -> str:
    """One event as a sentence. Another version may have written it, so a field may be missing or differ in form."""
    as_sentence = _SENTENCES.get(event["kind"])
    try:
        return as_sentence(event["body"]) if as_sentence else _plain(event)
    except (LookupError, TypeError, ValueError, OverflowError):
        return _plain(event)


def operations(speed: int) -> str:
    """A speed as people read it."""
    return f"{speed / 10**9:,.1f} billion operations a second"


def _plain(event: Mapping[str, Any]) -> str:
    body = ", ".join(
        f"{name}={value}" for name, value in event["body"].items() if name not in ("account_id", "node_id")
    )
    return f"{event['kind']}: {body}" if body else event["kind"]


def _actor(body: _Body) -> str:
    owner = f"account:{body['account_id']}"
    return "its owner" if body["by"] == owner else body["by"]


def _reason(body: _Body) -> str:
    return f": {body['reason']}" if body["reason"] else "."


def _token_made(body: _Body) -> str:
    until = datetime.fromtimestamp(body["expires_at_us"] / SECOND, UTC)
    machines = "1 machine" if body["uses_max"] == 1 else f"{body['uses_max']} machines"
    return f"{_actor(body)} made the join token {body['name']}, for {machines}, until {until:%Y-%m-%d %H:%M:%S}."


def _joined(body: _Body) -> str:
    house = " as a machine of the house" if body["house"] else ""
    return f"{body['name']} joined{house} from {body['address']}, with the agent {body['agent']}."


def _suspended(body: _Body) -> str:
    return f"{'Suspended' if body['suspended'] else 'No longer suspended'}, by {body['by']}{_reason(body)}"


def _rules(body: _Body) -> str:
    rules = body["rules"].items()
    changes = [f"{name}={written(name, value)}" if value is not None else f"{name} taken away" for name, value in rules]
    origin = "in the pool" if body["place"] == "pool" else "on the machine"
    return f"Rules set {origin} by {_actor(body)}: {' '.join(changes)}"


def _link_refused(body: _Body) -> str:
    times = "" if body["times"] == 1 else f" {body['times']} times"
    return f"Somebody at {body['address']} called as an agent and was turned away{times}: {body['code']}."


def _raised(body: _Body) -> str:
    return f"Alert {_alert(body)}: {body['sentence']}"


def _alert(body: _Body) -> str:
    return body["alert"] if body["device"] < 0 else f"{body['alert']} of device {body['device']}"


def _hardware(body: _Body) -> str:
    devices = ", ".join(body["devices"]) or "none"
    return f"The machine says what it has; devices: {devices}. New or changed: {', '.join(body['changed'])}."


def _dropped(body: _Body) -> str:
    return f"Reports were dropped before they arrived: {body['full']} for want of room, {body['damaged']} damaged."


def _passed(body: _Body) -> str:
    of_devices = " ".join(_figures(device) for device in body["devices"])
    machine = body["machine"]
    of_machine = f"{machine['measured_cores']:,} cores and {machine['measured_mib']:,} MiB of memory count."
    return " ".join(filter(None, ("It showed what it claims.", of_devices, of_machine, *body["sentences"])))


def _figures(device: _Body) -> str:
    speed = operations(device["measured_ops_per_s"])
    return f"Device {device['index']}, {device['name']}: {device['measured_mib']:,} MiB shown, {speed}."


_SENTENCES: Mapping[str, Callable[[_Body], str]] = {
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
