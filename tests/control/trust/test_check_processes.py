"""Checks in processes of their own: what they may take, what becomes of one that takes more, and whose turn it is."""

import asyncio
import hashlib
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import BinaryIO
from uuid import UUID

import pytest

from tests.worlds.databases.dispatch_world import body_of, result_of
from tidemill.control.trust.check_processes import CheckFailure, CheckProcesses
from tidemill.control.trust.check_turns import CheckTurns
from tidemill.core.clock import Instant
from tidemill.core.jobs import result_archives
from tidemill.core.jobs.kinds.task_body import Task, read_task
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.matrices.npy import MatrixLayout, header_of
from tidemill.core.settings.sections.trust import VerificationSettings
from tidemill.core.trust.checks.check_requests import PairRequest, ProofRequest, read_answer
from tidemill.core.trust.checks.verdict import Ruling, Verdict

MIB = 2**20
LARGE = 9_000
A, B, C = UUID(int=1), UUID(int=2), UUID(int=3)


def receipt(sha256: bytes, numeric_class: str = "exact") -> Receipt:
    return Receipt(
        *(UUID(int=1), UUID(int=2), UUID(int=3), 1, sha256, None, b"", ()),
        *(Instant(0), Instant(1), 1, numeric_class, b"", AttemptOutcome.DONE, 0, ""),
    )


def proof(side: int, sha256: bytes) -> ProofRequest:
    task = read_task(body_of(0, side))
    assert isinstance(task, Task)
    return ProofRequest(task, receipt(sha256), b"s" * 32)


def file_of(content: bytes) -> BinaryIO:
    file = TemporaryFile(buffering=0)  # noqa: SIM115  # the caller closes it
    file.write(content)
    return file  # type: ignore[return-value]


def large_result(folder: Path) -> tuple[BinaryIO, bytes]:
    """A product of zeros with this side, which is wrong, in a file with a hole; and its hash."""
    size_bytes = 4 * LARGE * LARGE
    header = header_of(MatrixLayout("int32", LARGE, LARGE))
    file = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115  # the caller closes it
    file.write(result_archives.file_header(PurePosixPath("c.npy"), len(header) + size_bytes) + header)
    file.seek(size_bytes, os.SEEK_CUR)
    file.write(result_archives.padding(len(header) + size_bytes) + result_archives.END)
    file.seek(0)
    return file, hashlib.file_digest(file, "sha256").digest()  # type: ignore[return-value, arg-type]


def own_peak_bytes() -> int:
    status = Path("/proc/self/status").read_text("ascii")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@contextmanager
def processes(**settings: object) -> Iterator[CheckProcesses]:
    checks = CheckProcesses(VerificationSettings(**settings))  # type: ignore[arg-type]
    try:
        yield checks
    finally:
        checks.close()


async def ruling(checks: CheckProcesses, content: bytes, customer_id: UUID = A) -> Ruling | CheckFailure:
    """Of a small product."""
    with file_of(content) as file:
        found = await checks.check(customer_id, proof(24, hashlib.sha256(content).digest()), [file])
    return found.ruling if isinstance(found, Verdict) else found


async def test_a_small_product_is_checked_and_a_process_is_used_again() -> None:
    with processes(checks_at_once=1) as checks:
        assert not checks._all, "none is started before it is needed"
        assert await ruling(checks, result_of(0)) is Ruling.PASS
        [first] = checks._all
        assert await ruling(checks, result_of(1)) is Ruling.FAIL
        assert await ruling(checks, b"no archive") is Ruling.FAIL
        assert await ruling(checks, b"") is Ruling.FAIL
        assert checks._all == {first}
    assert not first.is_alive


async def test_a_large_product_takes_no_memory_of_the_verifying_process(tmp_path: Path) -> None:
    """A product of 9,000 made it grow by 1.3 GiB."""
    file, sha256 = large_result(tmp_path)
    with processes() as checks, file:
        await ruling(checks, result_of(0))
        Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins anew
        before = own_peak_bytes()
        found = await checks.check(A, proof(LARGE, sha256), [file])
        assert isinstance(found, Verdict)
        assert found.ruling is Ruling.FAIL
        assert own_peak_bytes() - before < 50 * MIB


async def test_what_does_not_fit_into_the_memory_is_told_and_the_next_check_finds_a_process(tmp_path: Path) -> None:
    file, sha256 = large_result(tmp_path)
    with processes(checks_at_once=1, check_memory_mib=150) as checks, file:
        assert await checks.check(A, proof(LARGE, sha256), [file]) is CheckFailure.TOO_LARGE
        assert not checks._all
        assert await ruling(checks, result_of(0)) is Ruling.PASS


async def test_what_takes_too_long_is_ended_and_the_next_check_finds_a_process(tmp_path: Path) -> None:
    file, sha256 = large_result(tmp_path)
    with processes(checks_at_once=1, check_time_s=0.2) as checks, file:
        assert await checks.check(A, proof(LARGE, sha256), [file]) is CheckFailure.TOO_LONG
        assert not checks._all
        assert await ruling(checks, result_of(0)) is Ruling.PASS


async def test_a_process_that_was_killed_is_replaced() -> None:
    with processes(checks_at_once=1) as checks:
        assert await ruling(checks, result_of(0)) is Ruling.PASS
        [first] = checks._all
        os.kill(first.pid, signal.SIGSTOP)  # it lives, and is asked
        asked = asyncio.create_task(ruling(checks, result_of(0)))
        await asyncio.sleep(0.05)
        os.kill(first.pid, signal.SIGKILL)
        assert await asked is Ruling.PASS
        assert first not in checks._all


OWNER = """
import asyncio, sys
from tidemill.control.trust.check_processes import CheckProcesses
from tidemill.core.settings.sections.trust import VerificationSettings

async def main():
    process = CheckProcesses(VerificationSettings())._ready()
    process._load()
    print(process.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_process_dies_with_the_one_that_started_it() -> None:
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, stdout=asyncio.subprocess.PIPE)
    assert owner.stdout
    pid = int(await owner.stdout.readline())
    assert Path(f"/proc/{pid}").exists()
    owner.kill()
    await owner.wait()
    async with asyncio.timeout(10):
        while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
            await asyncio.sleep(0.01)


async def test_a_check_that_is_called_off_leaves_nothing_behind(tmp_path: Path) -> None:
    file, sha256 = large_result(tmp_path)
    with processes(checks_at_once=1) as checks, file:
        asked = asyncio.create_task(checks.check(A, proof(LARGE, sha256), [file]))
        waits = asyncio.create_task(ruling(checks, result_of(0), B))
        await asyncio.sleep(0.1)
        asked.cancel()
        assert await waits is Ruling.PASS
        assert len(checks._all) == 1


async def test_two_results_are_compared_by_their_files() -> None:
    task = Task("script", {"program": "print(1)", "seconds": 5}, read_task(body_of(0)).limits)  # type: ignore[union-attr]
    one, other = (result_archives.archive({PurePosixPath("a"): body}) for body in (b"1", b"2"))
    pair = PairRequest(task, *(receipt(hashlib.sha256(body).digest(), "device; a") for body in (one, other)))
    with processes() as checks, file_of(one) as first, file_of(other) as second:
        found = await checks.check(A, pair, [first, second])
        assert isinstance(found, Verdict)
        assert (found.ruling, "One file differs from what a house node made: a" in found.reasons[0]) == (
            Ruling.FAIL,
            True,
        )
        by_hash = await checks.check(A, pair)
        assert isinstance(by_hash, Verdict)
        assert (by_hash.ruling, "not the one" in by_hash.reasons[0]) == (Ruling.FAIL, True)


async def test_a_process_sees_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMILL_DATABASE_URL", "postgresql://somebody:secret@host/database")
    with processes(checks_at_once=1) as checks:
        await ruling(checks, result_of(0))
        [process] = checks._all
        assert b"secret" not in Path(f"/proc/{process.pid}/environ").read_bytes()


@pytest.mark.parametrize(
    "answered",
    [
        b"no answer",
        b"[]",
        b'{"ruling": "pass"}',
        b'{"ruling": "pass", "reasons": ["why"]}',
        b'{"ruling": "fail", "reasons": []}',
        b'{"ruling": "fail", "reasons": [1]}',
        b'{"ruling": "perhaps", "reasons": ["why"]}',
    ],
)
def test_what_is_no_verdict_is_not_believed(answered: bytes) -> None:
    assert read_answer(answered) is None


async def test_many_checks_of_one_customer_delay_no_other() -> None:
    """One customer's long checks never take the last place, and others come before the next of them."""
    turns, order, go_on = CheckTurns(2), [], asyncio.Event()

    async def check(customer_id: UUID, name: str, ends: asyncio.Event | None = None) -> None:
        async with turns.turn(customer_id):
            order.append(name)
            if ends:
                await ends.wait()

    long = [asyncio.create_task(check(A, f"long {number}", go_on)) for number in range(1_000)]
    await asyncio.sleep(0)
    await asyncio.wait_for(check(B, "small"), 5)
    assert order == ["long 0", "small"]
    third = asyncio.create_task(check(C, "third", go_on))
    small = asyncio.create_task(check(B, "small again"))
    await asyncio.sleep(0.01)
    assert order[2:] == ["third"], "two places are taken"
    go_on.set()
    await asyncio.gather(small, third, *long)
    assert "small again" in order[3:5], "who had a turn longest ago is next"
    assert turns._free == 2
    assert not turns._waiting
    assert not turns._at_work


async def test_who_leaves_while_waiting_takes_no_place() -> None:
    turns = CheckTurns(1)
    async with turns.turn(A):
        waits = asyncio.create_task(turns.turn(B).__aenter__())
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
    async with asyncio.timeout(5), turns.turn(C):
        pass
