"""What commands take where an id is meant, and the addresses that are made of it. The pool finds out what it means."""

from typing import Annotated
from urllib.parse import quote

import typer

from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.references import ReferenceRefusal, is_addressable

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
