"""The hardware challenge: an honest device passes, and each way of cheating that we could think of fails."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from time import perf_counter
from uuid import UUID

import numpy as np
import pytest

from tidemill.agent.machine.bench import Bench
from tidemill.core.bounded_json import Malformed
from tidemill.core.clock import SECOND
from tidemill.core.merkle import MerkleTree, drawn_places, is_leaf_of, leaf_hash
from tidemill.core.nodes.challenge.figures import ChallengeRefusal, DeviceCheck, figures, nvlink_ppm, unsupported_claims
from tidemill.core.nodes.challenge.judgement import is_memory_shown, is_speed_shown
from tidemill.core.nodes.challenge.memory import ancestors, hardened, pages_of
from tidemill.core.nodes.challenge.messages import (
    BODY_MAX_BYTES,
    HOST,
    PAGES_DRAWN,
    AnswerStep,
    ChallengeAnswer,
    ChallengePart,
    DeviceDraw,
    DeviceOpenings,
    DevicePair,
    DeviceTask,
    LinkRate,
    answer_bytes,
    answer_of,
    as_text,
    instruction_bytes,
    instruction_of,
    page_opening_bytes,
    row_opening_bytes,
)
from tidemill.core.nodes.challenge.multiplication import left_rows, right_matrix, right_times, row_digests
from tidemill.core.nodes.challenge.sizes import (
    ChallengedDevice,
    ChallengedMachine,
    ChallengePlan,
    ask_instruction,
    device_draw,
    draw_instruction,
    plan_challenge,
)
from tidemill.core.nodes.challenge.states import STATES, ChallengeHappening, ChallengeState, after
from tidemill.core.nodes.challenge.tasks import SIDE_MAX, MemoryTask, SpeedTask
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, DeviceLink, LinkKind, Machine
from tidemill.core.settings.sections.challenge import ChallengeSettings
from tidemill.core.settings.sections.money import NvlinkSettings
from tidemill.core.trust.proofs.freivalds import product, residues

TASK = DeviceTask(0, SpeedTask(seed=5, side=256, products=4), MemoryTask(seed=6, steps=64, width=32, rounds=2))
CPU = Device(0, DeviceKind.CPU, "A CPU", "cpu-0", 16_000, "none")
GPU = Device(0, DeviceKind.NVIDIA, "NVIDIA GeForce RTX 3090", "GPU-1", 24_576, "550")
CHALLENGE = UUID(int=77)
SETTINGS = ChallengeSettings()
CLAIM = ChallengedMachine(HOST, 8, 64_000)


def bench(task: DeviceTask = TASK) -> Bench:
    made = Bench(CPU, 0, Event())
    made.multiply(task.speed)
    made.fill(task.memory)
    return made


def shown(made: Bench, draw: DeviceDraw, task: DeviceTask = TASK) -> DeviceOpenings:
    return DeviceOpenings(
        made.trees[ChallengePart.SPEED].root,
        made.trees[ChallengePart.MEMORY].root,
        {place: made.shown_page(task.memory, place) for place in draw.pages},
        {place: made.shown_row(task.speed, place) for place in draw.rows},
    )


def random_for(task: DeviceTask = TASK) -> bytes:
    return secrets.token_bytes(8 * task.speed.side)


@pytest.fixture(scope="module")
def honest() -> Bench:
    return bench()


@pytest.fixture
def draw() -> DeviceDraw:
    return device_draw(TASK, secrets.token_bytes(32))


def test_an_honest_device_passes(honest: Bench, draw: DeviceDraw) -> None:
    said = shown(honest, draw)
    assert is_memory_shown(TASK, draw, said)
    assert is_speed_shown(TASK, draw, said, random_for())


def test_hardening_needs_every_round() -> None:
    words = np.arange(5, dtype=np.uint64)
    some = hardened(words.copy(), 3, np)
    assert np.array_equal(hardened(hardened(words.copy(), 1, np), 2, np), some)
    assert int(hardened(np.array([1], dtype=np.uint64), 1, np)[0]) == 0xBF58476D1CE4E5B9 ^ (0xBF58476D1CE4E5B9 >> 31)


def test_pages_of_the_first_step_are_checked_against_the_seed(honest: Bench) -> None:
    first = DeviceDraw(0, (0, 31, 32), ())
    assert is_memory_shown(TASK, first, shown(honest, first))
    other = replace(TASK, memory=replace(TASK.memory, seed=7))
    assert not is_memory_shown(other, first, shown(honest, first))


@pytest.mark.parametrize("field", ["seed", "rounds"])
def test_the_memory_of_another_task_does_not_hold(honest: Bench, draw: DeviceDraw, field: str) -> None:
    """An answer of another node, or of an earlier challenge: every one has a seed of its own."""
    memory = replace(TASK.memory, **{field: getattr(TASK.memory, field) + 1})
    later = DeviceDraw(0, tuple(place for place in draw.pages if place >= 32), ())
    other = bench(replace(TASK, memory=memory))
    assert not is_memory_shown(TASK, later, shown(other, later, replace(TASK, memory=memory)))


def test_the_product_of_another_task_does_not_hold(honest: Bench, draw: DeviceDraw) -> None:
    task = replace(TASK, speed=replace(TASK.speed, seed=6))
    assert not is_speed_shown(task, draw, shown(honest, draw), random_for())


def test_a_page_or_a_row_that_was_not_opened_fails(honest: Bench, draw: DeviceDraw) -> None:
    said = shown(honest, draw)
    fewer_pages = {place: said.pages[place] for place in draw.pages[1:]}
    fewer_rows = {place: said.rows[place] for place in draw.rows[1:]}
    assert not is_memory_shown(TASK, draw, replace(said, pages=fewer_pages))
    assert not is_speed_shown(TASK, draw, replace(said, rows=fewer_rows), random_for())


def test_every_changed_bit_of_an_opening_is_noticed(honest: Bench) -> None:
    one = DeviceDraw(0, (700,), (300,))
    said = shown(honest, one)
    for at in range(0, len(said.pages[700]), 97):
        assert not is_memory_shown(TASK, one, replace(said, pages={700: flipped(said.pages[700], at)})), at
    for at in range(0, len(said.rows[300]), 97):
        assert not is_speed_shown(TASK, one, replace(said, rows={300: flipped(said.rows[300], at)}), random_for()), at


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def test_a_commitment_that_was_changed_after_the_draw_fails(honest: Bench, draw: DeviceDraw) -> None:
    """Honest openings against a root that was said before anything was computed."""
    said = shown(honest, draw)
    assert not is_memory_shown(TASK, draw, replace(said, memory_root=bytes(32)))
    assert not is_speed_shown(TASK, draw, replace(said, speed_root=bytes(32)), random_for())


def test_openings_of_other_places_than_the_drawn_ones_fail(honest: Bench, draw: DeviceDraw) -> None:
    said = shown(honest, draw)
    turned = dict(zip(said.pages, [*list(said.pages.values())[1:], next(iter(said.pages.values()))], strict=True))
    assert not is_memory_shown(TASK, draw, replace(said, pages=turned))


def test_memory_filled_with_anything_else_fails(draw: DeviceDraw) -> None:
    cheat = bench()
    cheat.pages = np.random.default_rng(1).integers(0, 2**63, cheat.pages.shape).astype(np.uint64)
    cheat.trees[ChallengePart.MEMORY] = tree_of(cheat)
    assert not is_memory_shown(TASK, draw, shown(cheat, draw))


def tree_of(made: Bench) -> MerkleTree:
    return MerkleTree(leaf_hash(page.tobytes()) for page in made.pages)


def test_a_tenth_of_wrong_pages_is_found_nine_times_in_ten() -> None:
    cheat = bench()
    wrong = np.random.default_rng(2).permutation(TASK.memory.pages)[: TASK.memory.pages // 10]
    cheat.pages[wrong] ^= np.uint64(1)
    cheat.trees[ChallengePart.MEMORY] = tree_of(cheat)
    draws = [device_draw(TASK, bytes([number])) for number in range(60)]
    found = sum(not is_memory_shown(TASK, one, shown(cheat, one)) for one in draws)
    assert found >= 54


class Forgetful:
    """A cheat that keeps some of the pages, makes the others again when they are needed, and counts what that costs."""

    def __init__(self, honest: Bench, kept: Callable[[int], bool], patience: int) -> None:
        self.pages, self.kept, self.patience = honest.pages, kept, patience
        self.made = 0

    def page(self, place: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
        if self.kept(place) or place < TASK.memory.width:
            return self.pages[place]  # type: ignore[no-any-return]
        self.made += 1
        if self.made > self.patience:
            raise TimeoutError
        above = self.page(place - TASK.memory.width)
        made = np.stack([self.page(parent) for parent in ancestors(TASK.memory, place, above)[1:]])[None]
        return pages_of(TASK.memory, [place], above[None], made)[0]  # type: ignore[no-any-return]

    def cost(self, places: tuple[int, ...]) -> int | None:
        """How many pages it makes to show these; None if that is more than the whole memory has."""
        self.made = 0
        try:
            for place in places:
                above = self.page(place - TASK.memory.width)
                for other in (place, *ancestors(TASK.memory, place, above)):
                    self.page(other)
        except TimeoutError:
            return None
        return self.made


def test_half_of_the_memory_takes_longer_than_filling_all_of_it(honest: Bench) -> None:
    """The time to open is shorter than the time to fill; so whoever needs more pages than there are is too late."""
    drawn = tuple(place for place in device_draw(TASK, b"half").pages if place >= 1024)
    for keeps in (lambda place: place % 2 == 0, lambda place: place // 32 % 2 == 0, lambda place: place < 1024):
        assert Forgetful(honest, keeps, TASK.memory.pages).cost(drawn) is None


def test_a_few_pages_left_out_by_chance_cost_little_and_a_quarter_costs_too_much(honest: Bench) -> None:
    """The honest limit of what is shown: a few pages that were thrown away are made again in no time."""
    drawn = tuple(place for place in device_draw(TASK, b"few").pages if place >= 1024)
    cheap = Forgetful(honest, lambda place: place * 2654435761 % 2**32 > 2**32 // 50, TASK.memory.pages).cost(drawn)
    assert cheap is not None
    assert cheap < TASK.memory.pages // 10
    dear = Forgetful(honest, lambda place: place * 2654435761 % 2**32 > 2**32 // 4, TASK.memory.pages).cost(drawn)
    assert dear is None


def test_a_cheat_that_plans_what_to_leave_out_still_needs_more_than_half(honest: Bench) -> None:
    """It leaves out every page that it could make again, for one opening, in a share of the time that filling takes."""
    task = TASK.memory
    affordable = task.pages // PAGES_DRAWN
    costs = np.zeros(task.pages)
    left_out = task.width
    for place in range(task.width, task.pages):
        cost = 1 + costs[ancestors(task, place, honest.pages[place - task.width])].sum()
        if cost <= affordable:
            costs[place] = cost
            left_out += 1
    assert 0.2 < left_out / task.pages < 0.4, "the memory that is not shown, as docs/adr/0018 says"


def test_the_cheap_way_to_a_vector_shows_no_rows(honest: Bench) -> None:
    """A·(B·r) is C·r without C. It says nothing about a row's digest, which had to be committed to before r."""
    vector = residues(random_for())
    left = left_rows(TASK.speed, 0, 0, TASK.speed.side, np)
    rows = (left @ right_matrix(TASK.speed, np)).astype(np.int64)
    assert np.array_equal(product(left, right_times(TASK.speed, vector)), product(rows, vector))
    cheat = bench()
    cheat.digests = secrets.token_bytes(len(cheat.digests))
    leaves = [cheat.digests[at : at + 512] for at in range(0, len(cheat.digests), 512)]
    cheat.trees[ChallengePart.SPEED] = MerkleTree(map(leaf_hash, leaves))
    draw = device_draw(TASK, secrets.token_bytes(32))
    assert not is_speed_shown(TASK, draw, shown(cheat, draw), random_for())


def test_a_faster_way_that_is_wrong_is_found() -> None:
    """A product with fewer columns of A, or in half precision: digests fit what was computed, the rows are wrong."""
    right = right_matrix(TASK.speed, np)
    for number in range(TASK.speed.products):
        left = left_rows(TASK.speed, number, 0, 256, np)
        left[:, -1] = 0
        wrong = (left @ right).astype(np.int32)
        cheat = bench()
        place = number * 256 + 9
        digests = np.frombuffer(cheat.digests, dtype="<u8").copy()
        digests[number * 256 : (number + 1) * 256] = row_digests(wrong, np)
        cheat.digests = digests.tobytes()
        leaves = [cheat.digests[at : at + 512] for at in range(0, len(cheat.digests), 512)]
        cheat.trees[ChallengePart.SPEED] = MerkleTree(map(leaf_hash, leaves))
        row = wrong[9].tobytes() + cheat.shown_row(TASK.speed, place)[1024:]
        one = DeviceDraw(0, (), (place,))
        said = DeviceOpenings(cheat.trees[ChallengePart.SPEED].root, b"", {}, {place: row})
        assert not is_speed_shown(TASK, one, said, random_for())


def test_rows_are_exact_at_the_largest_size() -> None:
    """The largest sum that can be, and a real row, against whole numbers."""
    assert 64 * SIDE_MAX < 2**24
    task = SpeedTask(seed=3, side=1024, products=1)
    left, right = left_rows(task, 0, 0, 4, np), right_matrix(task, np)
    assert np.array_equal((left @ right).astype(np.int64), left.astype(np.int64) @ right.astype(np.int64))
    assert (left.min(), left.max()) == (-8, 7)


def test_the_left_matrices_have_nothing_in_common() -> None:
    task = SpeedTask(seed=3, side=256, products=3)
    made = [left_rows(task, number, 0, 256, np) for number in (0, 1, 2)] + [right_matrix(task, np)]
    for one in made:
        assert sum(np.array_equal(one, other) for other in made) == 1
        assert abs(one.mean() + 0.5) < 0.1
        assert np.linalg.matrix_rank(one) == 256
    assert np.array_equal(left_rows(task, 1, 100, 3, np), made[1][100:103])


def test_a_leaf_is_shown_only_at_its_place_and_by_a_path_of_the_right_length() -> None:
    leaves = [bytes([number]) for number in range(13)]
    tree = MerkleTree(map(leaf_hash, leaves))
    for place, leaf in enumerate(leaves):
        assert is_leaf_of(tree.root, 13, place, leaf, tree.path(place))
        assert not is_leaf_of(tree.root, 13, (place + 1) % 13, leaf, tree.path(place))
        assert not is_leaf_of(tree.root, 13, place, b"x", tree.path(place))
        assert not is_leaf_of(tree.root, 13, place, leaf, tree.path(place)[:-32])
        assert not is_leaf_of(tree.root, 13, place + 16, leaf, tree.path(place))
    inner = leaf_hash(leaves[0]) + leaf_hash(leaves[1])
    assert not is_leaf_of(tree.root, 7, 0, inner, tree.path(0)[32:])


def test_drawn_places_are_different_and_follow_from_the_draw() -> None:
    places = drawn_places(b"draw", "pages of 0", 2048, 24)
    assert len(set(places)) == 24
    assert all(0 <= place < 2048 for place in places)
    assert places == drawn_places(b"draw", "pages of 0", 2048, 24)
    assert places != drawn_places(b"draw", "pages of 1", 2048, 24)
    assert drawn_places(b"draw", "rows", 3, 24) == [0, 1, 2]


def machine(*devices: Device, links: tuple[DeviceLink, ...] = ()) -> Machine:
    return Machine("Linux", "6", "x86_64", "A CPU", 8, 64_000, 10**6, devices, links)


def test_a_gpu_is_asked_for_nearly_all() -> None:
    wanted = plan_challenge(machine(GPU), {}, b"seed", SETTINGS)
    task = wanted.devices[0].task
    assert 20_000 < task.memory.rounds < 60_000
    assert task.memory.mib == pytest.approx(24_576 * 0.8, rel=0.01)
    assert task.speed.operations / wanted.devices[0].catalogue_ops_per_s == pytest.approx(1.5, rel=0.1)


def test_a_failing_device_is_asked_for_nothing_and_every_seed_is_another() -> None:
    wanted = plan_challenge(
        machine(GPU, replace(GPU, index=1, failing="lost"), replace(GPU, index=2)), {}, b"seed", SETTINGS
    )
    assert list(wanted.tasks) == [0, 2, HOST]
    seeds = {seed for task in wanted.tasks.values() for seed in (task.speed.seed, task.memory.seed)}
    assert len(seeds) == 6
    assert not plan_challenge(machine(replace(GPU, failing="lost")), {}, b"seed", SETTINGS).devices
    assert seeds.isdisjoint(
        task.speed.seed for task in plan_challenge(machine(GPU), {}, b"other", SETTINGS).tasks.values()
    )


def test_an_order_for_the_largest_machine_fits_and_is_read_back() -> None:
    devices = [replace(GPU, index=index, uuid=f"GPU-{index}") for index in range(64)]
    links = tuple(DeviceLink(0, index, LinkKind.NVLINK, 4) for index in range(1, 64))
    wanted = plan_challenge(machine(*devices, links=links), {}, b"seed", SETTINGS)
    for order in (ask_instruction(CHALLENGE, wanted, 600), draw_instruction(CHALLENGE, wanted, b"draw", 600)):
        assert instruction_of(instruction_bytes(order)) == order


def test_the_largest_openings_fit_into_a_report() -> None:
    memory, speed = MemoryTask(0, 2**16, 2**16, 1), SpeedTask(0, SIDE_MAX, 1_000_000)
    for size in (page_opening_bytes(memory, memory.pages - 1), row_opening_bytes(speed)):
        answer = ChallengeAnswer(
            CHALLENGE.hex, HOST, AnswerStep.OPENING, ChallengePart.MEMORY, 2**48, as_text(bytes(size))
        )
        body = answer_bytes(answer)
        assert len(body) <= BODY_MAX_BYTES
        assert answer_of(body) == answer


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{}", b"null", b"\xff", b"[" * 50_000, b'{"challenge":1,"device":0,"step":"opening"}',
        b'{"challenge":"%s","device":65,"step":"opening"}' % (b"a" * 32),
        b'{"challenge":"%s","device":0,"step":"anything"}' % (b"a" * 32),
        b'{"challenge":"%s","device":0,"step":"opening","place":-1}' % (b"a" * 32),
        b'{"challenge":"%s","device":0,"step":"opening","place":1e9}' % (b"a" * 32),
        b'{"challenge":"%s","device":0,"step":"opening","shown":"%s"}' % (b"a" * 32, b"A" * 46_001),
        b'{"challenge":"%s","device":0,"step":"cannot","words":"%s"}' % (b"a" * 32, b"\\u0007"),
        b'{"challenge":"%s"}' % (b"a" * 70_000),
    ],
)  # fmt: skip
def test_a_malformed_answer_is_read_as_one(body: bytes) -> None:
    assert isinstance(answer_of(body), Malformed)


def test_an_answer_fits_only_what_was_asked_and_drawn(draw: DeviceDraw) -> None:
    root = as_text(bytes(32))
    commitment = ChallengeAnswer(CHALLENGE.hex, 0, AnswerStep.COMMITMENT, ChallengePart.MEMORY, shown=root)
    assert commitment.fits(TASK, None)
    assert not replace(commitment, shown=as_text(bytes(31))).fits(TASK, None)
    assert not replace(commitment, shown="not base64!").fits(TASK, None)
    assert not replace(commitment, place=1).fits(TASK, None)
    place = max(draw.pages)
    content = as_text(bytes(page_opening_bytes(TASK.memory, place)))
    opening = ChallengeAnswer(CHALLENGE.hex, 0, AnswerStep.OPENING, ChallengePart.MEMORY, place, content)
    assert opening.fits(TASK, draw)
    assert not opening.fits(TASK, None)
    assert not replace(opening, part=ChallengePart.SPEED).fits(TASK, draw)
    undrawn = next(other for other in range(2048) if other not in draw.pages)
    assert not replace(opening, place=undrawn).fits(TASK, draw)
    assert replace(opening, challenge="z" * 32).challenge_id is None


def test_words_that_cannot_be_shown_are_shortened() -> None:
    body = answer_bytes(ChallengeAnswer(CHALLENGE.hex, 0, AnswerStep.CANNOT, words="out\nof\x00memory" + "x" * 1000))
    read = answer_of(body)
    assert isinstance(read, ChallengeAnswer)
    assert read.words.startswith("outofmemoryx")


def asked_gpu(**changes: int) -> ChallengedDevice:
    device = plan_challenge(machine(GPU), {}, b"seed", SETTINGS).devices[0]
    return replace(device, **changes)


def judged(device: ChallengedDevice, held: DeviceCheck) -> tuple[int, list[ChallengeRefusal], str]:
    of_devices = figures(ChallengePlan((device,), CLAIM), {0: held}, (), NvlinkSettings())
    found = unsupported_claims(of_devices, {0: held}, SETTINGS)
    return of_devices[0].measured_ops_per_s, [one.refusal for one in found], " ".join(one.sentence for one in found)


def seconds_for(device: ChallengedDevice, speed: float) -> int:
    return int(device.task.speed.operations / speed * SECOND)


def test_a_card_as_fast_as_it_claims_passes_and_counts_no_more_than_the_catalogue() -> None:
    device = asked_gpu()
    assert judged(device, DeviceCheck(True, True, seconds_for(device, 20e12)))[:2] == (
        pytest.approx(20e12, rel=1e-3),
        [],
    )
    assert judged(device, DeviceCheck(True, True, seconds_for(device, 500e12)))[0] == device.catalogue_ops_per_s
    assert judged(device, DeviceCheck(True, True, 0))[0] == device.catalogue_ops_per_s


def test_a_slow_card_is_refused_with_its_figures() -> None:
    device = asked_gpu()
    _, refusals, sentence = judged(device, DeviceCheck(True, True, seconds_for(device, 3e12)))
    assert refusals == [ChallengeRefusal.SPEED_BELOW_CATALOGUE]
    assert "3,000.0 billion" in sentence
    assert "20%" in sentence


def test_one_card_shown_as_eight_is_too_slow() -> None:
    """All of an owner's devices work at once, so a card that does the work of eight has an eighth of its speed."""
    device = asked_gpu()
    eighth = DeviceCheck(True, True, seconds_for(device, 0.9 * device.catalogue_ops_per_s / 8))
    assert judged(device, eighth)[1] == [ChallengeRefusal.SPEED_BELOW_CATALOGUE]


def test_a_device_much_slower_than_before_is_refused() -> None:
    device = asked_gpu(catalogue_ops_per_s=0, earlier_ops_per_s=10**12)
    assert judged(device, DeviceCheck(True, True, seconds_for(device, 0.2e12)))[1] == [
        ChallengeRefusal.SPEED_BELOW_EARLIER
    ]
    assert judged(device, DeviceCheck(True, True, seconds_for(device, 0.3e12)))[1] == []


def test_what_did_not_hold_is_said_and_counts_nothing() -> None:
    device = asked_gpu()
    speed, refusals, sentence = judged(device, DeviceCheck(False, False, 1))
    assert speed == 0
    assert refusals == [ChallengeRefusal.MEMORY_NOT_SHOWN, ChallengeRefusal.PRODUCT_WRONG]
    assert "24,576 MiB" in sentence


@pytest.mark.parametrize(
    ("mb_per_s", "ppm"),
    [
        (None, 1_000_000),
        (0, 1_000_000),
        (3_000, 1_000_000),
        (28_000, 1_350_000),
        (56_000, 1_500_000),
        (10**7, 1_500_000),
    ],
)
def test_links_are_worth_what_they_carry(mb_per_s: int | None, ppm: int) -> None:
    devices = (asked_gpu(nvlink_gb_per_s=112), asked_gpu(nvlink_gb_per_s=112))
    rates = [] if mb_per_s is None else [LinkRate(0, 1, mb_per_s)]
    assert nvlink_ppm(ChallengePlan(devices, CLAIM, (DevicePair(0, 1),)), devices[0], rates, NvlinkSettings()) == ppm
    assert nvlink_ppm(ChallengePlan(devices, CLAIM), devices[0], rates, NvlinkSettings()) == 1_000_000, (
        "nobody claimed that link"
    )


def test_what_is_over_stays_over_and_every_state_is_reached() -> None:
    over = {ChallengeState.PASSED, ChallengeState.FAILED, ChallengeState.EXPIRED, ChallengeState.CANNOT}
    assert not [pair for pair in STATES if pair[0] in over]
    assert set(STATES.values()) | {ChallengeState.ASKED} == set(ChallengeState)
    assert after(ChallengeState.ASKED, ChallengeHappening.OPENED_ALL) is None
    assert after(ChallengeState.PASSED, ChallengeHappening.DISPROVED) is None


def test_a_measured_speed_is_that_of_the_machine() -> None:
    """Within a factor of three: this machine is shared, and so is the time of its cores."""
    task = SpeedTask(seed=1, side=1024, products=12)
    left, right = left_rows(task, 0, 0, 1024, np), right_matrix(task, np)
    began = perf_counter()
    for _ in range(task.products):
        left @ right
    plain_s = perf_counter() - began
    began = perf_counter()
    Bench(CPU, 0, Event()).multiply(task)
    assert perf_counter() - began < 3 * plain_s + 0.5
