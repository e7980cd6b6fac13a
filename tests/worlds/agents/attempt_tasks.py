"""Offers of small tasks, and what a pool reads of the answers."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from uuid import UUID

from tests.worlds.agents.pool_end import Node, PoolEnd
from tests.worlds.sealed_results import opened_whole
from tidemill.core.jobs.kinds.needs import limits_of
from tidemill.core.jobs.kinds.script import KIND, Script
from tidemill.core.jobs.kinds.task_body import Input, Task, task_bytes
from tidemill.core.jobs.receipts import Receipt, read_batch
from tidemill.core.jobs.result_archives import read_archive
from tidemill.core.jobs.results import ResultBinding, opened_envelope
from tidemill.core.settings.sections.work import ContainersSettings
from tidemill.wire.messages import (
    AcceptedMessage,
    Assignment,
    DeclinedMessage,
    LogLines,
    ProgressMessage,
    ReceiptsMessage,
)

POOL_KEY, CUSTOMER_KEY = b"p" * 32, b"c" * 32
HELLO = "open('out/hello.txt', 'w').write('hello')"


_OURS = secrets.token_bytes(12)
"""Sandboxes name control groups of the whole machine by attempts, and other tests run beside us."""


def attempt_id(number: int) -> bytes:
    return _OURS + number.to_bytes(4, "big")


def script_task(program: str, *, inputs: Sequence[Input] = (), seconds: int = 60, **fields: object) -> Task:
    parameters: dict[str, object] = {"seconds": seconds, "program": program, "memory_mib": 256, "disk_mib": 64}
    work = KIND.read(parameters)
    assert isinstance(work, Script)
    limits = replace(limits_of(KIND.needs(work), seconds, ContainersSettings()), cpu_share=0.1)
    return replace(Task("script", parameters, limits, tuple(inputs)), **fields)  # type: ignore[arg-type]


def offer(number: int, program: str = HELLO, *, lease: int = 1, deadline_s: float = 60, **fields: object) -> Assignment:
    task = script_task(program, **fields)  # type: ignore[arg-type]
    task_id = UUID(int=number + 10**6).bytes
    return Assignment(attempt_id(number), lease, int(deadline_s * 1_000), task_bytes(task), task_id)


def bound_of(receipt: Receipt) -> ResultBinding:
    return ResultBinding(receipt.task_id, receipt.attempt_id, receipt.lease)


def receipts(node: Node) -> list[Receipt]:
    """Every receipt that arrived, as the pool reads it."""
    found: list[Receipt] = []
    for report in node.reports:
        if isinstance(report, ReceiptsMessage):
            batch = read_batch(report.batch, report.signature, node.key, node.node_id)
            assert isinstance(batch, tuple), batch
            found += batch
    return found


def receipt_of(pool: PoolEnd, number: int) -> Receipt:
    (receipt,) = (one for one in receipts(pool.node) if one.attempt_id.bytes == attempt_id(number))
    return receipt


def has_receipt(pool: PoolEnd, number: int) -> bool:
    return any(one.attempt_id.bytes == attempt_id(number) for one in receipts(pool.node))


def files_of(receipt: Receipt, private_key: bytes | None = None) -> dict[str, bytes]:
    """The files of a result that stands in its receipt."""
    plain: object = receipt.inline
    if private_key is not None:
        keys = [opened_envelope(one, private_key, bound_of(receipt)) for one in receipt.envelopes]
        (key,) = (key for key in keys if isinstance(key, bytes))
        plain = opened_whole(receipt.inline, key, bound_of(receipt))
    assert isinstance(plain, bytes), plain
    files = read_archive(plain)
    assert isinstance(files, dict), files
    return {str(PurePosixPath(path)): body for path, body in files.items()}


def declined(pool: PoolEnd, number: int) -> list[str]:
    return [
        one.reason
        for one in pool.node.reports
        if isinstance(one, DeclinedMessage) and one.attempt_id == attempt_id(number)
    ]


def accepted(pool: PoolEnd, number: int) -> int:
    return sum(isinstance(one, AcceptedMessage) and one.attempt_id == attempt_id(number) for one in pool.node.reports)


def lines(pool: PoolEnd, number: int) -> dict[int, str]:
    told = [one for one in pool.node.reports if isinstance(one, LogLines) and one.attempt_id == attempt_id(number)]
    return {one.first + place: line for one in told for place, line in enumerate(one.lines)}


def progress(pool: PoolEnd, number: int) -> list[int]:
    return [
        one.share_ppm
        for one in pool.node.reports
        if isinstance(one, ProgressMessage) and one.attempt_id == attempt_id(number)
    ]
