"""What commands take where an id is meant, and the addresses that are made of it. The pool finds out what it means."""

from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote
from uuid import UUID

import typer

from tidemill.cli.client.http_calls import sentence_of
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.references import (
    FromLast,
    GivenName,
    IdEnd,
    ObjectKind,
    Reference,
    ReferenceObjection,
    ReferenceRefusal,
    Referent,
    choose,
    is_addressable,
    read_reference,
)
from tidemill.core.refusals import Refusal

BY_ID = "its id or the last 8 digits of it, or `last`, `last-1` and so on"
BY_NAME = "its name, its id or the last 8 digits of it, or `last`, `last-1` and so on"

JobReference = Annotated[str, typer.Argument(metavar="JOB", help=f"The job: {BY_NAME}.")]
NodeReference = Annotated[str, typer.Argument(metavar="NODE", help=f"The node: {BY_NAME}.")]
ArtefactReference = Annotated[str, typer.Argument(metavar="ARTEFACT", help=f"The artefact: {BY_NAME}.")]
OwnerOption = Annotated[
    str | None, typer.Option(help="Only those of this account, by its address or its id; for operators.")
]


def at(route: str, reference: str, *more: str) -> str:
    """The address of an object, or of something of it. What would change the address is no reference."""
    if not reference or not is_addressable(reference):
        raise CommandRefused(ReferenceRefusal.REFERENCE_MALFORMED.sentence)
    return "/".join((route, quote(reference, safe=""), *more))


def chosen(kind: ObjectKind, listed: Sequence[dict[str, Any]], text: str, unknown: Refusal) -> dict[str, Any]:
    """The one of a whole list, newest first, that a text means: for lists that are short and shown anyway."""
    reference = read_reference(text, kind)
    if isinstance(reference, Refusal):
        raise CommandRefused(reference.sentence)
    found = {item["id"]: item for place, item in enumerate(listed) if _means(reference, item, place)}
    meant = choose(kind, reference, [_referent(item) for item in found.values()])
    if isinstance(meant, ReferenceObjection):
        raise CommandRefused(meant.sentence)
    if meant is None:
        raise CommandRefused(sentence_of(unknown))
    return found[str(meant.id)]


def _referent(item: dict[str, Any]) -> Referent:
    return Referent(UUID(item["id"]), None, item["name"], item.get("prefix", ""))


def _means(reference: Reference, item: dict[str, Any], place: int) -> bool:
    match reference:
        case GivenName(text):
            return bool(item["name"] == text)
        case FromLast(back):
            return place == back
        case IdEnd(digits):
            return UUID(item["id"]).hex.endswith(digits)
        case UUID():
            return bool(item["id"] == str(reference))
