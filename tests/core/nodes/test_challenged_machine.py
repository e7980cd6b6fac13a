"""The machine itself in a challenge: how much is asked of it, what counts of its claims, and that nobody has more by
claiming more."""

from dataclasses import replace
from threading import Event
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.nodes.test_node_life import NOW, POOL, SOUND
from tidemill.agent.machine.bench import Bench
from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.nodes.challenge.conclusions import ChallengeEvidence, Conclusion, conclude
from tidemill.core.nodes.challenge.figures import (
    LATE_MAX,
    ChallengeRefusal,
    DeviceCheck,
    MachineFigures,
    figures,
    machine_figures,
    reduced_claims,
    unsupported_claims,
)
from tidemill.core.nodes.challenge.messages import (
    HOST,
    AnswerStep,
    ChallengeAnswer,
    ChallengePart,
    as_text,
    instruction_bytes,
    instruction_of,
)
from tidemill.core.nodes.challenge.sizes import ChallengePlan, ask_instruction, device_draw, plan_challenge
from tidemill.core.nodes.challenge.states import ChallengeState
from tidemill.core.nodes.challenge.tasks import MemoryTask, SpeedTask
from tidemill.core.nodes.life import NodeLife
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine
from tidemill.core.nodes.node import KnownDevice, Node
from tidemill.core.placement.seller import SellerDefaults, seller_of
from tidemill.core.placement.supply import Seller
from tidemill.core.settings.sections.challenge import ChallengeSettings
from tidemill.core.settings.sections.money import NvlinkSettings

RULES = ChallengeSettings()
CPU = Device(0, DeviceKind.CPU, "A CPU", "cpu-0", 16_384, "none")
GPU = Device(0, DeviceKind.NVIDIA, "NVIDIA GeForce RTX 3090", "GPU-1", 24_576, "550")
TIB_MIB = 1024 * 1024
OF_CORE = OPERATIONS_PER_CORE_S * RULES.core_share

cores_claimed = st.integers(1, 65_536)
speeds = st.floats(1e6, 1e15)


def machine(cores: int = 8, memory_mib: int = 16_384, device: Device = CPU) -> Machine:
    return Machine("Linux", "6", "x86_64", "A CPU", cores, memory_mib, 10**6, (device,))


def plan(claim: Machine, rules: ChallengeSettings = RULES) -> ChallengePlan:
    return plan_challenge(claim, {}, b"seed", rules)


def shown(claim: Machine, ops_per_s: float) -> MachineFigures:
    """What counts of a claim where everything together did so many operations a second."""
    asked = plan(claim)
    took_us = int(asked.tasks[asked.machine.index].speed.operations / ops_per_s * SECOND)
    checks = {index: DeviceCheck(True, True, took_us) for index in asked.tasks}
    return machine_figures(asked, figures(asked, checks, (), NvlinkSettings()), RULES)


def test_a_machine_is_asked_as_its_cpu_and_beside_its_gpus() -> None:
    alone, beside = plan(machine()), plan(machine(device=GPU))
    assert (list(alone.tasks), alone.machine.index) == ([0], 0)
    assert (list(beside.tasks), beside.machine.index) == ([0, HOST], HOST)
    assert alone.tasks[0].speed.products == beside.tasks[HOST].speed.products
    assert alone.tasks[0].memory.mib == beside.tasks[HOST].memory.mib
    order = ask_instruction(UUID(int=1), beside, 600)
    assert instruction_of(instruction_bytes(order)) == order


@pytest.mark.parametrize(
    ("memory_mib", "asked_mib"),
    [(0, 1), (1_000, 125), (16_384, 2_048), (TIB_MIB, TIB_MIB / 8), (4 * TIB_MIB, TIB_MIB / 2)],
)
def test_whoever_claims_more_memory_has_more_to_fill(memory_mib: int, asked_mib: int) -> None:
    """A machine of 16 GiB cannot fill the half tebibyte that a claim of 4 TiB takes."""
    task = plan(machine(memory_mib=memory_mib)).tasks[0].memory
    assert task.mib == pytest.approx(asked_mib, rel=0.02)
    assert task.steps >= 64


@pytest.mark.parametrize("cores", [1, 2, 8, 64, 256, 4_096])
def test_every_claimed_core_has_as_much_to_multiply(cores: int) -> None:
    task = plan(machine(cores)).tasks[0].speed
    assert task.operations / cores == plan(machine(1)).tasks[0].speed.operations


def test_a_machine_that_was_measured_is_timed_for_as_long_as_is_set() -> None:
    asked = plan_challenge(machine(8), {0: 800 * 10**9}, b"seed", RULES).tasks[0].speed
    assert asked.operations / 800e9 == pytest.approx(RULES.speed_s, rel=0.05)


@pytest.mark.parametrize(
    ("claimed", "cores_worth", "measured"),
    [(8, 8, 8), (8, 100, 8), (8, 7.5, 7), (8, 1.2, 1), (8, 0.01, 1), (1, 0.5, 1), (256, 1, 1), (256, 4.1, 4)],
)
def test_cores_count_by_what_all_did_at_once(claimed: int, cores_worth: float, measured: int) -> None:
    found = shown(machine(claimed), cores_worth * OF_CORE * 1.001)
    assert (found.claimed_cores, found.measured_cores) == (claimed, measured)
    reduced = reduced_claims(found)
    assert [one.refusal for one in reduced] == ([ChallengeRefusal.CORES_NOT_SHOWN] if measured < claimed else [])
    assert all(f"claims {claimed} cores" in one.sentence for one in reduced)


@given(cores_claimed, speeds)
def test_no_claim_makes_more_of_a_machine_than_it_showed(claimed: int, ops_per_s: float) -> None:
    measured = shown(machine(claimed), ops_per_s).measured_cores
    assert 1 <= measured <= claimed
    assert measured <= max(1.0, ops_per_s * 1.01 / OF_CORE)


@given(cores_claimed, speeds, st.floats(1.0, 1_000.0))
def test_whoever_idles_while_it_is_measured_gains_nothing(claimed: int, ops_per_s: float, slower: float) -> None:
    at_best, idling = shown(machine(claimed), ops_per_s), shown(machine(claimed), ops_per_s / slower)
    assert idling.measured_cores <= at_best.measured_cores


def test_memory_that_was_not_shown_fails_the_machine_by_its_name() -> None:
    asked = plan(machine(memory_mib=4 * TIB_MIB, device=GPU))
    checks = {0: DeviceCheck(True, True, 10**6), HOST: DeviceCheck(False, True, 10**6)}
    found = figures(asked, checks, (), NvlinkSettings())
    assert machine_figures(asked, found, RULES).measured_mib == 0
    (claim,) = unsupported_claims(found, checks, RULES)
    assert claim.refusal is ChallengeRefusal.MEMORY_NOT_SHOWN
    assert claim.sentence.startswith("The machine, A CPU, claims 4,194,304 MiB")


@pytest.mark.parametrize("cores", [2, 5])
def test_many_cores_make_the_same_as_one(cores: int) -> None:
    speed, memory = SpeedTask(5, 256, 300), MemoryTask(6, 64, 330, 1)
    one, many = Bench(CPU, 0, Event()), Bench(CPU, 0, Event(), cores)
    assert many.multiply(speed) == one.multiply(speed)
    assert many.fill(memory) == one.fill(memory)
    assert (many.pages == one.pages).all()


SMALL = replace(RULES, speed_s=0.001, machine_memory_share=0.00002)
SENT = Instant(10**15)


def answered(took_us: int, *, relinked: bool = False, late: int = 0) -> Conclusion:
    """The conclusion about an honest machine of two cores that took so long to multiply."""
    asked, draw = plan(machine(2), SMALL), bytes(32)
    task, bench = asked.tasks[0], Bench(CPU, 0, Event(), 2)
    roots = {ChallengePart.SPEED: bench.multiply(task.speed), ChallengePart.MEMORY: bench.fill(task.memory)}
    drawn = device_draw(task, draw)
    opened = [(ChallengePart.SPEED, place, bench.shown_row(task.speed, place)) for place in drawn.rows]
    opened += [(ChallengePart.MEMORY, place, bench.shown_page(task.memory, place)) for place in drawn.pages]
    commitments = [
        ChallengeAnswer("", 0, AnswerStep.COMMITMENT, part, shown=as_text(root)) for part, root in roots.items()
    ]
    openings = [ChallengeAnswer("", 0, AnswerStep.OPENING, *place, as_text(content)) for *place, content in opened]
    answers = [(answer, Instant(SENT + took_us)) for answer in (*commitments, *openings)]
    evidence = ChallengeEvidence(ChallengeState.OPENED, asked, draw, SENT, late, False, answers, relinked)
    return conclude(evidence, SMALL, NvlinkSettings(), bytes(range(256)) * 8)


def test_a_slow_machine_passes_with_the_cores_that_it_showed() -> None:
    quick, slow = answered(500), answered(10 * SECOND)
    assert quick.machine
    assert slow.machine
    assert (quick.state, quick.machine.measured_cores, quick.reduced) == (ChallengeState.PASSED, 2, ())
    assert (slow.state, slow.machine.measured_cores, slow.findings) == (ChallengeState.PASSED, 1, ())
    assert [one.refusal for one in slow.reduced] == [ChallengeRefusal.CORES_NOT_SHOWN]
    assert slow.machine.measured_mib == 16_384


def test_a_machine_whose_link_was_lost_is_asked_again_and_never_fails_for_its_cores() -> None:
    states = [answered(10 * SECOND, relinked=True, late=late).state for late in range(LATE_MAX)]
    assert states == [ChallengeState.EXPIRED] * (LATE_MAX - 1) + [ChallengeState.PASSED]


DEFAULTS = SellerDefaults(1_000_000, 300, POOL, 0, 0)


def sold(claim: Machine, cores: int | None, memory_mib: int | None) -> Seller:
    node = Node(
        UUID(int=1), UUID(int=2), "node", False, NodeLife.ACTIVE, "tidemill/0.1",
        {"cores": claim.cores, "memory_mib": claim.memory_mib, "disk_mib": 10**6}, cores, memory_mib,
        None, {}, 0, None, 0, NOW, None, None, NOW, NOW, None,
    )  # fmt: skip
    device = KnownDevice(
        node.id, 0, "cpu", "A CPU", "cpu-0", None, 16_384, "", None, None, None, None, 2_048, 10**11, None, NOW
    )
    found = seller_of(node, [device], SOUND, DEFAULTS, NOW)
    assert found
    return found


@pytest.mark.parametrize(
    ("claimed", "measured", "counted"),
    [
        ((256, 4 * TIB_MIB), (2, 16_384), (2, 16_384)),
        ((2, 8_192), (8, 16_384), (2, 8_192)),
        ((8, 16_384), (8, 16_384), (8, 16_384)),
        ((8, 16_384), (None, None), (0, 0)),
    ],
)
def test_room_speed_and_price_are_those_of_what_was_claimed_and_measured(
    claimed: tuple[int, int], measured: tuple[int | None, int | None], counted: tuple[int, int]
) -> None:
    found = sold(machine(*claimed), *measured)
    cores, memory_mib = counted
    assert (found.size.cores, found.size.memory_mib) == counted
    assert (found.candidate.cpu_milli, found.candidate.memory_mib) == (cores * 1_000, memory_mib)
    assert found.candidate.core_price_uc == DEFAULTS.hourly_uc / max(1, cores)
    assert found.core_ops_per_s == 1e11 / max(1, cores)
