"""docs/CLAIMS.md has a line for each field of each message that a node sends, and for nothing else."""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args

from msgspec import structs

from tests.tidy.source import ROOT
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.nodes.challenge.messages import ChallengeAnswer, LinkRate
from tidemill.core.nodes.machine import cache_report, hardware
from tidemill.core.nodes.machine.abilities import MissingAbility, NodeAbilities
from tidemill.core.nodes.reports import ClockFacts, LeaveFacts
from tidemill.wire import messages, spool_reports

LINE = re.compile(r"^\| (\w+\.\w+) \| [^|]+\|[^|]*\|$", re.MULTILINE)
FRAMES = (*get_args(messages.FromAgent), *get_args(messages.Report), messages.DeviceBeatMessage)
SPOOLED = (spool_reports.SpoolGap, spool_reports.PastBeatReport)
BODIES = (
    hardware.Machine,
    hardware.Device,
    hardware.Pcie,
    hardware.DeviceLink,
    hardware.EngineVersion,
    hardware.Network,
    NodeAbilities,
    MissingAbility,
    cache_report.Cached,
    ClockFacts,
    LeaveFacts,
    ChallengeAnswer,
    LinkRate,
)


def claimed_fields() -> Iterator[str]:
    for frame in (*FRAMES, *SPOOLED):
        yield from _named(frame, (field.name for field in structs.fields(frame)))
    for body in BODIES:
        yield from _named(body, (field.name for field in fields(body)))
    yield from _named(Receipt, Receipt._fields)


def _named(message: Any, names: Any) -> Iterator[str]:
    return (f"{message.__name__}.{name}" for name in names)


def test_every_field_that_a_node_sends_has_a_line() -> None:
    told = LINE.findall((ROOT / "docs" / "CLAIMS.md").read_text("utf-8"))
    assert sorted(told) == sorted(set(told)), "a field has one line"
    assert set(claimed_fields()) - set(told) == set(), "fields without a line in docs/CLAIMS.md"
    assert set(told) - set(claimed_fields()) == set(), "lines in docs/CLAIMS.md about fields that are no more"
