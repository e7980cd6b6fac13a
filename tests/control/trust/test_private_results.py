"""Private results on a real server: sealed on the way and at rest, opened to be checked, and paid only if they open."""

import base64
import hashlib
import io
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from uuid import UUID

import pytest

from tests.store.artefacts.test_artefacts import delete, made
from tests.worlds.databases.dispatch_world import VERIFICATION, Node, World, body_of, make_world, result_of, signed_by
from tests.worlds.databases.verifying import verifying
from tests.worlds.sealed_results import opened_whole
from tidemill.artefacts.store import ArtefactStore
from tidemill.artefacts.store_choice import open_store
from tidemill.control.jobs.job_views import ResultView, job_view, result_views
from tidemill.control.trust.stored_results import StoredResults
from tidemill.control.trust.verifying_loop import VerifyingLoop
from tidemill.core.artefacts.artefact import Artefact, Digest, Purpose
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.clock import SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs import result_archives
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task, read_task, task_bytes
from tidemill.core.jobs.private_results import NOTHING, binding_of
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.results import PIECE_BYTES, ReaderKey, ResultBinding, envelope, opened_envelope, seal
from tidemill.core.jobs.sandboxes import RunLimits
from tidemill.core.settings.sections.artefacts import ArtefactsSettings
from tidemill.store.database import Database
from tidemill.store.jobs import job_views
from tidemill.store.jobs.leases import AttemptAssignment

CUSTOMER, STRANGER = ReaderKey(b"c" * 32), ReaderKey(b"s" * 32)
READERS = (VERIFICATION.public, CUSTOMER.public)
ASKED: dict[str, object] = {"result_key": base64.urlsafe_b64encode(CUSTOMER.public).decode().rstrip("=")}
KEY = b"k" * 32
HERE = "device; this processor"


def private(body: bytes) -> bytes:
    task = read_task(body)
    assert not isinstance(task, TaskObjection)
    return task_bytes(replace(task, seal_to=READERS))


PRODUCT = private(body_of(0))
SCRIPT = private(task_bytes(Task("script", {"program": "print(1)", "seconds": 5}, RunLimits(seconds=10))))
RIGHT = result_archives.archive({PurePosixPath("answer.txt"): b"the right answer"})
WRONG = result_archives.archive({PurePosixPath("answer.txt"): b"a wrong answer"})


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


@pytest.fixture
async def artefacts(tmp_path: Path) -> AsyncIterator[ArtefactStore]:
    opened = open_store(ArtefactsSettings(), tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def loop(world: World, artefacts: ArtefactStore) -> AsyncIterator[VerifyingLoop]:
    async with verifying(world.parts, artefacts) as made:
        yield made


def receipt(at: Instant, offer: AttemptAssignment, plain: bytes, readers: Sequence[bytes] = READERS) -> Receipt:
    """What an honest node signs, unless it is told to seal to others."""
    open_one = Receipt(
        *(offer.task_id, offer.attempt_id, offer.node_id, offer.lease, hashlib.sha256(plain).digest(), None, b"", ()),
        *(Instant(at - SECOND // 10), at, 100, HERE, b"", AttemptOutcome.DONE, 0, ""),
    )
    bound = binding_of(open_one)
    sealed = b"".join(seal([plain], KEY, bound))
    return open_one._replace(inline=sealed, envelopes=tuple(envelope(KEY, one, bound) for one in readers))


async def offered(
    world: World, body: bytes = PRODUCT, *, expected: bool = False
) -> tuple[UUID, Node, AttemptAssignment]:
    """A private job of one task, and who is asked to carry it out: anybody."""
    node = await world.node()
    job_id = await world.job(1, expected=expected, body=body, asked=ASKED)
    [offer] = await world.place()
    return job_id, node, offer


async def verdict(world: World) -> tuple[object, object]:
    return (
        await world.value("SELECT verdict FROM attempt ORDER BY id LIMIT 1"),
        await world.value("SELECT reason FROM attempt ORDER BY id LIMIT 1"),
    )


async def fetched(world: World, job_id: UUID) -> ResultView:
    async with world.parts.loop_database.connection() as connection:
        job = await job_views.get(connection, job_id, None)
        found = await job_views.results(connection, job_id, -1, 10)
    assert job
    [view] = result_views(job, found, VERIFICATION)
    return view


def opened_by(key: ReaderKey, view: ResultView) -> list[object]:
    """What each envelope and the result behind it hold for somebody."""
    assert view.attempt_id
    assert view.lease
    assert view.inline
    bound = ResultBinding(view.task_id, view.attempt_id, view.lease)
    keys = [opened_envelope(base64.b64decode(one), key.private, bound) for one in view.envelopes]
    return [opened_whole(base64.b64decode(view.inline), one, bound) if isinstance(one, bytes) else None for one in keys]


async def test_a_private_product_is_sealed_at_rest_proved_paid_and_opens_for_its_customer_alone(
    world: World, loop: VerifyingLoop
) -> None:
    job_id, node, offer = await offered(world)
    await world.say(node, signed_by(node, receipt(world.now, offer, result_of(0))))
    assert await world.earned(node) == 0, "nothing that is sealed passes before it was opened"
    await loop.tick(world.now)
    assert (await verdict(world))[0] == "pass"
    assert await world.earned(node) > 0
    kept = await world.value("SELECT body FROM receipt_batch")
    assert isinstance(kept, bytes)
    assert result_of(0)[:100] not in kept
    view = await fetched(world, job_id)
    assert opened_by(CUSTOMER, view) == [None, result_of(0), result_of(0)]
    assert opened_by(STRANGER, view) == [None] * 3


async def test_who_can_see_a_job_is_told(world: World) -> None:
    secret, _, _ = await offered(world)
    plain = await world.job(1)
    async with world.parts.loop_database.connection() as connection:
        views = [await job_views.get(connection, one, None) for one in (secret, plain)]
    told = [job_view(replace(one, quote=None), world.parts.settings.money, world.now) for one in views if one]
    assert [one.private for one in told] == [True, False]
    assert "Only you and the pool's verification" in told[0].seen_by
    assert "The pool and the nodes" in told[1].seen_by


async def test_a_node_that_does_not_seal_is_not_paid_though_its_result_is_right(
    world: World, loop: VerifyingLoop
) -> None:
    _, node, offer = await offered(world, expected=True)
    bare = receipt(world.now, offer, result_of(0))._replace(inline=result_of(0), envelopes=())
    await world.say(node, signed_by(node, bare))
    await loop.tick(world.now)
    assert (await verdict(world))[0] == "fail"
    assert await world.earned(node) == 0


async def test_a_house_node_that_does_not_seal_is_not_believed_either(world: World, loop: VerifyingLoop) -> None:
    house = await world.node(house=True)
    await world.job(1, expected=False, body=PRODUCT, asked=ASKED)
    [offer] = await world.place()
    bare = receipt(world.now, offer, result_of(0))._replace(inline=result_of(0), envelopes=())
    await world.say(house, signed_by(house, bare))
    await loop.tick(world.now)
    assert (await verdict(world))[0] == "fail"


async def test_an_expected_private_result_passes_once_it_was_opened(world: World, loop: VerifyingLoop) -> None:
    job_id, node, offer = await offered(world, expected=True)
    await world.say(node, signed_by(node, receipt(world.now, offer, result_of(0))))
    assert await world.earned(node) == 0
    await loop.tick(world.now)
    assert await world.earned(node) > 0
    assert opened_by(CUSTOMER, await fetched(world, job_id))[-1] == result_of(0)


@pytest.mark.parametrize("expected", [True, False])
async def test_what_does_not_open_for_the_pool_is_a_failed_result(
    world: World, loop: VerifyingLoop, expected: bool
) -> None:
    _, node, offer = await offered(world, expected=expected)
    sent = receipt(world.now, offer, result_of(0), (STRANGER.public, CUSTOMER.public))
    await world.say(node, signed_by(node, sent))
    await loop.tick(world.now)
    found, reason = await verdict(world)
    assert (found, "signed" in str(reason)) == ("fail", True)
    assert await world.earned(node) == 0


async def test_a_wrong_private_product_is_opened_and_found_wrong(world: World, loop: VerifyingLoop) -> None:
    _, node, offer = await offered(world)
    await world.say(node, signed_by(node, receipt(world.now, offer, result_of(1))))
    await loop.tick(world.now)
    assert (await verdict(world))[0] == "fail"


async def test_whatever_a_node_puts_into_the_customers_envelope_the_customer_can_open_the_result(
    world: World, loop: VerifyingLoop
) -> None:
    job_id, node, offer = await offered(world)
    honest = receipt(world.now, offer, result_of(0))
    other_key = envelope(bytes(32), CUSTOMER.public, binding_of(honest))
    await world.say(node, signed_by(node, honest._replace(envelopes=(honest.envelopes[0], other_key))))
    await loop.tick(world.now)
    assert await world.earned(node) > 0, "the pool cannot look into it, and the customer loses nothing by it"
    assert opened_by(CUSTOMER, await fetched(world, job_id))[-1] == result_of(0)


@pytest.mark.parametrize(("answer", "found"), [(RIGHT, "pass"), (WRONG, "fail")])
async def test_a_private_program_is_executed_again_and_both_results_are_opened_to_be_compared(
    world: World, loop: VerifyingLoop, answer: bytes, found: str
) -> None:
    _, node, offer = await offered(world, SCRIPT)
    await world.say(node, signed_by(node, receipt(world.now, offer, answer)))
    house = await world.node(house=True)
    await loop.tick(world.now)
    [again] = await world.place()
    assert again.body == offer.body, "nothing in an offer tells an audit from a task"
    await world.say(house, signed_by(house, receipt(world.now, again, RIGHT)))
    for _ in range(2):  # the house's own is opened first
        await loop.tick(world.now)
    for once_more in await world.place():  # if the results differ, the house sees whether its own repeats
        await world.say(house, signed_by(house, receipt(world.now, once_more, RIGHT)))
    for _ in range(2):
        await loop.tick(world.now)
    decided, reason = await verdict(world)
    assert (decided, "answer.txt" in str(reason)) == (found, found == "fail")


async def test_an_open_result_with_an_envelope_is_none(world: World, loop: VerifyingLoop) -> None:
    """Who fetches it would take it for sealed, and could not open it."""
    node = await world.node()
    await world.job(1)
    [offer] = await world.place()
    right = world.receipt(offer)
    await world.say(node, signed_by(node, right._replace(envelopes=(b"anything",))))
    await loop.tick(world.now)
    assert (await verdict(world))[0] == "fail"


@pytest.mark.parametrize("house", [True, False])
async def test_the_right_hash_without_the_result_is_not_paid(world: World, loop: VerifyingLoop, house: bool) -> None:
    node = await world.node(house=house)
    await world.job(1, expected=not house)
    [offer] = await world.place()
    await world.say(node, signed_by(node, world.receipt(offer)._replace(inline=b"")))
    assert await world.earned(node) == 0
    await loop.tick(world.now)
    found, reason = await verdict(world)
    assert (found, "signed" in str(reason)) == ("fail", True)


async def uploaded(artefacts: ArtefactStore, content: bytes) -> Digest:
    async def chunks() -> AsyncIterator[bytes]:
        yield content

    upload_id = Ids(secrets.randbits).new(Instant(SECOND))
    await artefacts.begin(upload_id, len(content))
    assert await artefacts.append(upload_id, 0, chunks()) == len(content)
    digest = await artefacts.finish(upload_id, None, Instant(0))
    assert isinstance(digest, Digest)
    return digest


async def test_a_large_private_result_is_opened_in_pieces_and_only_as_much_is_kept_as_is_wanted(
    artefacts: ArtefactStore,
) -> None:
    plain = secrets.token_bytes(3 * PIECE_BYTES + 7)
    task = read_task(PRODUCT)
    assert isinstance(task, Task)
    at, results = Instant(SECOND), StoredResults(artefacts, VERIFICATION)
    inline = receipt(at, AttemptAssignment(1, UUID(int=1), UUID(int=2), UUID(int=3), 1, at, PRODUCT), plain)
    large = inline._replace(artefact=await uploaded(artefacts, inline.inline), inline=b"")
    kept = io.BytesIO()
    whole = await results.find(task, large, is_uploaded=True, into=kept, most_bytes=len(plain))
    assert (whole.is_as_signed, whole.is_kept, kept.getvalue()) == (True, True, plain)
    little = await results.find(task, large, is_uploaded=True, into=io.BytesIO(), most_bytes=len(plain) - 1)
    assert (little.is_as_signed, little.is_kept) == (True, False)
    assert await results.find(task, large, is_uploaded=False) == NOTHING, "another attempt's upload is not its own"
    for wrong in (inline.inline[:-1], inline.inline + b"?", plain, inline.inline[: 16 + PIECE_BYTES + 16]):
        changed = large._replace(artefact=await uploaded(artefacts, wrong))
        assert await results.find(task, changed, is_uploaded=True, most_bytes=len(plain)) == NOTHING
    gone = large._replace(artefact=Digest("0" * 64))
    assert await results.find(task, gone, is_uploaded=True) == NOTHING


async def test_an_uploaded_private_result_is_paid_and_its_customer_cannot_delete_it_before(
    world: World, loop: VerifyingLoop, artefacts: ArtefactStore
) -> None:
    _, node, offer = await offered(world)
    inline = receipt(world.now, offer, result_of(0))
    digest = await uploaded(artefacts, inline.inline)
    database, customer = world.parts.loop_database, world.customer
    artefact_id = await made(
        *(database, customer, world.now, inline.inline), purpose=Purpose.RESULT, attempt_id=offer.attempt_id
    )
    assert await delete(database, artefact_id, customer, world.now) is ArtefactRefusal.ARTEFACT_IN_USE
    await world.say(node, signed_by(node, inline._replace(inline=b"", artefact=digest)))
    assert await delete(database, artefact_id, customer, world.now) is ArtefactRefusal.ARTEFACT_IN_USE
    await loop.tick(world.now)
    assert await world.earned(node) > 0
    assert isinstance(await delete(database, artefact_id, customer, world.now), Artefact)


@pytest.mark.parametrize("statement", ["UPDATE verification_key SET private = private", "DELETE FROM verification_key"])
async def test_the_program_cannot_change_the_key_of_its_verification(database: Database, statement: str) -> None:
    async with database.connection() as connection:
        with pytest.raises(Exception, match="permission denied"):
            await connection.execute(statement)
