"""An upload from its first request to the artefact it becomes.

The database knows its owner and reserves room; storage has the bytes. If a request breaks off between the two, the next
one continues: a complete upload becomes an artefact when somebody asks how far it is.
"""

from collections.abc import AsyncIterator
from uuid import UUID

from starlette.requests import Request

from tidemill.control.context import Control
from tidemill.control.http.problems import RouteRefused, unless_refused
from tidemill.core.accounts.roles import Caller
from tidemill.core.artefacts import storage_fees
from tidemill.core.artefacts.metadata import UploadDescription
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.artefacts.retention import OverQuota
from tidemill.core.artefacts.uploads import Checksum, Upload, expires_at, refused_caller, refused_part
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import Fault
from tidemill.core.settlement.rewards import customer_account
from tidemill.serving.upload_body import BODY, UploadBody
from tidemill.store.artefacts import artefacts, uploads
from tidemill.store.artefacts.uploads import SizeRules
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection

_TOUCH_PART = 4
"""While bytes come, the expiry of an upload is set anew after this part of its time."""


async def begin(control: Control, caller: Caller, description: UploadDescription, length_bytes: int) -> Upload:
    """Begin an upload: reserve its room, and begin it in storage."""
    now = control.clock.now()
    sender = caller.account_id or caller.node_id
    assert sender, "the guard lets in accounts and nodes"
    until = expires_at(now, _keep_us(control))
    upload = Upload(
        id=control.ids.new(now),
        account_id=sender,
        begun_by=sender,
        purpose=description.purpose,
        name=description.name,
        length_bytes=length_bytes,
        expected=description.expected,
        expires_at=until,
    )
    begun = await _reserve(control, caller, upload, description.attempt_id, now)
    try:
        await control.artefacts.begin(begun.id, length_bytes)
    except Fault:
        await end(control, begun)
        raise
    return begun


async def of_caller(control: Control, upload_id: UUID, caller: Caller) -> Upload:
    """The upload, if it is the caller's and can go on."""
    async with control.route_database.connection() as connection:
        upload = await uploads.get(connection, upload_id)
    sender = caller.account_id or caller.node_id
    if upload is None or sender is None:
        raise RouteRefused(UploadRefusal.UNKNOWN_UPLOAD)
    if refusal := refused_caller(upload, sender, control.clock.now()):
        raise RouteRefused(refusal)
    return upload


async def standing(control: Control, upload: Upload) -> tuple[int, UUID | None]:
    """The offset of an upload, and its artefact if it is finished. A complete upload is finished now."""
    if upload.artefact_id is not None:
        return upload.length_bytes, upload.artefact_id
    offset = unless_refused(await control.artefacts.offset(upload.id))
    if offset < upload.length_bytes:
        return offset, None
    try:
        return offset, await finish(control, upload)
    except RouteRefused as refused:
        if refused.refusal is not UploadRefusal.UPLOAD_BUSY:
            raise
        return offset, None


async def receive(
    control: Control, upload: Upload, offset: int, request: Request, checksum: Checksum | None
) -> tuple[int, UUID | None]:
    """Take the bytes of a request. Answers the new offset, and the artefact if the upload is complete."""
    if upload.artefact_id is not None:
        stands_at = upload.length_bytes
        unless_refused(refused_part(upload.length_bytes, stands_at, offset, _announced(request)))
        return stands_at, upload.artefact_id
    unless_refused(refused_part(upload.length_bytes, offset, offset, _announced(request)))
    answer = await control.artefacts.append(upload.id, offset, _chunks(control, upload, offset, request), checksum)
    await _touch(control, upload)
    stands_at = unless_refused(answer)
    return stands_at, await finish(control, upload) if stands_at == upload.length_bytes else None


async def finish(control: Control, upload: Upload) -> UUID:
    """Make an artefact of a complete upload. Done again, it is the same artefact."""
    now = control.clock.now()
    digest = await control.artefacts.finish(upload.id, upload.expected, now)
    if digest is UploadRefusal.UPLOAD_DIGEST_WRONG:
        await end(control, upload)
    if digest is UploadRefusal.UNKNOWN_UPLOAD:
        return await _finished_artefact(control, upload)
    content_digest = unless_refused(digest)
    async with control.route_database.transaction() as transaction:
        artefact_id = unless_refused(await artefacts.keep(transaction, upload, content_digest, control.ids, now))
    await control.artefacts.abandon(upload.id)
    return artefact_id


async def end(control: Control, upload: Upload) -> None:
    """End an upload and drop its bytes. If it is finished, its artefact stays."""
    async with control.route_database.transaction() as transaction:
        await uploads.end(transaction, upload)
    await control.artefacts.abandon(upload.id)


async def _reserve(control: Control, caller: Caller, upload: Upload, attempt_id: UUID | None, now: Instant) -> Upload:
    async with control.route_database.transaction() as transaction:
        if attempt_id is None:
            await _reserve_for_account(control, transaction, caller, upload)
            return upload
        begun, before = unless_refused(await uploads.begin_result(transaction, upload, attempt_id, now))
    if before is not None:
        await control.artefacts.abandon(before)
    return begun


async def _reserve_for_account(control: Control, transaction: Connection, caller: Caller, upload: Upload) -> None:
    """Reserve room within what the account's balance allows; what operators keep is the pool's."""
    rules = control.settings.artefacts
    allowed, balance_uc = rules.quota_bytes, 0
    if not caller.is_operator:
        balance_uc = await ledger.available_uc(transaction, customer_account(upload.account_id))
        allowed = storage_fees.allowed_bytes(balance_uc, rules)
    refusal = await uploads.begin(transaction, upload, SizeRules(rules.size_max_bytes, allowed))
    if isinstance(refusal, OverQuota):
        currency = control.settings.money.currency
        unless_refused(storage_fees.balance_missing(refusal.room, refusal.wanted_bytes, balance_uc, rules, currency))
        raise RouteRefused(refusal.refusal, sentence=refusal.sentence)
    unless_refused(refusal)


async def _finished_artefact(control: Control, upload: Upload) -> UUID:
    """The artefact, if another request has just finished the upload."""
    async with control.route_database.connection() as connection:
        finished = await uploads.get(connection, upload.id)
    if finished is None or finished.artefact_id is None:
        raise RouteRefused(UploadRefusal.UNKNOWN_UPLOAD)
    return finished.artefact_id


async def _chunks(control: Control, upload: Upload, offset: int, request: Request) -> AsyncIterator[memoryview]:
    """The bytes that arrive. Ends early if the connection breaks: what arrived is kept."""
    touched_at = control.clock.now()
    body: UploadBody = request.scope["state"][BODY]
    async for piece in body.pieces(offset):
        yield piece
        now = control.clock.now()
        if now - touched_at > _keep_us(control) // _TOUCH_PART:
            touched_at = now
            await _touch(control, upload)


async def _touch(control: Control, upload: Upload) -> None:
    now = control.clock.now()
    async with control.route_database.connection() as connection:
        await uploads.touch(connection, upload.id, expires_at(now, _keep_us(control)), now)


def _announced(request: Request) -> int:
    """How many bytes a request announces; a body without a length is counted as it arrives."""
    announced = request.headers.get("content-length", "0")
    return int(announced) if announced.isdigit() else 0


def _keep_us(control: Control) -> int:
    return int(control.settings.artefacts.upload_keep_s * SECOND)
