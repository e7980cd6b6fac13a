"""What becomes of reports, whatever is in them: taken, refused or left out, and never more than that."""

import json
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import Event
from tidemill.core.nodes.health.telemetry import Beat, PastBeat
from tidemill.core.nodes.machine.abilities import NodeAbilities, abilities_bytes, missing_ability
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine, facts_of
from tidemill.core.nodes.reports import (
    DroppedReport,
    Fact,
    NodeReport,
    ReportEffects,
    StoredNode,
    fresh_reports,
    weigh_reports,
)
from tidemill.core.nodes.rules import rule_book
from tidemill.core.nodes.rules.rule_book import RuleBook, RuleOrigin

NOW = Instant(1_800_000_000 * SECOND)
MACHINE = Machine(
    "Linux", "6.1", "x86_64", "EPYC", 64, 512_000, 4_000_000, (Device(0, DeviceKind.CPU, "EPYC", "CPU-0", 1, "6.1"),)
)
KNOWN = StoredNode(UUID(int=1), UUID(int=2), json.loads(facts_of(MACHINE)), RuleBook(), 0)
KINDS = st.sampled_from(["machine", "rules", "clock", "leave", "sandbox", "challenge", "", "x" * 100])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["devices", "utc_offset_s"]), inner),
).map(lambda value: json.dumps(value).encode())
FACTS = st.builds(Fact, KINDS, st.binary() | JSON)
BEATS = st.builds(PastBeat, st.integers(0, 2**53).map(Instant), st.just(Beat(0, 0, 0, None, ())))
SAID = st.lists(FACTS | BEATS | st.builds(DroppedReport, st.booleans()), max_size=8)


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [event.kind for event in events]


@given(SAID)
def test_whatever_is_said_is_weighed_and_a_batch_tells_a_handful(said: list[NodeReport]) -> None:
    weighed = weigh_reports(KNOWN, said, NOW)
    assert len(weighed.events) <= 5
    assert all(beat.at <= NOW for beat in weighed.beats)
    assert all(json.dumps(event.body()).isascii() for event in weighed.events)


@given(st.integers(0, 8), st.integers(1, 12), st.integers(1, 5))
def test_what_is_fresh_comes_behind_what_was_received_without_a_gap(received: int, first: int, count: int) -> None:
    numbers = range(first, first + count)
    found = fresh_reports(received, first, numbers)
    if first > received + 1:
        assert found is None
        return
    assert list(found or ()) == [number for number in numbers if number > received]


def test_what_is_known_already_changes_nothing() -> None:
    said = [Fact("machine", facts_of(MACHINE)), Fact("clock", b'{"utc_offset_s": 0}'), Fact("rules", b"{}")]
    assert weigh_reports(KNOWN, said, NOW) == ReportEffects()


def test_of_each_kind_the_last_counts() -> None:
    said = [
        Fact("clock", b"nonsense"),
        Fact("clock", b'{"utc_offset_s": 60}'),
        Fact("clock", b'{"utc_offset_s": 7200}'),
    ]
    weighed = weigh_reports(KNOWN, said, NOW)
    assert (weighed.utc_offset_s, weighed.events) == (7200, ())


def test_what_a_node_carries_out_is_taken_once_and_within_bounds() -> None:
    carries = NodeAbilities(("script",), ("TIME",), (missing_ability("DISK_QUOTA", "No\nquota." * 200),))
    body = abilities_bytes(carries)
    assert weigh_reports(KNOWN, [Fact("sandbox", body)], NOW) == ReportEffects(abilities=carries)
    assert weigh_reports(replace(KNOWN, abilities=json.loads(body)), [Fact("sandbox", body)], NOW) == ReportEffects()


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b'{"kinds": "script", "abilities": []}',
        b'{"kinds": ["\\u0000"], "abilities": []}',
        json.dumps({"kinds": ["x"] * 65, "abilities": []}).encode(),
        json.dumps({"kinds": ["x" * 65], "abilities": []}).encode(),
        json.dumps({"kinds": [], "abilities": [], "more": "x" * 20_000}).encode(),
    ],
)
def test_nonsense_about_what_a_node_carries_out_is_refused(body: bytes) -> None:
    weighed = weigh_reports(KNOWN, [Fact("sandbox", body)], NOW)
    assert weighed.abilities is None
    assert kinds(weighed.events) == ["node.facts_refused"]


@pytest.mark.parametrize("offset", ["64801", "-64801", "1.5", "true", "null", '"0"'])
def test_no_clock_is_that_far_from_utc(offset: str) -> None:
    weighed = weigh_reports(KNOWN, [Fact("clock", f'{{"utc_offset_s": {offset}}}'.encode())], NOW)
    assert weighed.utc_offset_s is None
    assert kinds(weighed.events) == ["node.facts_refused"]


def test_a_node_that_knows_less_than_the_pool_is_told_again() -> None:
    pool = rule_book.change(RuleBook(), {"price": 1}, by="anna", place=RuleOrigin.POOL, now=NOW)
    assert isinstance(pool, RuleBook)
    known = StoredNode(UUID(int=1), UUID(int=2), None, pool, 0)
    weighed = weigh_reports(known, [Fact("rules", b"{}")], NOW)
    assert (weighed.rules, weighed.disagrees, weighed.events) == (None, True, ())
    assert not weigh_reports(known, [Fact("rules", rule_book.to_json(pool))], NOW).disagrees
