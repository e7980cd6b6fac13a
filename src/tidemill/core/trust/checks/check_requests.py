"""What a process is asked that checks a result, and what it answers: both as JSON, read strictly by the one who asked.

Results and inputs are not in it: the process has them as files, in the order in which the request names them. What it
answers is a ruling with its reasons; it has read what strangers made, so nothing else is believed of it.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task, read_task, task_bytes
from tidemill.core.jobs.receipts import Receipt, ReceiptRefusal, read_receipt, receipt_bytes
from tidemill.core.trust.audits.comparison import ExecutionPair, compare
from tidemill.core.trust.checks.task_checks import ResultEvidence, check_result
from tidemill.core.trust.checks.verdict import Ruling, Verdict

ANSWER_MAX_BYTES = 64 * 1024
_REASONS_MAX = 16
_REASON_MAX = 2_000


@dataclass(frozen=True)
class ProofRequest:
    """Check a result against its task's inputs. The files are the result, then the inputs in the order of the task."""

    task: Task
    receipt: Receipt
    secret: bytes


@dataclass(frozen=True)
class PairRequest:
    """Compare two results that differ. The files are both results, or none if they are too large."""

    task: Task
    claim: Receipt
    found: Receipt


CheckRequest = ProofRequest | PairRequest


def request_bytes(request: CheckRequest) -> bytes:
    """The request as it is sent."""
    if isinstance(request, ProofRequest):
        receipts, secret = [request.receipt], request.secret
    else:
        receipts, secret = [request.claim, request.found], b""
    fields = {
        "task": _text(task_bytes(request.task)),
        "receipts": [_text(receipt_bytes(receipt)) for receipt in receipts],
        "secret": _text(secret),
    }
    return json.dumps(fields).encode()


def read_request(sent: bytes) -> CheckRequest:
    """The inverse, in the process that is asked. Only the pool itself asks."""
    fields = json.loads(sent)
    task = read_task(_bytes(fields["task"]))
    assert not isinstance(task, TaskObjection), "the pool has read it before"
    receipts = [_receipt(_bytes(receipt)) for receipt in fields["receipts"]]
    if len(receipts) == 1:
        return ProofRequest(task, receipts[0], _bytes(fields["secret"]))
    claim, found = receipts
    return PairRequest(task, claim, found)


def carry_out(request: CheckRequest, files: Sequence[memoryview]) -> Verdict:
    """The verdict."""
    if isinstance(request, PairRequest):
        return compare(ExecutionPair(request.task, request.claim, request.found, *files))
    result, *contents = files
    names = [needed.name for needed in request.task.inputs]
    inputs = dict(zip(names, contents, strict=True))
    return check_result(request.receipt, ResultEvidence(request.task, inputs, result, request.secret))


def answer_bytes(verdict: Verdict) -> bytes:
    """The verdict as it is answered."""
    return json.dumps({"ruling": verdict.ruling.value, "reasons": verdict.reasons}).encode()


def read_answer(answered: bytes) -> Verdict | None:
    """The inverse; None for anything else."""
    try:
        fields: Any = json.loads(answered)
        ruling, reasons = Ruling(fields["ruling"]), tuple(fields["reasons"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_sound = len(reasons) <= _REASONS_MAX and all(isinstance(one, str) for one in reasons)
    if not is_sound or bool(reasons) == (ruling is Ruling.PASS):
        return None
    return Verdict(ruling, tuple(reason[:_REASON_MAX] for reason in reasons))


def _receipt(encoded: bytes) -> Receipt:
    receipt = read_receipt(encoded)
    assert not isinstance(receipt, ReceiptRefusal), "the pool has read it before"
    return receipt


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
