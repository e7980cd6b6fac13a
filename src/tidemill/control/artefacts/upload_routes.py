"""Resumable uploads, as tus 1.0 has them: core, creation, creation-with-upload, checksum, expiration, termination.

An account uploads inputs and models within its quota. A node uploads the results of its attempts, as far as they were
granted. An upload that has got all its bytes is an artefact, whose id is in `Tidemill-Artefact`.
"""

from email.utils import format_datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Request, Response

from tidemill.control.artefacts import upload_requests
from tidemill.control.context import CallerPart, ControlPart
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.core.accounts.roles import Credential
from tidemill.core.artefacts.metadata import read_metadata, read_number
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.artefacts.uploads import CHECKSUMS, Checksum, Upload, read_checksum
from tidemill.core.clock import as_datetime
from tidemill.serving.large_bodies import UPLOADS

VERSION = "1.0.0"
_EXTENSIONS = "creation,creation-with-upload,checksum,expiration,termination"
_MEDIA_TYPE = "application/offset+octet-stream"


async def _speaks_tus(tus_resumable: Annotated[str | None, Header(description=VERSION)] = None) -> None:
    if tus_resumable != VERSION:
        raise RouteRefused(UploadRefusal.TUS_VERSION_WRONG)


async def _named(upload_id: UUID, tus_resumable: Annotated[str | None, Header(description=VERSION)] = None) -> UUID:
    """The id of the upload. A malformed id is refused before a wrong version."""
    await _speaks_tus(tus_resumable)
    return upload_id


async def _checksum(
    upload_checksum: Annotated[
        str | None, Header(description="Of this request's bytes: `sha1` or `sha256`, a space, and Base64.")
    ] = None,
) -> Checksum | None:
    return None if upload_checksum is None else unless_refused(read_checksum(upload_checksum))


router = APIRouter(prefix=UPLOADS, tags=["artefacts"], route_class=GuardedRoute)

NamedPart = Annotated[UUID, Depends(_named)]
ChecksumPart = Annotated[Checksum | None, Depends(_checksum)]


@router.options("", status_code=204, response_class=Response, responses=documented(429))
async def ask(control: ControlPart) -> Response:
    """What of tus is understood here."""
    headers = {
        "Tus-Extension": _EXTENSIONS,
        "Tus-Max-Size": str(control.settings.artefacts.size_max_bytes),
        "Tus-Checksum-Algorithm": ",".join(CHECKSUMS),
    }
    return Response(status_code=204, headers=headers)


@router.post(
    "",
    status_code=201,
    response_class=Response,
    responses=documented(400, 403, 409, 412, 413, 415, 422, 423, 460),
    dependencies=[Depends(_speaks_tus)],
)
async def begin(
    request: Request,
    control: ControlPart,
    caller: CallerPart,
    checksum: ChecksumPart,
    upload_length: Annotated[str | None, Header(description="The length of the whole in bytes.")] = None,
    upload_metadata: Annotated[
        str, Header(description="`name`, `purpose` (input or model), `sha256`; a node's `attempt`.")
    ] = "",
) -> Response:
    """Begin an upload; bytes may come with it."""
    by_node = caller.credential is Credential.NODE
    description = unless_refused(read_metadata(upload_metadata, by_node=by_node))
    length_bytes = read_number(upload_length)
    if length_bytes is None:
        raise RouteRefused(UploadRefusal.UPLOAD_LENGTH_MALFORMED)
    brings = _brings_bytes(request)
    upload = await upload_requests.begin(control, caller, description, length_bytes)
    headers = {"Location": f"{UPLOADS}/{upload.id}"}
    if not brings and length_bytes:
        return _answer(201, upload, 0, None, headers)
    return _answer(201, upload, *await upload_requests.receive(control, upload, 0, request, checksum), headers)


@router.head("/{upload_id}", response_class=Response, responses=documented(404, 410, 412, 422))
async def look(upload_id: NamedPart, control: ControlPart, caller: CallerPart) -> Response:
    """Where an upload stands."""
    upload = await upload_requests.of_caller(control, upload_id, caller)
    return _answer(
        200, upload, *await upload_requests.standing(control, upload), {"Upload-Length": str(upload.length_bytes)}
    )


@router.patch(
    "/{upload_id}",
    status_code=204,
    response_class=Response,
    responses=documented(400, 404, 409, 410, 412, 413, 415, 422, 423, 460),
)
async def add(
    upload_id: NamedPart,
    request: Request,
    control: ControlPart,
    caller: CallerPart,
    checksum: ChecksumPart,
    upload_offset: Annotated[str | None, Header(description="Where the upload stands.")] = None,
) -> Response:
    """Add bytes where the upload stands. What came is kept, also if the connection breaks."""
    offset = read_number(upload_offset)
    if request.headers.get("content-type") != _MEDIA_TYPE:
        raise RouteRefused(UploadRefusal.UPLOAD_MEDIA_TYPE_WRONG)
    if offset is None:
        raise RouteRefused(UploadRefusal.UPLOAD_OFFSET_MALFORMED)
    upload = await upload_requests.of_caller(control, upload_id, caller)
    return _answer(204, upload, *await upload_requests.receive(control, upload, offset, request, checksum), {})


@router.delete("/{upload_id}", status_code=204, responses=documented(404, 410, 412, 422))
async def end(upload_id: NamedPart, control: ControlPart, caller: CallerPart) -> None:
    """End an upload. What it has become, if it is finished, stays."""
    await upload_requests.end(control, await upload_requests.of_caller(control, upload_id, caller))


def _brings_bytes(request: Request) -> bool:
    """Whether a request that begins an upload has bytes of it, too."""
    if request.headers.get("content-type") == _MEDIA_TYPE:
        return True
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise RouteRefused(UploadRefusal.UPLOAD_MEDIA_TYPE_WRONG)
    return False


def _answer(status: int, upload: Upload, offset: int, artefact_id: UUID | None, headers: dict[str, str]) -> Response:
    expires = format_datetime(as_datetime(upload.expires_at), usegmt=True)
    answer_headers = {**headers, "Upload-Offset": str(offset), "Upload-Expires": expires}
    if artefact_id is not None:
        answer_headers["Tidemill-Artefact"] = str(artefact_id)
    return Response(status_code=status, headers=answer_headers)
