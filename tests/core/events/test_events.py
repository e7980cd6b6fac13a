"""Events and cursors."""

from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import Instant
from tidemill.core.events.log import (
    KINDS,
    LOG_START,
    Cursor,
    EventReader,
    ProcessLost,
    RecordedEvent,
    SwitchThrown,
    may_read,
)

numbers = st.integers(0, 2**63 - 1)
cursors = st.builds(Cursor, numbers, numbers, numbers)


@given(cursors)
def test_a_cursor_survives_being_written_and_read(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor


@given(st.text(max_size=40))
def test_any_text_is_a_cursor_or_none(text: str) -> None:
    parsed = Cursor.parse(text)
    assert parsed is None or (min(parsed) >= 0 and max(parsed) < 2**63)


def test_what_only_looks_like_a_cursor_is_refused() -> None:
    for text in ("", "1.2", "1.2.3.4", "1.-2.3", "a.b.c", "1.2.٣", "9" * 19 + ".1.1", "1..2", " 1.2.3"):
        assert Cursor.parse(text) is None, text


def recorded(*, public: bool, accounts: list[UUID]) -> RecordedEvent:
    return RecordedEvent(*LOG_START, uuid4(), Instant(0), "kind", "pool", {}, public, accounts)


def test_who_may_read_an_event() -> None:
    mine, other = uuid4(), uuid4()
    stranger, owner, foreigner, operator = (
        EventReader(),
        EventReader(account_id=mine),
        EventReader(account_id=other),
        EventReader(operator=True),
    )
    table = [
        (recorded(public=True, accounts=[]), {stranger, owner, foreigner, operator}),
        (recorded(public=False, accounts=[mine]), {owner, operator}),
        (recorded(public=False, accounts=[]), {operator}),
    ]
    for event, readers in table:
        assert {reader for reader in (stranger, owner, foreigner, operator) if may_read(reader, event)} == readers


def test_an_event_knows_its_kind_subject_and_body() -> None:
    process_id = uuid4()
    lost = ProcessLost(process_id)
    assert (lost.kind, lost.subject, lost.body()) == (
        "process.lost",
        f"process:{process_id}",
        {"process_id": str(process_id)},
    )
    assert SwitchThrown("all", True, "why", "ann").public
    assert KINDS["process.lost"] is ProcessLost
