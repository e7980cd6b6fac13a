"""The life of a node, its conditions, and every answer to why it gets no work."""

from dataclasses import replace

import pytest

from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.life import (
    LIVES,
    Condition,
    LifeChange,
    LifeRefusal,
    NodeLife,
    after,
)
from tidemill.core.nodes.no_work import FailingDevice, NodeSituation, why_no_work
from tidemill.core.nodes.no_work_reasons import NoWorkCause
from tidemill.core.nodes.rules.rules import HeatLimits, IdleRule, MachineReading, NodeRules, WorkMode, sense
from tidemill.core.nodes.rules.windows import Window

NOW = Instant(1_800_000_000 * SECOND)
POOL = HeatLimits(85, 80)
SOUND = NodeSituation(
    life=NodeLife.ACTIVE,
    conditions={Condition.ONLINE},
    challenge_passed=True,
    version="1.2.0",
    version_accepted=True,
    versions_accepted="1.1 to 1.3",
    devices=2,
    failing=[],
    rules=NodeRules(),
    utc_offset_s=0,
)


def test_every_state_answers_every_change() -> None:
    assert LIVES.keys() == {(life, change) for life in NodeLife for change in LifeChange}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([], NodeLife.REGISTERED),
        ([LifeChange.PROVED], NodeLife.ACTIVE),
        ([LifeChange.PROVED, LifeChange.LAPSED], NodeLife.INACTIVE),
        ([LifeChange.PROVED, LifeChange.LAPSED, LifeChange.PROVED], NodeLife.ACTIVE),
        ([LifeChange.REMOVED], NodeLife.DEREGISTERED),
        ([LifeChange.PROVED, LifeChange.REMOVED], NodeLife.DEREGISTERED),
        ([LifeChange.PROVED, LifeChange.LAPSED, LifeChange.REMOVED], NodeLife.DEREGISTERED),
        ([LifeChange.LAPSED], LifeRefusal.NODE_NOT_PROVED),
        ([LifeChange.PROVED, LifeChange.PROVED], LifeRefusal.NODE_ALREADY_SO),
        ([LifeChange.PROVED, LifeChange.LAPSED, LifeChange.LAPSED], LifeRefusal.NODE_ALREADY_SO),
    ],
)
def test_a_node_goes_through_its_life(changes: list[LifeChange], expected: NodeLife | LifeRefusal) -> None:
    found: NodeLife | LifeRefusal = NodeLife.REGISTERED
    for change in changes:
        assert isinstance(found, NodeLife)
        found = after(found, change)
    assert found is expected


@pytest.mark.parametrize("change", LifeChange)
def test_nothing_brings_a_removed_node_back(change: LifeChange) -> None:
    assert after(NodeLife.DEREGISTERED, change) is LifeRefusal.NODE_REMOVED


def test_a_sound_node_has_no_reason() -> None:
    assert why_no_work(SOUND, POOL, NOW) == []
    assert why_no_work(replace(SOUND, conditions={Condition.ONLINE, Condition.DEGRADED}), POOL, NOW) == []


@pytest.mark.parametrize(
    ("node", "why", "words"),
    [
        (replace(SOUND, life=NodeLife.REGISTERED), NoWorkCause.NOT_ACTIVE, "not active yet"),
        (replace(SOUND, life=NodeLife.INACTIVE), NoWorkCause.NOT_ACTIVE, "inactive"),
        (replace(SOUND, life=NodeLife.DEREGISTERED), NoWorkCause.REMOVED, "new token"),
        (replace(SOUND, conditions={Condition.OFFLINE}), NoWorkCause.OFFLINE, "agent run"),
        (
            replace(SOUND, conditions={Condition.OFFLINE}, heard_at=Instant(NOW - 600 * SECOND)),
            NoWorkCause.OFFLINE,
            "for 10 minutes",
        ),
        (
            replace(SOUND, conditions={Condition.OFFLINE}, heard_at=Instant(NOW + 600 * SECOND)),
            NoWorkCause.OFFLINE,
            "for 0 seconds",
        ),
        (
            replace(SOUND, conditions={Condition.OFFLINE}, heard_at=Instant(NOW - 3 * 86_400 * SECOND)),
            NoWorkCause.OFFLINE,
            "for 3 days",
        ),
        (replace(SOUND, challenge_passed=False), NoWorkCause.CHALLENGE_MISSING, "challenged"),
        (
            replace(SOUND, version_accepted=False),
            NoWorkCause.VERSION_NOT_ACCEPTED,
            "1.2.0, and the pool accepts 1.1 to 1.3",
        ),
        (
            replace(SOUND, conditions={Condition.ONLINE, Condition.SUSPENDED}, suspended_reason="a wrong result"),
            NoWorkCause.SUSPENDED,
            "this node: a wrong result. Ask",
        ),
        (replace(SOUND, conditions={Condition.ONLINE, Condition.SUSPENDED}), NoWorkCause.SUSPENDED, "this node. Ask"),
        (replace(SOUND, conditions={Condition.ONLINE, Condition.PAUSED}), NoWorkCause.PAUSED, "resume"),
        (
            replace(SOUND, conditions={Condition.ONLINE, Condition.PAUSED}, paused_reason="Its disk is full."),
            NoWorkCause.PAUSED,
            "This node is paused: Its disk is full.",
        ),
        (replace(SOUND, conditions={Condition.ONLINE, Condition.DRAINING}), NoWorkCause.DRAINING, "resume"),
        (replace(SOUND, rules=NodeRules(work=WorkMode.PAUSE)), NoWorkCause.PAUSED, "owner"),
        (replace(SOUND, devices=0), NoWorkCause.FAILING_DEVICE, "No device"),
    ],
)
def test_each_reason_is_found_and_says_what_to_do(node: NodeSituation, why: NoWorkCause, words: str) -> None:
    (reason,) = why_no_work(node, POOL, NOW)
    assert reason.why is why
    assert words in reason.sentence
    assert reason.sentence.endswith(".")


def test_a_failing_device_is_named_and_the_node_works_on_with_the_others() -> None:
    one = FailingDevice("GPU 0", "It has fallen off the bus.")
    (reason,) = why_no_work(replace(SOUND, failing=[one]), POOL, NOW)
    assert (reason.device, reason.sentence) == (
        "GPU 0",
        "GPU 0 is failing and gets no work: It has fallen off the bus.",
    )
    both = why_no_work(replace(SOUND, failing=[one, FailingDevice("GPU 1", "Lost.")]), POOL, NOW)
    assert [reason.device for reason in both] == ["GPU 0", "GPU 1", None]


def test_a_node_that_heat_has_paused_is_told_of_the_heat() -> None:
    hot = sense(None, MachineReading(95, 200, 0), NodeRules(), POOL, NOW)
    node = replace(SOUND, conditions={Condition.ONLINE, Condition.PAUSED}, senses=hot)
    assert [reason.why for reason in why_no_work(node, POOL, NOW)] == [NoWorkCause.TOO_HOT]
    both = replace(node, paused_reason="Its disk is full.")
    assert [reason.why for reason in why_no_work(both, POOL, NOW)] == [NoWorkCause.TOO_HOT, NoWorkCause.PAUSED]


def test_everything_at_once_is_told_in_order_and_once() -> None:
    rules = NodeRules(
        windows=(Window(0, 1, (0,)),),
        only_when_idle=IdleRule(10, 60),
        power_limit_w=100,
        work=WorkMode.PAUSE,
    )
    node = replace(
        SOUND,
        life=NodeLife.INACTIVE,
        conditions={Condition.OFFLINE, Condition.PAUSED, Condition.DRAINING, Condition.SUSPENDED},
        challenge_passed=False,
        version_accepted=False,
        owner_blocked=True,
        placement_stopped="An operator has stopped placement.",
        failing=[FailingDevice("GPU 0", "Lost.")],
        rules=rules,
        senses=sense(None, MachineReading(95, 200, 50), rules, POOL, NOW),
    )
    found = [reason.why for reason in why_no_work(node, POOL, NOW)]
    assert found == [why for why in NoWorkCause if why is not NoWorkCause.REMOVED]
    assert [one.why for one in why_no_work(replace(node, life=NodeLife.DEREGISTERED), POOL, NOW)] == [
        NoWorkCause.REMOVED
    ]
