"""Work with inputs and large results: fetched, sealed, uploaded, called off and picked up again at every step."""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.worlds.agents.agent_machine import left_in, until
from tests.worlds.agents.attempt_tasks import CUSTOMER_KEY, POOL_KEY, bound_of, offer
from tests.worlds.agents.shelf import ShelfOfArtefacts
from tests.worlds.sealed_results import opened_whole
from tidemill.agent.home.home import Home, prepare
from tidemill.agent.home.identity import new_membership
from tidemill.agent.standing import AgentStanding, LinkStanding, LinkState
from tidemill.agent.work.attempt_directories import AttemptDirectories
from tidemill.agent.work.work import WorkInHand
from tidemill.agent.work.workshop import Workshop, open_workshop
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.jobs.kinds.task_body import Input
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt, read_batch
from tidemill.core.jobs.result_archives import read_archive
from tidemill.core.jobs.results import opened_envelope, public_key
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.host.clocks import wall
from tidemill.link.dialled.reports import Reporter
from tidemill.link.dialled.spool import Spool
from tidemill.wire.messages import AcceptedMessage, Assignment, Cancel, DeclinedMessage, ReceiptsMessage

pytestmark = pytest.mark.needs("bubblewrap")

NODE = UUID(int=77)
MACHINE = Machine(
    "Linux", "6.1", "x86_64", "EPYC", 2, 8_000, 100_000, (Device(0, DeviceKind.CPU, "EPYC", "CPU-0", 8_000, "6.1"),)
)
LARGE = "import random; open('out/large', 'wb').write(random.Random(7).randbytes(1_500_000))"
FOREVER = "import time; time.sleep(3600)"


@dataclass
class Shop:
    """The part of an agent that works, on its real disk and in real sandboxes."""

    home: Home
    workshop: Workshop
    shelf: ShelfOfArtefacts
    standing: AgentStanding
    reporting: Reporter
    work: WorkInHand

    async def receipts(self) -> list[Receipt]:
        key = self.standing.membership.identity.key
        found: list[Receipt] = []
        for report in await self.reports():
            if isinstance(report, ReceiptsMessage):
                batch = read_batch(report.batch, report.signature, key, NODE)
                assert isinstance(batch, tuple)
                found += batch
        return found

    async def reports(self) -> list[object]:
        spool = self.reporting.spool
        return [report for _, report in await spool.read(spool.first_number - 1, 10**8)]

    async def declined(self) -> list[str]:
        return [one.reason for one in await self.reports() if isinstance(one, DeclinedMessage)]

    async def take(self, one: Assignment) -> None:
        answer = await self.work.assigned(one)
        assert isinstance(answer, AcceptedMessage), answer

    async def ends(self) -> None:
        """Until nothing is in hand, nor waits to be taken up again."""
        await until(lambda: self.work.shown()["in_hand"] == 0 and not list(self.home.attempts.iterdir()), "it ends")

    def stages(self) -> list[str]:
        return [one["stage"] for one in self.work.shown()["attempts"]]  # type: ignore[attr-defined]


@asynccontextmanager
async def working(home: Home, shelf: ShelfOfArtefacts) -> AsyncIterator[Shop]:
    """One run of the agent's work. At its end it is dropped, as the end of a process drops it."""
    prepare(home)
    spool = await Spool.open(home.spool, 10**8)
    membership = replace(new_membership(bytes(32), "0" * 64, ["http://127.0.0.1:1"]), node_id=NODE)
    standing = AgentStanding(membership, HeatLimits(85, 80), LinkStanding(LinkState.CALLING, "", wall()), wall())
    standing.machine = MACHINE
    reporting = Reporter(spool)
    async with open_workshop(home) as workshop:
        work = WorkInHand(workshop, AttemptDirectories(home.attempts), (shelf, shelf), standing, reporting)
        task = asyncio.create_task(work.run())
        try:
            yield Shop(home, workshop, shelf, standing, reporting, work)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    await spool.close()


@pytest.fixture
def shelf(place: Path) -> ShelfOfArtefacts:
    return ShelfOfArtefacts(place / "artefacts")


@pytest.fixture
def home(place: Path) -> Home:
    return Home(place / "home")


@pytest.fixture
async def shop(home: Home, shelf: ShelfOfArtefacts) -> AsyncIterator[Shop]:
    async with working(home, shelf) as shop:
        yield shop
        assert list(home.attempts.iterdir()) == []
        await until(lambda: not left_in(home.runs), "nothing is left where tasks ran")


def result_of(shop: Shop, receipt: Receipt, private_key: bytes) -> bytes:
    """The large file, as the owner of a key reads it."""
    assert receipt.artefact is not None
    sealed = (shop.shelf.place / receipt.artefact.text).read_bytes()
    assert hashlib.sha256(sealed).hexdigest() == receipt.artefact.text
    keys = [opened_envelope(one, private_key, bound_of(receipt)) for one in receipt.envelopes]
    (key,) = (key for key in keys if isinstance(key, bytes))
    plain = opened_whole(sealed, key, bound_of(receipt))
    assert isinstance(plain, bytes)
    assert hashlib.sha256(plain).digest() == receipt.result_sha256
    files = read_archive(plain)
    assert isinstance(files, dict)
    (content,) = files.values()
    return content


async def test_a_task_reads_its_inputs_and_nothing_can_change_them(shop: Shop) -> None:
    content = secrets.token_bytes(100_000)
    digest = shop.shelf.put(content)
    program = (
        "import hashlib, os\n"
        "found = open('/inputs/numbers', 'rb').read()\n"
        "try:\n    open('/inputs/numbers', 'wb')\nexcept OSError: pass\nelse: raise SystemExit('it was written to')\n"
        "open('out/sum', 'w').write(hashlib.sha256(found).hexdigest())\n"
    )
    await shop.take(offer(1, program, inputs=[Input("numbers", digest, len(content))]))
    await shop.ends()
    (receipt,) = await shop.receipts()
    assert receipt.outcome is AttemptOutcome.DONE, receipt.reason
    assert digest.text.encode() in receipt.inline
    assert (shop.shelf.place / digest.text).read_bytes() == content


async def test_an_input_that_cannot_be_had_is_not_the_tasks_fault(shop: Shop) -> None:
    await shop.take(offer(1, inputs=[Input("numbers", Digest("0" * 64), 5)]))
    await shop.ends()
    assert await shop.receipts() == []
    assert "does not have this artefact" in (await shop.declined())[0]


async def test_a_large_result_is_uploaded_sealed_and_its_receipt_comes_last(shop: Shop) -> None:
    shop.shelf.unreachable = 2
    await shop.take(offer(1, LARGE, seal_to=(public_key(POOL_KEY), public_key(CUSTOMER_KEY))))
    await until(lambda: shop.stages() == ["uploads its result"], "it is sealed")
    assert await shop.receipts() == []
    await shop.ends()
    (receipt,) = await shop.receipts()
    assert not receipt.inline
    content = result_of(shop, receipt, CUSTOMER_KEY)
    assert content == result_of(shop, receipt, POOL_KEY)
    assert len(content) == 1_500_000


async def test_the_same_work_has_the_same_hash_whoever_it_is_sealed_to(shop: Shop) -> None:
    await shop.take(offer(1, LARGE, seal_to=(public_key(POOL_KEY),)))
    await shop.take(offer(2, LARGE))
    await shop.ends()
    first, second = await shop.receipts()
    assert first.result_sha256 == second.result_sha256
    assert first.artefact != second.artefact


async def test_a_result_that_the_pool_refuses_is_given_up(shop: Shop) -> None:
    shop.shelf.refusal = UploadRefusal.UPLOAD_DIGEST_WRONG
    await shop.take(offer(1, LARGE))
    await shop.ends()
    assert await shop.receipts() == []
    assert "did not take the result" in (await shop.declined())[0]


async def test_an_upload_is_called_off(shop: Shop) -> None:
    shop.shelf.unreachable = 10**6
    one = offer(1, LARGE)
    await shop.take(one)
    await until(lambda: shop.stages() == ["uploads its result"], "it is sealed")
    await shop.work.cancelled(Cancel(one.attempt_id, 1, "Never mind."))
    await shop.ends()
    assert await shop.receipts() == []


async def test_a_fetch_is_called_off_and_ends_at_the_deadline(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def never(digest: Digest, size_bytes: int) -> AsyncIterator[Path]:
        await asyncio.Event().wait()
        yield Path()

    monkeypatch.setattr(shop.shelf, "use", never)
    called_off = offer(1, inputs=[Input("x", Digest("0" * 64), 5)])
    await shop.take(called_off)
    await shop.take(offer(2, inputs=[Input("x", Digest("0" * 64), 5)], deadline_s=1.5))
    await until(lambda: shop.stages() == ["fetches its inputs"] * 2, "both are fetched")
    await shop.work.cancelled(Cancel(called_off.attempt_id, 1, "Never mind."))
    await shop.ends()
    (sentence,) = await shop.declined()
    assert "deadline passed while the inputs" in sentence


async def test_one_that_waits_is_called_off_or_given_back_at_its_deadline(shop: Shop) -> None:
    cores = replace_share(2.0)
    await shop.take(cores(offer(1, FOREVER)))
    await until(lambda: shop.stages() == ["runs"], "the first runs")
    waits, late = cores(offer(2)), cores(offer(3, deadline_s=1))
    await shop.take(waits)
    await shop.take(late)
    assert shop.stages()[1:] == ["waits for its turn"] * 2
    await shop.work.cancelled(Cancel(waits.attempt_id, 1, "Never mind."))
    await until(lambda: len(shop.stages()) == 1, "both are gone")
    assert ["waited" in one for one in await shop.declined()] == [True]
    await shop.work.cancelled(Cancel(offer(1).attempt_id, 1, "Never mind."))
    await shop.ends()


def replace_share(cores: float) -> Callable[[Assignment], Assignment]:
    """The same offer for so many cores."""

    def changed(one: Assignment) -> Assignment:
        task = one.task.replace(b'"cpu_share":0.1', b'"cpu_share":%g' % cores)
        assert task != one.task
        return Assignment(one.attempt_id, one.lease, one.deadline_ms, task, one.task_id)

    return changed


async def test_an_agent_that_starts_again_uploads_what_was_finished_and_does_not_run_it_again(
    home: Home, shelf: ShelfOfArtefacts
) -> None:
    shelf.unreachable = 10**6
    program = "import os; open('out/large', 'wb').write(os.urandom(100_000))"
    async with working(home, shelf) as shop:
        await shop.take(offer(1, program))
        await until(lambda: shop.stages() == ["uploads its result"], "it is sealed")
    (kept,) = home.attempts.iterdir()
    result = hashlib.sha256((kept / "result").read_bytes()).hexdigest()
    shelf.unreachable = 0
    async with working(home, shelf) as shop:
        await shop.ends()
        (receipt,) = await shop.receipts()
        assert receipt.artefact == Digest(result)
    assert list(home.attempts.iterdir()) == []


async def test_what_ran_when_the_agent_ended_is_run_once_more_and_then_given_back(
    home: Home, shelf: ShelfOfArtefacts
) -> None:
    for _ in range(2):
        async with working(home, shelf) as shop:
            if not home.attempts.exists() or not list(home.attempts.iterdir()):
                await shop.take(offer(1, FOREVER))
            await until(lambda shop=shop: shop.stages() == ["runs"], "it runs")
    async with working(home, shelf) as shop:
        await shop.ends()
        assert "agent was ended" in (await shop.declined())[0]


async def test_what_is_past_its_deadline_when_the_agent_comes_back_is_given_back(
    home: Home, shelf: ShelfOfArtefacts
) -> None:
    async with working(home, shelf) as shop:
        await shop.take(offer(1, FOREVER, deadline_s=1))
        await until(lambda: shop.stages() == ["runs"], "it runs")
    await asyncio.sleep(1)
    async with working(home, shelf) as shop:
        await shop.ends()
        assert "deadline" in (await shop.declined())[0]


@pytest.mark.parametrize("damage", ["nothing", "junk", "moved"])
async def test_an_attempt_that_cannot_be_read_harms_nobody(home: Home, shelf: ShelfOfArtefacts, damage: str) -> None:
    async with working(home, shelf) as shop:
        await shop.take(offer(1, FOREVER))
    (kept,) = home.attempts.iterdir()
    match damage:
        case "nothing":
            (kept / "order").unlink()
        case "junk":
            (kept / "order").write_bytes(b"\xff" * 100)
        case "moved":
            kept.rename(home.attempts / "elsewhere")
    async with working(home, shelf) as shop:
        await shop.take(offer(2))
        await shop.ends()
        assert len(await shop.receipts()) == 1
    assert list(home.attempts.iterdir()) == []


async def test_a_pool_cannot_make_a_node_wait_with_more_than_its_queue_holds(shop: Shop) -> None:
    cores = replace_share(2.0)
    answers = [await shop.work.assigned(cores(offer(number, FOREVER))) for number in range(270)]
    kept = [one for one in answers if isinstance(one, AcceptedMessage)]
    assert 256 <= len(kept) <= 258
    assert all("no more" in one.reason for one in answers if isinstance(one, DeclinedMessage))
    for one in kept:
        await shop.work.cancelled(Cancel(one.attempt_id, one.lease, "Never mind."))
    await shop.ends()
