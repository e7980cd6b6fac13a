"""A node's queue: devices are never shared, memory never promised twice, and nothing waits for ever."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.attempt_queue import (
    OVERTAKEN_US,
    WAITING_MAX,
    AttemptStart,
    MachineRoom,
    MachineShare,
    QueuedAttempt,
    QueueRefusal,
    objection,
    overdue,
    starts,
)

ROOM = MachineRoom(cores=4, memory_mib=8_000, disk_mib=100_000, devices={0: 24_000, 1: 12_000})
CPU = MachineShare(cores=1, memory_mib=500, disk_mib=100)
GPU = MachineShare(cores=1, memory_mib=500, disk_mib=100, devices=1, gpu_memory_mib=10_000)
NOW = Instant(1_000 * SECOND)


def waiting(number: int, share: MachineShare = CPU, *, priority: int = 0, waited_s: int = 0) -> QueuedAttempt:
    return QueuedAttempt(
        UUID(int=number), share, priority, Instant(NOW - waited_s * SECOND), Instant(NOW + 60 * SECOND)
    )


def order(found: list[AttemptStart]) -> list[int]:
    return [start.attempt_id.int for start in found]


@pytest.mark.parametrize(
    ("share", "refusal"),
    [
        (CPU, None),
        (MachineShare(5, 1, 1), QueueRefusal.TOO_FEW_CORES),
        (MachineShare(1, 8_001, 1), QueueRefusal.TOO_LITTLE_MEMORY),
        (MachineShare(1, 1, 100_001), QueueRefusal.TOO_LITTLE_DISK),
        (MachineShare(1, 1, 1, devices=3), QueueRefusal.TOO_FEW_DEVICES),
        (MachineShare(1, 1, 1, devices=2, gpu_memory_mib=20_000), QueueRefusal.TOO_FEW_DEVICES),
        (MachineShare(1, 1, 1, devices=2, gpu_memory_mib=12_000), None),
    ],
)
def test_what_a_machine_can_never_run_is_declined(share: MachineShare, refusal: QueueRefusal | None) -> None:
    assert objection(share, ROOM, waiting=0, left_us=1) is refusal


def test_a_full_queue_and_a_deadline_that_passed_are_declined() -> None:
    assert objection(CPU, ROOM, waiting=WAITING_MAX, left_us=1) is QueueRefusal.QUEUE_FULL
    assert objection(CPU, ROOM, waiting=0, left_us=0) is QueueRefusal.DEADLINE_IMPOSSIBLE


def test_a_device_runs_one_attempt_and_the_smallest_that_does_is_taken() -> None:
    found = starts([waiting(1, GPU), waiting(2, GPU), waiting(3, GPU)], [], ROOM, NOW)
    assert [(start.attempt_id.int, start.devices) for start in found] == [(1, (1,)), (2, (0,))]
    assert starts([waiting(3, GPU)], found, ROOM, NOW) == []
    assert order(starts([waiting(3, GPU)], found[:1], ROOM, NOW)) == [3]


def test_a_step_of_priority_is_worth_a_minute_and_no_more() -> None:
    one_core = MachineRoom(cores=1, memory_mib=1_000, disk_mib=1_000)
    assert order(starts([waiting(1), waiting(2, priority=1)], [], one_core, NOW)) == [2]
    assert order(starts([waiting(1, waited_s=61), waiting(2, priority=1)], [], one_core, NOW)) == [1]


def test_small_ones_pass_a_large_one_only_until_it_has_waited_long() -> None:
    large = MachineShare(cores=4, memory_mib=500, disk_mib=100)
    running = [AttemptStart(UUID(int=9), CPU, ())]
    assert order(starts([waiting(1, large, waited_s=1), waiting(2)], running, ROOM, NOW)) == [2]
    late = OVERTAKEN_US // SECOND
    assert order(starts([waiting(1, large, waited_s=late), waiting(2)], running, ROOM, NOW)) == []


def test_who_waits_past_the_deadline_is_found() -> None:
    late = QueuedAttempt(UUID(int=1), CPU, 0, NOW, NOW)
    assert overdue([late, waiting(2)], NOW) == [UUID(int=1)]


shares = st.builds(
    MachineShare,
    cores=st.floats(0.1, 4),
    memory_mib=st.integers(1, 8_000),
    disk_mib=st.integers(0, 100_000),
    devices=st.integers(0, 2),
    gpu_memory_mib=st.integers(0, 12_000),
)


@given(st.lists(st.tuples(shares, st.integers(-1, 1), st.integers(0, 300)), max_size=30))
def test_nothing_is_promised_twice_and_everything_starts_in_the_end(
    wanted: list[tuple[MachineShare, int, int]],
) -> None:
    left = [waiting(n, share, priority=p, waited_s=s) for n, (share, p, s) in enumerate(wanted)]
    rounds = 0
    while left:
        found = starts(left, [], ROOM, Instant(NOW + rounds * OVERTAKEN_US))
        assert found, "a machine with nothing to do starts something that fits"
        assert sum(one.share.cores for one in found) <= ROOM.cores + 1e-9
        assert sum(one.share.memory_mib for one in found) <= ROOM.memory_mib
        assert sum(one.share.disk_mib for one in found) <= ROOM.disk_mib
        taken = [device for one in found for device in one.devices]
        assert len(taken) == len(set(taken))
        assert all(len(one.devices) == one.share.devices for one in found)
        started = {one.attempt_id for one in found}
        left = [one for one in left if one.attempt_id not in started]
        rounds += 1
