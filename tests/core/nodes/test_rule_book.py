"""Who set which rule: the newest counts, in whatever order node and pool hear of it; and what is no rule is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import SECOND, Instant
from tidemill.core.money import MoneyRefusal
from tidemill.core.nodes.rules.rule_book import (
    AT_MAX,
    BOOK_BYTES_MAX,
    RuleBook,
    RuleEntry,
    RuleOrigin,
    RulesRefusal,
    book_json,
    change,
    from_json,
    merge,
    rules_of,
    to_json,
)
from tidemill.core.nodes.rules.rules import IdleRule, NodeRules, WorkMode
from tidemill.core.nodes.rules.windows import Window

NOW = Instant(1_800_000_000 * SECOND)
EMPTY = RuleBook()
EVERYTHING = {
    "price": "1.25",
    "minimum_price": 0.5,
    "windows": [{"from": "22:00", "until": "08:00"}, {"from": "09:30", "until": "24:00", "days": ["sun", "mon"]}],
    "only_when_idle": {"below_pct": 10, "for_s": 300},
    "power_limit_w": 250,
    "temperature_limit_c": 75,
    "labels": ["rack=7", "hall=north"],
    "region": "Frankfurt am Main",
    "work": "drain",
}


def changed(book: RuleBook, place: RuleOrigin = RuleOrigin.NODE, now: Instant = NOW, **wishes: object) -> RuleBook:
    after = change(book, wishes, by="anna", place=place, now=now)
    assert isinstance(after, RuleBook)
    return after


windows = st.lists(
    st.fixed_dictionaries(
        {
            "from": st.sampled_from(["00:00", "08:15", "22:00", "23:59"]),
            "until": st.sampled_from(["00:00", "08:00", "24:00"]),
            "days": st.lists(st.sampled_from(["mon", "wed", "sun"]), min_size=1, max_size=5),
        }
    ),
    max_size=3,
)
wishes = st.fixed_dictionaries(
    {},
    optional={
        "price": st.one_of(st.none(), st.integers(0, 1000), st.just("0.000001")),
        "minimum_price": st.one_of(st.none(), st.integers(0, 1000)),
        "windows": st.one_of(st.none(), windows),
        "only_when_idle": st.one_of(
            st.none(), st.fixed_dictionaries({"below_pct": st.integers(1, 100), "for_s": st.integers(0, 86_400)})
        ),
        "power_limit_w": st.one_of(st.none(), st.integers(1, 10_000)),
        "temperature_limit_c": st.one_of(st.none(), st.integers(30, 120)),
        "labels": st.one_of(st.none(), st.lists(st.sampled_from(["a=1", "b=", "c.d/e-f=x y"]), unique=True)),
        "region": st.one_of(st.none(), st.sampled_from(["Oslo", "São Paulo"])),
        "work": st.one_of(st.none(), st.sampled_from(list(WorkMode)).map(str)),
    },
)
acts = st.tuples(
    wishes, st.sampled_from(["anna", "boris"]), st.sampled_from(RuleOrigin), st.integers(0, 5).map(Instant)
)


@st.composite
def books(draw: st.DrawFn) -> RuleBook:
    book = EMPTY
    for wish, by, place, now in draw(st.lists(acts, max_size=4)):
        after = change(book, wish, by=by, place=place, now=now)
        assert isinstance(after, RuleBook)
        book = after
    return book


def test_rules_are_read_from_what_people_write() -> None:
    assert rules_of(changed(EMPTY, **EVERYTHING)) == NodeRules(
        price_uc=1_250_000,
        minimum_price_uc=500_000,
        windows=(Window(22 * 60, 8 * 60), Window(9 * 60 + 30, 0, (0, 6))),
        only_when_idle=IdleRule(10, 300),
        power_limit_w=250,
        temperature_limit_c=75,
        labels=("hall=north", "rack=7"),
        region="Frankfurt am Main",
        work=WorkMode.DRAIN,
    )
    assert rules_of(EMPTY) == NodeRules()


def test_a_rule_is_taken_away_by_none_and_that_is_remembered() -> None:
    book = changed(changed(EMPTY, **EVERYTHING), **dict.fromkeys(EVERYTHING))
    assert rules_of(book) == NodeRules()
    assert rules_of(merge(book, changed(EMPTY, **EVERYTHING))) == NodeRules(), "the older word does not come back"


def test_each_rule_is_weighed_by_itself_and_says_who_set_it() -> None:
    on_node = changed(EMPTY, RuleOrigin.NODE, Instant(10), price=1, work="pause")
    in_pool = changed(EMPTY, RuleOrigin.POOL, Instant(20), price=2)
    both = merge(on_node, in_pool)
    assert rules_of(both) == NodeRules(price_uc=2_000_000, work=WorkMode.PAUSE)
    assert book_json(both) == {
        "price": {"value": "2", "by": "anna", "place": "pool", "at": 20},
        "work": {"value": "pause", "by": "anna", "place": "node", "at": 10},
    }


def test_of_one_instant_the_pools_word_counts() -> None:
    on_node, in_pool = changed(EMPTY, RuleOrigin.NODE, price=1), changed(EMPTY, RuleOrigin.POOL, price=2)
    assert rules_of(merge(on_node, in_pool)) == rules_of(merge(in_pool, on_node)) == NodeRules(price_uc=2_000_000)


def test_a_change_wins_over_what_it_was_made_upon_also_when_the_clock_went_back() -> None:
    ahead = changed(EMPTY, RuleOrigin.NODE, Instant(NOW + 10**15), work="pause")
    resumed = changed(ahead, RuleOrigin.POOL, NOW, work="run")
    assert rules_of(merge(ahead, resumed)).work is WorkMode.RUN
    again = changed(resumed, RuleOrigin.NODE, Instant(0), work="drain")
    assert rules_of(merge(merge(resumed, again), ahead)).work is WorkMode.DRAIN


def test_an_entry_from_the_end_of_time_can_still_be_overruled_by_the_pool() -> None:
    last = RuleBook({"work": RuleEntry(WorkMode.PAUSE, "mallory", RuleOrigin.NODE, Instant(AT_MAX))})
    resumed = changed(last, RuleOrigin.POOL, NOW, work="run")
    assert resumed.entries["work"].at == AT_MAX
    assert rules_of(merge(last, resumed)).work is WorkMode.RUN
    assert from_json(to_json(resumed)) == resumed


@given(books(), books(), books())
def test_merging_is_the_same_whichever_way_round_and_however_often(
    one: RuleBook, two: RuleBook, three: RuleBook
) -> None:
    assert merge(one, one) == one
    assert merge(one, two) == merge(two, one)
    assert merge(merge(one, two), three) == merge(one, merge(two, three))
    assert merge(merge(one, two), two) == merge(one, two)
    assert merge(one, EMPTY) == one


@given(books())
def test_a_book_is_read_as_it_was_written(book: RuleBook) -> None:
    assert from_json(to_json(book)) == book
    assert len(to_json(book)) < BOOK_BYTES_MAX


@given(books(), wishes, st.integers(0, 10).map(Instant))
def test_a_change_always_takes_effect_and_leaves_the_rest(book: RuleBook, wish: dict[str, Any], now: Instant) -> None:
    after = change(book, wish, by="eve", place=RuleOrigin.NODE, now=now)
    assert isinstance(after, RuleBook)
    assert merge(book, after) == after
    assert {name: entry for name, entry in after.entries.items() if name not in wish} == {
        name: entry for name, entry in book.entries.items() if name not in wish
    }


@pytest.mark.parametrize(
    ("name", "wish", "refusal"),
    [
        ("colour", "red", RulesRefusal.RULE_UNKNOWN),
        ("__class__", 1, RulesRefusal.RULE_UNKNOWN),
        ("price_uc", 1, RulesRefusal.RULE_UNKNOWN),
        ("price", -1, MoneyRefusal.AMOUNT_NEGATIVE),
        ("price", "0.0000001", MoneyRefusal.AMOUNT_TOO_FINE),
        ("price", 10**30, MoneyRefusal.AMOUNT_TOO_LARGE),
        ("price", float("nan"), MoneyRefusal.AMOUNT_MALFORMED),
        ("price", True, MoneyRefusal.AMOUNT_MALFORMED),
        ("minimum_price", "1e3", MoneyRefusal.AMOUNT_MALFORMED),
        ("windows", "22:00-08:00", RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [{"from": "22:00"}], RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [{"from": "22:00", "until": "25:00"}], RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [{"from": 22, "until": 8}], RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [{"from": "22:00", "until": "08:00", "days": []}], RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [{"from": "22:00", "until": "08:00", "days": "mon"}], RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [{"from": "22:00", "until": "08:00", "days": [[]]}], RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [{"from": "22:00", "until": "08:00", "days": ["Mon"]}], RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [{"from": "22:00", "until": "08:00", "zone": "UTC"}], RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [{"from": "22:00", "until": "08:00"}] * 21, RulesRefusal.WINDOWS_MALFORMED),
        ("windows", [None], RulesRefusal.WINDOWS_MALFORMED),
        ("only_when_idle", True, RulesRefusal.IDLE_MALFORMED),
        ("only_when_idle", {"below_pct": 0, "for_s": 1}, RulesRefusal.IDLE_MALFORMED),
        ("only_when_idle", {"below_pct": 10.5, "for_s": 1}, RulesRefusal.IDLE_MALFORMED),
        ("only_when_idle", {"below_pct": True, "for_s": 1}, RulesRefusal.IDLE_MALFORMED),
        ("only_when_idle", {"below_pct": 10, "for_s": 86_401}, RulesRefusal.IDLE_MALFORMED),
        ("only_when_idle", {"below_pct": 10, "for_s": 1, "x": 1}, RulesRefusal.IDLE_MALFORMED),
        ("power_limit_w", 0, RulesRefusal.POWER_LIMIT_MALFORMED),
        ("power_limit_w", "250", RulesRefusal.POWER_LIMIT_MALFORMED),
        ("temperature_limit_c", 29, RulesRefusal.TEMPERATURE_LIMIT_MALFORMED),
        ("temperature_limit_c", 10**400, RulesRefusal.TEMPERATURE_LIMIT_MALFORMED),
        ("labels", "rack=7", RulesRefusal.LABELS_MALFORMED),
        ("labels", ["rack"], RulesRefusal.LABELS_MALFORMED),
        ("labels", ["=7"], RulesRefusal.LABELS_MALFORMED),
        ("labels", ["+cmd=1"], RulesRefusal.LABELS_MALFORMED),
        ("labels", ["rack=\x1b[2J"], RulesRefusal.LABELS_MALFORMED),
        ("labels", ["rack=7", "rack=8"], RulesRefusal.LABELS_MALFORMED),
        ("labels", ["rack=" + "7" * 96], RulesRefusal.LABELS_MALFORMED),
        ("labels", [f"key{number}=1" for number in range(21)], RulesRefusal.LABELS_MALFORMED),
        ("labels", [["rack=7"]], RulesRefusal.LABELS_MALFORMED),
        ("region", "", RulesRefusal.REGION_MALFORMED),
        ("region", "x" * 101, RulesRefusal.REGION_MALFORMED),
        ("region", "Oslo\n", RulesRefusal.REGION_MALFORMED),
        ("region", 7, RulesRefusal.REGION_MALFORMED),
        ("work", "RUN", RulesRefusal.WORK_MALFORMED),
        ("work", ["run"], RulesRefusal.WORK_MALFORMED),
    ],
)
def test_what_is_no_rule_is_refused_and_nothing_is_changed(name: str, wish: object, refusal: object) -> None:
    assert change(EMPTY, {"price": 1, name: wish}, by="anna", place=RuleOrigin.POOL, now=NOW) is refusal


def _book(**fields: object) -> bytes:
    entry: dict[str, object] = {"value": 1, "by": "anna", "place": "node", "at": 5}
    return json.dumps({"price": entry | fields}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"price": 1}',
        b'{"price": {"value": 1}}',
        b" " * (BOOK_BYTES_MAX + 1),
        _book(at=-1),
        _book(at=AT_MAX + 1),
        _book(at=1.5),
        _book(at=True),
        _book(at=None),
        _book(by=""),
        _book(by="x" * 101),
        _book(by="anna\n"),
        _book(by="\ud800"),
        _book(by=7),
        _book(place="moon"),
        _book(place=None),
        _book(place=[]),
        _book(extra=1),
    ],
)
def test_a_book_that_a_peer_made_up_is_refused_whole(body: bytes) -> None:
    assert from_json(body) is RulesRefusal.RULES_MALFORMED


def test_a_book_with_one_wrong_rule_is_refused_with_that() -> None:
    assert from_json(_book(value=-1)) is MoneyRefusal.AMOUNT_NEGATIVE
    assert from_json(_book().replace(b"price", b"colour")) is RulesRefusal.RULE_UNKNOWN


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_whatever_json_is_sent_as_a_rule_is_taken_or_refused(value: object) -> None:
    for name in EVERYTHING:
        after = change(EMPTY, {name: value}, by="anna", place=RuleOrigin.POOL, now=NOW)
        assert isinstance(after, RuleBook | RulesRefusal | MoneyRefusal)
    assert isinstance(from_json(json.dumps(value).encode()), RuleBook | RulesRefusal | MoneyRefusal)
