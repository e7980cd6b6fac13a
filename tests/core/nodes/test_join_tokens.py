"""Join tokens, who is let in at the door, and which agents get work: the decisions."""

import secrets
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.accounts.roles import Role
from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.admission import (
    CLONE_TOLD_EVERY_US,
    AdmissionDecision,
    AdmissionRecords,
    AdmissionRefusal,
    Admit,
    Applicant,
    DoorRules,
    NodeAtDoor,
    Owner,
    Register,
    TurnAway,
    decide,
)
from tidemill.core.nodes.join_tokens import (
    LIFETIME_MAX_S,
    USES_MAX,
    JoinToken,
    JoinTokenParts,
    JoinTokenRefusal,
    letter_due,
    read_token,
    refused_join,
    refused_token,
    sha256,
    write_token,
)
from tidemill.core.nodes.life import LifeRefusal, NodeLife
from tidemill.core.nodes.versions import is_accepted, is_version
from tidemill.core.refusals import Refusal
from tidemill.core.signatures import fingerprint

NOW = Instant(1_800_000_000 * SECOND)
RULES = DoorRules(beat_us=30 * SECOND, oldest_agent="0.3")
PRINT = fingerprint(bytes(32))
ANN, BEN = UUID(int=1), UUID(int=2)
RUN, OTHER_RUN = UUID(int=11), UUID(int=12)
KEY = b"k" * 32


def token(number: int = 5, **changed: object) -> JoinToken:
    id_ = UUID(int=number)
    made = JoinToken(id_, ANN, "rack", sha256(str(id_)), False, [], 1, 0, NOW, Instant(NOW + 3600 * SECOND))
    return replace(made, **changed)  # type: ignore[arg-type]


def node(**changed: object) -> NodeAtDoor:
    made = NodeAtDoor(UUID(int=9), ANN, KEY, NodeLife.ACTIVE, None, None, RUN, False, False, None, None, "{}", 0)
    return replace(made, **changed)  # type: ignore[arg-type]


def owner(account_id: UUID = ANN, **changed: object) -> Owner:
    return replace(Owner(account_id, frozenset({Role.PROVIDER}), False), **changed)  # type: ignore[arg-type]


def found(nodes: tuple[NodeAtDoor, ...] = (), tokens: tuple[JoinToken, ...] = (), *owners: Owner) -> AdmissionRecords:
    people = owners or (owner(ANN), owner(BEN))
    return AdmissionRecords(
        {one.key: one for one in nodes},
        frozenset(one.id for one in nodes),
        {one.sha256: one for one in tokens},
        {one.id: one for one in people},
    )


def newcomer(one: JoinToken, key: bytes = KEY, instance: UUID = RUN) -> Applicant:
    return Applicant(key, instance, "tidemill/0.3", "198.51.100.7", None, one.sha256)


def known(one: NodeAtDoor, instance: UUID = RUN, **changed: object) -> Applicant:
    made = Applicant(one.key, instance, "tidemill/0.3", "198.51.100.7", one.id)
    return replace(made, **changed)  # type: ignore[arg-type]


def alone(applicant: Applicant, known_to_us: AdmissionRecords) -> AdmissionDecision:
    (verdict,) = decide([applicant], known_to_us, RULES, NOW)
    return verdict


def refusal(applicant: Applicant, known_to_us: AdmissionRecords) -> Refusal:
    verdict = alone(applicant, known_to_us)
    assert isinstance(verdict, TurnAway)
    return verdict.refusal


@given(st.uuids(), st.binary(min_size=32, max_size=32))
def test_a_token_reads_back_and_its_machine_sends_all_but_the_fingerprint(token_id: UUID, secret: bytes) -> None:
    text = write_token(token_id, secret, PRINT)
    shown = read_token(f"  {text}\n")
    assert isinstance(shown, JoinTokenParts)
    assert shown.fingerprint == PRINT
    assert PRINT not in shown.secret_part
    assert text == f"tidemill-join-1.{shown.secret_part}.{PRINT}"


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert read_token(text) is JoinTokenRefusal.JOIN_TOKEN_MALFORMED
    assert len(sha256(text)) == 32


def test_a_token_that_lost_a_letter_or_grew_is_none() -> None:
    text = write_token(ANN, secrets.token_bytes(32), PRINT)
    for broken in (text[:-1], text[1:], text + "0", text.replace(".", "", 1), text.upper(), text + "\n" + text):
        assert read_token(broken) is JoinTokenRefusal.JOIN_TOKEN_MALFORMED


@pytest.mark.parametrize(
    ("changed", "due"),
    [
        ({}, None),
        ({"name": ""}, JoinTokenRefusal.JOIN_TOKEN_NAME_MALFORMED),
        ({"name": "   "}, JoinTokenRefusal.JOIN_TOKEN_NAME_MALFORMED),
        ({"name": "x" * 101}, JoinTokenRefusal.JOIN_TOKEN_NAME_MALFORMED),
        ({"name": "a\x1b[2Jb"}, JoinTokenRefusal.JOIN_TOKEN_NAME_MALFORMED),
        ({"name": "a\u202eb"}, JoinTokenRefusal.JOIN_TOKEN_NAME_MALFORMED),
        ({"uses": 0}, JoinTokenRefusal.JOIN_TOKEN_USES_MALFORMED),
        ({"uses": USES_MAX + 1}, JoinTokenRefusal.JOIN_TOKEN_USES_MALFORMED),
        ({"lifetime_s": 0}, JoinTokenRefusal.JOIN_TOKEN_LIFETIME_MALFORMED),
        ({"lifetime_s": LIFETIME_MAX_S + 1}, JoinTokenRefusal.JOIN_TOKEN_LIFETIME_MALFORMED),
        ({"lifetime_s": float("nan")}, JoinTokenRefusal.JOIN_TOKEN_LIFETIME_MALFORMED),
    ],
)
def test_a_token_is_bounded(changed: dict[str, object], due: JoinTokenRefusal | None) -> None:
    asked: dict[str, object] = {"name": "rack 7", "uses": 1, "lifetime_s": 3600, **changed}
    assert refused_token(**asked) is due  # type: ignore[arg-type]


def test_only_who_provides_joins_machines_and_only_operators_those_of_the_house() -> None:
    assert refused_join(frozenset({Role.PROVIDER}), house=False) is None
    assert refused_join(frozenset({Role.DATA_CENTRE}), house=False) is None
    assert refused_join(frozenset({Role.OPERATOR}), house=True) is None
    assert refused_join(frozenset({Role.CUSTOMER}), house=False) is JoinTokenRefusal.JOIN_TOKEN_NOT_PROVIDER
    assert refused_join(frozenset({Role.PROVIDER}), house=True) is JoinTokenRefusal.JOIN_TOKEN_NOT_HOUSE


def test_a_letter_is_due_at_once_and_then_once_an_hour() -> None:
    assert letter_due(token(), NOW)
    assert not letter_due(token(letter_at=NOW), Instant(NOW + 3599 * SECOND))
    assert letter_due(token(letter_at=NOW), Instant(NOW + 3600 * SECOND))


def test_a_newcomer_with_a_good_token_becomes_a_node() -> None:
    assert alone(newcomer(token()), found(tokens=(token(),))) == Register(token(), version_accepted=True)


@pytest.mark.parametrize(
    ("changed", "due"),
    [
        ({"expires_at": NOW}, JoinTokenRefusal.JOIN_TOKEN_EXPIRED),
        ({"revoked_at": NOW}, JoinTokenRefusal.JOIN_TOKEN_REVOKED),
        ({"uses": 1}, JoinTokenRefusal.JOIN_TOKEN_USED_UP),
        ({"house": True}, JoinTokenRefusal.JOIN_TOKEN_NOT_HOUSE),
    ],
)
def test_a_newcomer_with_a_token_that_is_no_good_is_told_why(changed: dict[str, object], due: Refusal) -> None:
    spent = token(**changed)
    assert refusal(newcomer(spent), found(tokens=(spent,))) is due


def test_a_newcomer_without_a_token_or_with_a_wrong_one_is_turned_away() -> None:
    assert refusal(newcomer(token()), found()) is JoinTokenRefusal.JOIN_TOKEN_UNKNOWN
    bare = Applicant(KEY, RUN, "tidemill/0.3", "", None, None)
    assert refusal(bare, found(tokens=(token(),))) is JoinTokenRefusal.JOIN_TOKEN_UNKNOWN


def test_the_last_use_of_a_token_is_one_machine_however_many_come_at_once() -> None:
    keys = [bytes([number]) * 32 for number in range(5)]
    good = token(uses_max=2)
    verdicts = decide([newcomer(good, key) for key in keys], found(tokens=(good,)), RULES, NOW)
    assert [isinstance(verdict, Register) for verdict in verdicts] == [True, True, False, False, False]


def test_a_token_of_a_blocked_owner_or_of_one_who_lost_the_role_lets_nobody_in() -> None:
    good = token()
    blocked = found((), (good,), owner(blocked=True))
    assert refusal(newcomer(good), blocked) is AdmissionRefusal.NODE_OWNER_BLOCKED
    customer = found((), (good,), owner(roles=frozenset({Role.CUSTOMER})))
    assert refusal(newcomer(good), customer) is JoinTokenRefusal.JOIN_TOKEN_NOT_PROVIDER
    house = token(house=True)
    former = found((), (house,), owner(roles=frozenset({Role.PROVIDER})))
    assert refusal(newcomer(house), former) is JoinTokenRefusal.JOIN_TOKEN_NOT_HOUSE


def test_a_newcomer_whose_welcome_was_lost_gets_its_node_again_though_the_token_is_spent() -> None:
    for spent in (token(uses=1), token(expires_at=NOW), token(revoked_at=NOW), token(number=6)):
        verdict = alone(newcomer(spent), found((node(),), (spent,)))
        assert isinstance(verdict, Admit)
        assert verdict.node.id == node().id


def test_a_key_of_one_owner_cannot_be_joined_for_another() -> None:
    foreign = token(account_id=BEN)
    assert refusal(newcomer(foreign), found((node(),), (foreign,))) is AdmissionRefusal.NODE_KEY_TAKEN


def test_the_key_of_a_removed_node_never_comes_back_whoever_brings_it() -> None:
    removed = node(life=NodeLife.DEREGISTERED)
    for good in (token(), token(account_id=BEN)):
        assert refusal(newcomer(good), found((removed,), (good,))) is LifeRefusal.NODE_REMOVED
    verdict = alone(known(removed), found((removed,)))
    assert isinstance(verdict, TurnAway)
    assert (verdict.refusal, verdict.retry_ms) == (LifeRefusal.NODE_REMOVED, None)


def test_a_node_is_known_by_its_key_and_not_by_its_name() -> None:
    assert refusal(known(node()), found()) is AdmissionRefusal.NODE_UNKNOWN
    thief = known(node(), key=b"t" * 32)
    assert refusal(thief, found((node(),))) is AdmissionRefusal.NODE_KEY_WRONG
    second = node(id=UUID(int=10), key=b"s" * 32)
    assert refusal(known(second, node_id=node().id), found((node(), second))) is AdmissionRefusal.NODE_KEY_WRONG


def test_a_blocked_owners_node_comes_in_to_deliver_what_it_finished() -> None:
    assert isinstance(alone(known(node()), found((node(),), (), owner(blocked=True))), Admit)


@pytest.mark.parametrize(
    ("held", "silent_s", "instance", "is_clone"),
    [
        (True, 10, OTHER_RUN, True),
        (True, 60, OTHER_RUN, True),
        (True, 61, OTHER_RUN, False),
        (False, 1, OTHER_RUN, False),
        (True, 10, RUN, False),
    ],
)
def test_a_clone_is_another_run_while_the_first_is_heard(
    held: bool, silent_s: int, instance: UUID, is_clone: bool
) -> None:
    here = node(has_link=held, heard_at=Instant(NOW - silent_s * SECOND))
    verdict = alone(known(here, instance), found((here,)))
    assert isinstance(verdict, TurnAway) == is_clone
    if isinstance(verdict, TurnAway):
        assert (verdict.refusal, verdict.retry_ms) == (AdmissionRefusal.IDENTITY_IN_USE, 30_000)


def test_a_clone_is_told_of_once_in_a_while() -> None:
    for since_us, told in ((0, False), (CLONE_TOLD_EVERY_US, True)):
        here = node(has_link=True, heard_at=NOW, cloned_at=Instant(NOW - since_us))
        verdict = alone(known(here, OTHER_RUN), found((here,)))
        assert isinstance(verdict, TurnAway)
        assert (verdict.cloned is not None) == told


def test_while_the_holder_of_a_link_is_doubted_the_caller_asks_again_soon_and_nobody_is_accused() -> None:
    here = node(has_link=True, link_doubted=True, heard_at=NOW)
    verdict = alone(known(here, OTHER_RUN), found((here,)))
    assert verdict == TurnAway(AdmissionRefusal.IDENTITY_IN_USE, here.id, 1_000)


def test_of_one_key_one_call_of_a_batch_is_answered() -> None:
    here = node()
    callers = [known(here, OTHER_RUN), known(here, RUN), known(here, OTHER_RUN), known(here, RUN)]
    verdicts = decide(callers, found((here,)), RULES, NOW)
    assert isinstance(verdicts[3], Admit), "the run that has the link, and of it the newest call"
    refusals = [verdict.refusal for verdict in verdicts[:3] if isinstance(verdict, TurnAway)]
    assert refusals == [
        AdmissionRefusal.IDENTITY_IN_USE,
        AdmissionRefusal.NEWER_HELLO,
        AdmissionRefusal.IDENTITY_IN_USE,
    ]


def test_two_newcomers_with_one_key_are_one_node_and_one_use() -> None:
    good = token(uses_max=2)
    verdicts = decide([newcomer(good), newcomer(good)], found(tokens=(good,)), RULES, NOW)
    assert [type(verdict) for verdict in verdicts] == [TurnAway, Register]


def test_an_old_agent_is_let_in_without_work_and_told_once_for_each_version() -> None:
    old = known(node(), agent="tidemill/0.2.9")
    assert alone(old, found((node(),))) == Admit(node(), version_accepted=False, tell_version=True)
    told = node(refused_agent="tidemill/0.2.9")
    assert alone(old, found((told,))) == Admit(told, version_accepted=False, tell_version=False)


@pytest.mark.parametrize(
    ("agent", "oldest", "accepted"),
    [
        ("tidemill/0.3", "0.3", True),
        ("tidemill/0.3.0", "0.3", True),
        ("tidemill/0.10", "0.9", True),
        ("tidemill/1", "0.99.99", True),
        ("tidemill/0.4.dev1+g12ab", "0.4", True),
        ("tidemill/0.2.9", "0.3", False),
        ("tidemill/0.3", "0.3.1", False),
        ("other/9.9", "0.1", False),
        ("tidemill/", "0.1", False),
        ("tidemill/" + "9" * 90, "0.1", False),
        ("tidemill/1.2\n", "0.1", False),
        ("tidemill/\u0661.0", "0.1", False),
        ("", "0.1", False),
    ],
)
def test_versions_are_compared_by_their_numbers(agent: str, oldest: str, accepted: bool) -> None:
    assert is_accepted(agent, oldest) is accepted


def test_a_version_of_the_settings_is_numbers_and_dots() -> None:
    assert is_version("0.1")
    assert is_version("1.2.3.4")
    assert not any(map(is_version, ("", "1.", ".1", "v1", "1.2.3.4.5", "1.2-rc1", "1234567")))
