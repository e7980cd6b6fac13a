"""Nodes in words: rules are shown as they are typed, and every event about nodes has a sentence."""

import json
from typing import Any
from uuid import UUID

import pytest

from tidemill.cli.nodes.rule_words import wish
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.clock import Instant
from tidemill.core.events.log import KINDS, Event
from tidemill.core.events.node_sentences import NODE_KINDS, sentence
from tidemill.core.jobs.events import ReceiptsRefused, ReviewAsked, ReviewDecided, TimesDoubted
from tidemill.core.nodes.challenge.events import NodeChallengeFailed, NodeChallengePassed
from tidemill.core.nodes.challenge.figures import Figures, MachineFigures
from tidemill.core.nodes.events import (
    JoinTokenMade,
    JoinTokenRevoked,
    LinkRefused,
    NodeCloned,
    NodeJoined,
    NodeRemoved,
    NodeRenamed,
    NodeRulesChanged,
    NodeSuspended,
    NodeVersionRefused,
)
from tidemill.core.nodes.health.events import (
    NodeAlertCleared,
    NodeAlertRaised,
    NodeFactsRefused,
    NodeHardwareChanged,
    NodeOffline,
    NodeOnline,
    NodeReportsDropped,
)
from tidemill.core.nodes.rules.rule_book import RuleBook, RuleOrigin, book_json, change
from tidemill.core.nodes.rules.rule_texts import written

OWNER, NODE, TOKEN = UUID(int=1), UUID(int=2), UUID(int=3)
ANNA = f"account:{OWNER}"
FIGURES = Figures(0, "H100", 81_559, 65_247, 22_591_841_680, 0, 0, 1, 1_000_000)
MACHINE = MachineFigures(9, 8, 64_000, 64_000, 10**11)
EVENTS: list[tuple[Event, str]] = [
    (JoinTokenMade(OWNER, TOKEN, "rack 7", False, 4, 1_800_000_000_000_000, ANNA), "for 4 machines, until 2027-01-15"),
    (JoinTokenRevoked(OWNER, TOKEN, "rack 7", "operator"), "operator revoked the join token rack 7."),
    (LinkRefused("join_token_unknown", "203.0.113.7", None, 3), "turned away 3 times: join_token_unknown."),
    (NodeJoined(OWNER, NODE, "attic", False, TOKEN, "tidemill/0.1.0", "203.0.113.7"), "attic joined from 203.0.113.7"),
    (NodeRemoved(OWNER, NODE, "attic", "sold", ANNA), "by its owner: sold"),
    (NodeSuspended(OWNER, NODE, True, "looks odd", "operator"), "Suspended, by operator: looks odd"),
    (NodeRenamed(OWNER, NODE, "cellar", ANNA), "Called cellar now, by its owner."),
    (NodeRulesChanged(OWNER, NODE, {"price": "1.5", "region": None}, "node", "root"), "price=1.5 region taken away"),
    (NodeCloned(OWNER, NODE, "203.0.113.7"), "Another machine, at 203.0.113.7,"),
    (NodeVersionRefused(OWNER, NODE, "tidemill/0.0.9", "0.1"), "tidemill/0.0.9 is too old"),
    (NodeOffline(OWNER, NODE, 1), "Offline"),
    (NodeOnline(OWNER, NODE), "Online again"),
    (NodeAlertRaised(OWNER, NODE, "hot", 1, "It is 91 °C."), "Alert hot of device 1: It is 91 °C."),
    (NodeAlertCleared(OWNER, NODE, "slow_link", -1), "Alert slow_link is over."),
    (NodeHardwareChanged(OWNER, NODE, ("devices",), ("H100", "H100")), "devices: H100, H100."),
    (NodeFactsRefused(OWNER, NODE, "machine", "x", "Too much."), "its machine was not taken: Too much."),
    (NodeReportsDropped(OWNER, NODE, 2, 1), "2 for want of room, 1 damaged"),
    (NodeChallengePassed(OWNER, NODE, (FIGURES,), 5, MACHINE), "65,247 MiB shown, 22.6 billion operations a second."),
    (
        NodeChallengePassed(OWNER, NODE, (), 5, MACHINE, ("It claims 9.",)),
        "8 cores and 64,000 MiB of memory count. It ",
    ),
    (NodeChallengeFailed(OWNER, NODE, ("x",), ("Too slow.",), (FIGURES,), 5), "did not show what it claims. Too slow."),
    (
        ReceiptsRefused(UUID(int=1), UUID(int=2), "receipts_forged", "The signature is not the node's.", True),
        "The signature is not the node's.",
    ),
    (TimesDoubted(OWNER, NODE, UUID(int=3), "Only 5 ms passed."), "cannot be true: Only 5 ms passed."),
    (ReviewAsked(OWNER, NODE, UUID(int=3), "Only 5 ms passed."), "waits for an operator: Only 5 ms passed."),
    (ReviewDecided(OWNER, NODE, UUID(int=3), "pass", "seen", "operator"), "decided on a result, pass: seen"),
]


def told(event: Event, **changed: Any) -> str:
    body = json.loads(json.dumps(event.body()))
    return sentence({"kind": event.kind, "subject": event.subject, "body": {**body, **changed}})


@pytest.mark.parametrize(("event", "words"), EVENTS, ids=lambda value: getattr(value, "kind", None))
def test_an_event_is_told_in_words(event: Event, words: str) -> None:
    assert words in told(event)
    assert not {"{", "["} & set(told(event))


def test_every_event_about_nodes_has_its_words() -> None:
    assert {event.kind for event, _ in EVENTS} == {kind for kind in KINDS if kind.startswith(NODE_KINDS)}


def test_an_event_of_another_version_is_shown_with_what_it_has() -> None:
    assert sentence({"kind": "node.painted", "body": {"node_id": "1", "colour": "red"}}) == "node.painted: colour=red"
    assert sentence({"kind": "node.painted", "body": {}}) == "node.painted"
    made, _ = EVENTS[0]
    for odd in (None, "soon", 10**30, float("nan")):
        assert told(made, expires_at_us=odd).startswith("join_token.made: ")


@pytest.mark.parametrize(
    "rule",
    [
        "price=1.5",
        "minimum_price=0.000001",
        "windows=22:00-08:00",
        "windows=22:00-08:00,sat+sun/00:00-24:00",
        "only_when_idle=10%/300s",
        "power_limit_w=300",
        "temperature_limit_c=75",
        "labels=rack=7,room=east",
        "region=north",
        "work=drain",
    ],
)
def test_a_rule_is_shown_as_it_is_typed(rule: str) -> None:
    book = change(RuleBook(), dict([wish(rule)]), by="anna", place=RuleOrigin.NODE, now=Instant(1))
    assert isinstance(book, RuleBook), book
    ((name, entry),) = book_json(book).items()
    assert f"{name}={written(name, entry['value'])}" == rule


def test_rules_can_be_typed_as_json_and_taken_away() -> None:
    assert wish('windows=[{"from": "22:00", "until": "08:00"}]') == ("windows", [{"from": "22:00", "until": "08:00"}])
    assert wish("price=") == ("price", None)


@pytest.mark.parametrize("typed", ["price", "windows=22-8pm", "only_when_idle=soon", "labels=[", "windows=[" * 9_999])
def test_what_is_no_rule_is_declined(typed: str) -> None:
    with pytest.raises(CommandRefused):
        wish(typed)


@pytest.mark.parametrize("odd", [[1], {"from": 1}, 7, [{"from": "22:00"}], True])
def test_a_value_of_another_version_is_shown_as_it_is(odd: object) -> None:
    assert written("windows", odd) == json.dumps(odd)
