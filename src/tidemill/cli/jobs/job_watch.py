"""Follows a job from its order to its end: shows the plan, asks, shows progress, and fetches the results."""

import base64
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import typer

from tidemill.cli.artefacts.artefact_downloads import download
from tidemill.cli.client.pool_caller import PoolCaller
from tidemill.cli.client.references import at
from tidemill.cli.jobs.job_output import output_feed
from tidemill.cli.jobs.job_view import say_quote
from tidemill.cli.jobs.private_results import Opener, opener_of
from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.ids import short_id
from tidemill.core.jobs.result_archives import read_archive
from tidemill.core.jobs.results import PIECE_BYTES
from tidemill.core.refusals import Refusal

ROUTE = "/marketplace/jobs"
POLL_S = 1.0
RESULTS_MAX = 100_000
PIECES_MAX = 1_000_000
UNPACKED_MAX_BYTES = 64 * 1024 * 1024
"""A larger archive is left as it is: any tar reads it."""


def order_job(caller: PoolCaller, body: dict[str, Any]) -> dict[str, Any]:
    """Order a new job; returns it with its quote."""
    job: dict[str, Any] = caller.ask("POST", ROUTE, body)
    return job


def confirm_job(caller: PoolCaller, job: dict[str, Any]) -> dict[str, Any]:
    """Confirm at the shown price, and at no other."""
    quote = job["quote"]
    if not quote["can_confirm"]:
        raise CommandRefused(f"{quote['why_not']} The order is kept as job {short_id(job['id'])}.")
    confirmed: dict[str, Any] = caller.ask("POST", f"{ROUTE}/{job['id']}/confirm", {"at_most": quote["high"]})
    return confirmed


def ask_and_confirm(caller: PoolCaller, job: dict[str, Any], *, yes: bool, explain: bool = False) -> dict[str, Any]:
    """Show the quote, ask, and confirm."""
    say_quote(job, explain=explain)
    if job["quote"]["can_confirm"] and not yes:
        _ask(job)
    return confirm_job(caller, job)


def job_id_of(caller: PoolCaller, reference: str) -> str:
    """The whole id of a job, for what asks more than once: meanwhile `last` may mean another."""
    return str(caller.ask("GET", at(ROUTE, reference))["id"])


def results_of(caller: PoolCaller, job_id: str) -> list[dict[str, Any]]:
    return caller.listed(at(ROUTE, job_id, "result"), {}, RESULTS_MAX)


def paid_of(caller: PoolCaller, job_id: str) -> dict[str, Decimal]:
    """What each node was paid, by its name."""
    paid: dict[str, Decimal] = {}
    for attempt in caller.listed(f"{ROUTE}/{job_id}/resources", {}, RESULTS_MAX):
        if amount := Decimal(attempt["paid"]):
            paid[attempt["node_name"]] = paid.get(attempt["node_name"], Decimal(0)) + amount
    return paid


def keep_results(caller: PoolCaller, results: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Put the results into a folder, those of each task into a folder of its own. Existing files stay."""
    folder.mkdir(parents=True, exist_ok=True)
    return [file for result in results for file in _keep_result(caller, result, folder)]


def output_of(caller: PoolCaller, job_id: str, *, follow: bool) -> Iterator[dict[str, Any]]:
    """What a job has printed; with `follow` until it is over, or until Ctrl-C."""
    path = at(ROUTE, job_id, "logs")
    if not follow:
        yield from caller.listed(path, {}, PIECES_MAX)
        return
    with suppress(KeyboardInterrupt), output_feed(caller, path) as feed:
        while not feed.is_over:
            if piece := feed.next(POLL_S):
                yield piece


def _ask(job: dict[str, Any]) -> None:
    if not sys.stdin.isatty():
        raise CommandRefused(
            f"Nobody is here to ask: add --yes, or run `tidemill jobs confirm {short_id(job['id'])} --yes`."
        )
    if not typer.confirm(f"Confirm, and hold {job['quote']['high']} {job['currency']}s?", err=True):
        raise CommandRefused(
            f"Nothing is held. The quote can be confirmed later: `tidemill jobs confirm {short_id(job['id'])}`."
        )


def _keep_result(caller: PoolCaller, result: dict[str, Any], folder: Path) -> list[Path]:
    name = f"task-{result['task']}"
    if result["artefact_id"]:
        return _fetch_result(caller, result, folder / f"{name}.tar", folder / name)
    if not result["inline"]:
        return []
    content = base64.b64decode(result["inline"])
    plain = b"".join(opener_of(result).pieces([content])) if result["envelopes"] else content
    return _unpack(plain, folder / name)


def _fetch_result(caller: PoolCaller, result: dict[str, Any], archive: Path, into: Path) -> list[Path]:
    """Fetch an uploaded result: its files, or the whole archive if that is large."""
    opener = opener_of(result) if result["envelopes"] else None
    artefact = caller.ask("GET", f"/artefacts/{result['artefact_id']}")
    fetched = archive if opener is None else archive.with_suffix(".sealed")
    download(caller, artefact, fetched, lambda _: None)
    if opener is not None:
        _open(fetched, opener, archive)
    if archive.stat().st_size > UNPACKED_MAX_BYTES:
        return [archive]
    unpacked = _unpack(archive.read_bytes(), into)
    archive.unlink()
    return unpacked


def _open(sealed: Path, opener: Opener, archive: Path) -> None:
    """Open a sealed file into another, which appears only if all of it could be opened."""
    draft = archive.with_suffix(".draft")
    try:
        with sealed.open("rb") as chunks, draft.open("wb") as out:
            for piece in opener.pieces(iter(lambda: chunks.read(PIECE_BYTES), b"")):
                out.write(piece)
        os.link(draft, archive)
    except FileExistsError:
        raise _already_there(archive) from None
    finally:
        draft.unlink(missing_ok=True)
        sealed.unlink()


def _unpack(archived: bytes, folder: Path) -> list[Path]:
    files = read_archive(archived)
    if isinstance(files, Refusal):
        raise CommandRefused(files.sentence)
    return [_write(folder / _inside(path), body) for path, body in files.items()]


def _inside(path: PurePosixPath) -> Path:
    """Assert that a result's file stays in its folder: reading an archive refuses all other names."""
    assert not path.is_absolute()
    assert ".." not in path.parts
    return Path(path)


def _write(target: Path, content: bytes) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("xb") as opened:
            opened.write(content)
    except FileExistsError:
        raise _already_there(target) from None
    return target


def _already_there(target: Path) -> CommandRefused:
    return CommandRefused(f"{target} is there already: move it away, or choose another folder with --out.")
