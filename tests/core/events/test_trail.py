"""The audit trail's chain: whatever is done to it shows, and nothing else does."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import Instant
from tidemill.core.events.log import KINDS, Cursor, PoolRestored, RecordedEvent, TrailTipPublished
from tidemill.core.events.trail import NO_ACTS, Act, Damage, Flaw, TrailTip, TrailVerifier, chain_events, digest
from tidemill.core.events.trail_lines import act_of, line_of, tip_line, tip_of

COUNT = 12


def event(number: int, kind: str = "test.done", **body: object) -> RecordedEvent:
    cursor = Cursor(1, 700 + number, number)
    return RecordedEvent(*cursor, UUID(int=number), Instant(number * 1000), kind, f"thing:{number}", body, False, [])


def trail(count: int = COUNT, restored: Sequence[int] = ()) -> list[Act]:
    kinds = dict.fromkeys(restored, PoolRestored.kind)
    return list(chain_events(NO_ACTS, [event(n, kinds.get(n, "test.done"), by="ann") for n in range(1, count + 1)]))


def rehashed(acts: Iterable[Act], head: TrailTip = NO_ACTS) -> list[Act]:
    """The same acts, chained anew: numbers, links and hashes agree with each other."""
    made: list[Act] = []
    for act in acts:
        loose = replace(act, number=head.number + 1, previous=head.sha256)
        made.append(replace(loose, sha256=digest(loose)))
        head = made[-1].tip
    return made


def first_flaw(
    acts: Iterable[Act], *, demanded: Sequence[TrailTip] = (), expected: Sequence[TrailTip] = (), partial: bool = False
) -> Flaw | None:
    verification = TrailVerifier(demanded=demanded, expected=expected, partial=partial)
    return next((flaw for act in acts if (flaw := verification.take(act))), None) or verification.finish()


def test_a_whole_trail_has_no_flaw_whatever_heads_of_it_were_kept() -> None:
    acts = trail()
    assert first_flaw(acts, demanded=[act.tip for act in acts], expected=[acts[-1].tip]) is None
    assert first_flaw([]) is None


def test_a_trail_may_be_continued_in_any_steps() -> None:
    events = [event(number) for number in range(1, 8)]
    whole = list(chain_events(NO_ACTS, events))
    parts = list(chain_events(NO_ACTS, events[:3]))
    parts += chain_events(parts[-1].tip, events[3:])
    assert parts == whole


FIELDS = {
    "generation": 2,
    "transaction": 699,
    "event_number": 99,
    "at": Instant(1),
    "event_id": UUID(int=77),
    "kind": "test.undone",
    "subject": "thing:other",
    "body": '{"by":"bob"}',
    "previous": bytes(31) + b"\1",
    "sha256": bytes(31) + b"\1",
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("place", [0, 5, COUNT - 1])
def test_an_edited_field_of_any_act_shows_at_that_act(field: str, place: int) -> None:
    acts = trail()
    acts[place] = replace(acts[place], **{field: FIELDS[field]})  # type: ignore[arg-type]
    flaw = first_flaw(acts)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.EDITED, place + 1)


def test_an_act_that_was_exchanged_with_its_hash_shows_where_the_next_was_chained() -> None:
    acts = trail()
    acts[4:5] = rehashed([replace(acts[4], body="{}")], acts[3].tip)
    flaw = first_flaw(acts)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.EDITED, 5)


@pytest.mark.parametrize(("gone", "told"), [((0, 1), "Act 1 is"), ((3, 4), "Act 4 is"), ((3, 7), "Acts 4 to 7 are")])
def test_acts_that_were_removed_are_named(gone: tuple[int, int], told: str) -> None:
    acts = trail()
    del acts[slice(*gone)]
    flaw = first_flaw(acts)
    assert flaw
    assert (flaw.damage, flaw.number, flaw.sentence) == (Damage.REMOVED, gone[0] + 1, f"{told} missing.")


def test_a_tail_that_was_cut_shows_against_a_head_and_only_then() -> None:
    acts = trail()
    assert first_flaw(acts[:-3]) is None
    flaw = first_flaw(acts[:-3], expected=[acts[3].tip, acts[-1].tip])
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.CUT, COUNT - 2)
    empty = first_flaw([], expected=[acts[0].tip])
    assert empty
    assert empty.damage is Damage.CUT


def test_two_acts_that_changed_places_show() -> None:
    acts = trail()
    acts[4], acts[8] = replace(acts[8], number=5), replace(acts[4], number=9)
    flaw = first_flaw(acts)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.REORDERED, 5)
    assert "written as act 9" in flaw.sentence


def test_lines_of_a_file_in_another_order_show() -> None:
    acts = trail()
    acts[4], acts[5] = acts[5], acts[4]
    assert first_flaw(acts) == Flaw(Damage.REMOVED, 5, "Act 5 is missing.")
    assert first_flaw([*trail()[:5], trail()[2]]) == Flaw(Damage.REORDERED, 3, "Act 3 comes behind act 5.")


@pytest.mark.parametrize("shift", [1, -1, 5000])
def test_acts_that_were_given_other_numbers_show(shift: int) -> None:
    acts = trail()
    flaw = first_flaw([*acts[:4], *(replace(act, number=act.number + shift) for act in acts[4:])])
    assert flaw
    assert flaw.damage is Damage.REORDERED
    assert "written as act 5:" in flaw.sentence


def test_a_forged_act_shows_at_the_first_true_one_behind_it() -> None:
    acts = trail()
    (forged,) = chain_events(acts[4].tip, [replace(event(5), number=6, body={"by": "mallory"})])
    flaw = first_flaw([*acts[:5], forged, *(replace(act, number=act.number + 1) for act in acts[5:])])
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.REORDERED, 7)


def test_a_trail_that_was_written_anew_agrees_with_itself_and_with_no_head() -> None:
    acts = trail()
    anew = rehashed([*acts[:4], replace(acts[4], body="{}"), *acts[5:]])
    assert first_flaw(anew) is None
    assert first_flaw(anew, expected=[acts[3].tip]) is None
    flaw = first_flaw(anew, expected=[acts[3].tip, acts[7].tip])
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.REWRITTEN, 8)


def test_acts_out_of_the_order_of_the_log_show_though_every_hash_is_right() -> None:
    acts = trail()
    flaw = first_flaw(rehashed([*acts[:4], acts[5], acts[4], *acts[6:]]))
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.REORDERED, 6)


@given(place=st.integers(0, COUNT - 1), other=st.integers(0, COUNT - 1), text=st.text(max_size=20))
def test_no_single_change_goes_unnoticed(place: int, other: int, text: str) -> None:
    acts, whole = trail(), trail()
    edited = [*acts[:place], replace(acts[place], subject=text), *acts[place + 1 :]]
    moved = list(acts)
    moved[place], moved[other] = moved[other], moved[place]
    removed = [*acts[:place], *acts[place + 1 :]]
    for changed in (edited, moved, removed):
        assert (first_flaw(changed, expected=[whole[-1].tip]) is None) == (changed == whole)


def test_a_line_break_cannot_move_words_from_one_field_to_another() -> None:
    (act,) = chain_events(NO_ACTS, [replace(event(1), subject="a\nb")])
    assert first_flaw([act]) is None
    for kind, subject in [("test.done\na", "b"), ("test.done", "a")]:
        moved = replace(act, kind=kind, subject=subject, body=act.body if subject == "b" else f"b\n{act.body}")
        assert digest(moved) == act.sha256
        assert first_flaw([moved])


def test_heads_from_before_a_restore_are_lost_and_not_missed_unless_demanded() -> None:
    old_life, new_life = trail(), trail(8)[:5]
    new_life += chain_events(new_life[-1].tip, [event(20, PoolRestored.kind, source="b.dump"), event(21)])
    heads = [old_life[3].tip, old_life[6].tip, old_life[11].tip, new_life[-1].tip]
    verification = TrailVerifier(expected=heads)
    assert [verification.take(act) for act in new_life] == [None] * 7
    assert verification.finish() is None
    assert verification.lost == [heads[1], heads[2]]
    for demanded, damage in ((heads[1], Damage.REWRITTEN), (heads[2], Damage.CUT)):
        flaw = first_flaw(new_life, demanded=[demanded])
        assert flaw
        assert flaw.damage is damage
        assert "Act 6 says that a backup was restored" in flaw.sentence


def test_a_head_from_after_a_restore_is_missed() -> None:
    acts = trail(10, restored=[5])
    flaw = first_flaw(acts[:7], expected=[acts[3].tip, acts[9].tip])
    assert flaw
    assert flaw.damage is Damage.CUT


def test_a_part_of_a_trail_is_checked_from_where_it_begins() -> None:
    acts = trail()
    assert first_flaw(acts[4:], partial=True, demanded=[acts[3].tip, acts[8].tip]) is None
    assert first_flaw(acts[4:]) == Flaw(Damage.REMOVED, 1, "Acts 1 to 4 are missing.")
    early = first_flaw(acts[4:], partial=True, demanded=[acts[1].tip])
    assert early
    assert (early.damage, early.number) == (Damage.REMOVED, 2)
    wrong = first_flaw(acts[4:], partial=True, demanded=[replace(acts[3].tip, sha256=bytes(32))])
    assert wrong
    assert (wrong.damage, wrong.number) == (Damage.REWRITTEN, 4)
    cut = first_flaw([*acts[4:6], *acts[7:]], partial=True)
    assert cut
    assert cut.damage is Damage.REMOVED


@given(st.text(max_size=30), st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.integers() | st.booleans()))
def test_a_line_reads_back_to_its_act_and_is_printable(subject: str, body: dict[str, object]) -> None:
    (act,) = chain_events(NO_ACTS, [replace(event(1), subject=subject, body=body)])
    line = line_of(act)
    assert line.isascii()
    assert line.isprintable()
    assert act_of(line) == act
    assert json.loads(act.body) == body


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{", "{ "),
        ('{"number":1', '{"number":2,"number":1'),
        ('"number":1', '"number":"1"'),
        ('"number":1', '"number":true'),
        ('"number":1', '"number":1.0'),
        ('"number":1', '"number":' + "9" * 5000),
        ('"kind":"test.done"', '"kind":["test.done"]'),
        ('"kind":"test.done"', '"kind":null'),
        ('"subject"', '"more":1,"subject"'),
        ("+00:00", ""),
        ("1970", "19700"),
        ('"cursor":"1.', '"cursor":"-1.'),
        ("{", "[" * 100_000),
    ],
)
def test_a_line_that_was_not_exported_is_no_act(old: str, new: str) -> None:
    line = line_of(trail(1)[0])
    assert act_of(line)
    assert act_of(line.replace(old, new, 1)) is None
    assert act_of(line[:-1]) is act_of(line + " ") is None


@pytest.mark.parametrize("line", ["", "null", "[]", "{}", "1", "act"])
def test_what_is_no_line_at_all_is_no_act(line: str) -> None:
    assert act_of(line) is None


def test_heads_are_read_as_they_are_written_and_nothing_else_is() -> None:
    head = trail(3)[-1].tip
    assert tip_of(tip_line(head)) == head
    assert tip_of(str(head)) == replace(head, at=None)
    sha = head.sha256.hex()
    wrong = ["", "3", f"0:{sha}", f"-3:{sha}", f"٣:{sha}", f"3:{sha[:-1]}", f"3:{sha}0", f"3 {sha} soon"]
    for text in [*wrong, f"3 {sha} 2026-01-01T00:00:00", f"3:{sha.upper()}", f"{'9' * 20}:{sha}", f"3 {sha} 1 2"]:
        assert tip_of(text) is None, text


def test_the_program_in_the_how_to_verifies_an_export(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "verify-the-audit-trail.md").read_text("utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]
    acts = chain_events(NO_ACTS, [replace(event(number), subject="ünï\ncode\x7f") for number in (1, 2, 3)])
    file = tmp_path / "trail.jsonl"
    for exported, code in ((acts, 0), ([acts[0], replace(acts[1], kind="test.undone"), acts[2]], 1)):
        file.write_text("".join(f"{line_of(act)}\n" for act in exported))
        done = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
    assert "AssertionError: 2" in done.stderr


def test_what_security_depends_on_is_audited_and_a_published_head_is_not() -> None:
    audited = {kind for kind, one in KINDS.items() if one.audited}
    assert audited >= {
        "pool.created",
        "pool.restored",
        "pool.switch_thrown",
        "process.started",
        "ledger.account_frozen",
        "ledger.adjustment_proposed",
        "ledger.adjustment_settled",
        "ledger.archived",
    }
    assert not TrailTipPublished.audited, "else publishing would move the head, and never come to rest"
