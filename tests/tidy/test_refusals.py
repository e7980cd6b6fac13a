"""Every "no" has a stable code, a sentence that says what to do, and a status; every event says what it means."""

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

import pytest

from tests.tidy.source import ROOT, expect_none, import_everything, is_ours
from tidemill.control.http.statuses import STATUS
from tidemill.core.events.log import KINDS, Event
from tidemill.core.faults import Fault
from tidemill.core.refusals import Refusal

T = TypeVar("T")


@pytest.fixture(autouse=True)
def _everything() -> None:
    import_everything()


def test_every_refusal_has_a_status_and_no_status_is_left_over() -> None:
    known = {member for kind in _below(Refusal) for member in kind}
    expect_none(
        [f"{refusal} has no status" for refusal in known - STATUS.keys()]
        + [f"{refusal} is gone" for refusal in STATUS.keys() - known],
        "The table is STATUS in src/tidemill/control/http/statuses.py.",
    )


def test_every_refusal_is_a_sentence() -> None:
    expect_none(
        (
            f"{member}: {member.sentence}"
            for kind in _below(Refusal)
            for member in kind
            if not (member.sentence.endswith(".") and member.sentence[:1].isupper())
        ),
        "A refusal begins with a capital, says what to do, and ends with a period.",
    )


def test_no_two_refusals_share_a_code_and_none_is_hidden_by_another() -> None:
    """A member whose sentence was there already is only another name of the first, and its code is never sent."""
    codes = Counter(member.code for kind in _below(Refusal) for member in kind)
    aliases = [
        f"{kind.__name__}.{name} repeats the sentence of {member.name}"
        for kind in _below(Refusal)
        for name, member in kind.__members__.items()
        if name != member.name
    ]
    expect_none([*aliases, *(f"{code} is used twice" for code in codes if codes[code] > 1)], "Codes are for programs.")


def test_no_two_faults_share_a_code() -> None:
    codes = Counter(fault.code for fault in _below(Fault))
    expect_none((f"{code} is used twice" for code in codes if codes[code] > 1), "Give each fault a code of its own.")


def test_every_kind_of_event_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "events.md").read_text("utf-8")
    kinds = [kind for kind, event in KINDS.items() if is_ours(event)]
    expect_none((kind for kind in kinds if f"## {kind}\n" not in page), "Run `make reference`.")


def test_every_kind_of_event_says_what_it_means() -> None:
    expect_none(
        (
            f"{event.__module__}.{event.__name__} ({kind})"
            for kind, event in KINDS.items()
            if is_ours(event) and not _meaning(event)
        ),
        "Give the class a docstring, in a sentence; it stands on the page of events.",
    )


def _meaning(event: type[Event]) -> str:
    """Its docstring, unless @dataclass wrote it."""
    text = vars(event).get("__doc__") or ""
    return "" if text.startswith(f"{event.__name__}(") else text


def _below(base: type[T]) -> Iterator[type[T]]:
    """Our own classes below a class."""
    for below in base.__subclasses__():
        if is_ours(below):
            yield below
        yield from _below(below)
