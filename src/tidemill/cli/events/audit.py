"""`tidemill audit`: the trail of every act that security depends on. Verifying needs a database, or only a file."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from tidemill.cli.client.local_pool import connected, database_urls, load_configuration
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, print_table, report
from tidemill.core.clock import Instant, as_datetime, as_instant
from tidemill.core.events.trail import NO_ACTS, Act, Damage, Flaw, TrailTip, TrailVerifier
from tidemill.core.events.trail_lines import act_of, line_of, tip_of
from tidemill.host.standard_error import say
from tidemill.store.events import tips_file, trail
from tidemill.store.query import Connection

app = CommandGroup("The audit trail of this machine's pool.")

T = TypeVar("T")

Tips = Annotated[
    list[str] | None, typer.Option("--head", metavar="NUMBER:SHA256", help="A head you kept; it must be in the trail.")
]
TipsFile = Annotated[
    Path | None, typer.Option("--heads", dir_okay=False, exists=True, help="A file of heads you kept, one a line.")
]


@app.command("head")
def show_tip(as_json: AsJson = False) -> None:
    """Where the trail ends now. Keep it where nobody who runs the pool can change it."""
    tip = _read(trail.tip)
    if as_json:
        at = None if tip.at is None else as_datetime(tip.at).isoformat()
        print_json({"number": tip.number, "sha256": tip.sha256.hex(), "at": at})
    else:
        print_line(str(tip))


@app.command()
def show(
    kind: Annotated[str | None, typer.Option(help="Only acts of this kind, such as pool.switch_thrown.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only acts about this.")] = None,
    before: Annotated[int | None, typer.Option(min=1, max=trail.NUMBER_MAX, help="Only acts before this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the acts of the trail, newest first."""
    acts = _read(lambda c: trail.listed(c, kind=kind, subject=subject, before=before, limit=limit))
    if as_json:
        for act in acts:
            print_line(line_of(act))
    else:
        print_table(("number", "at", "kind", "subject", "body"), [_row(act) for act in acts])


@app.command()
def export(
    since: Annotated[datetime | None, typer.Option(help="Only from this time on (UTC).")] = None,
    until: Annotated[datetime | None, typer.Option(help="Only before this time (UTC).")] = None,
    file: Annotated[Path | None, typer.Option(help="Where to; standard output if left out.")] = None,
) -> None:
    """Write the trail as JSON lines, which `tidemill audit verify --file` checks without any database."""
    if file and file.exists():
        raise CommandRefused(f"{file} is there already: name a file that is not.")
    if file is None:
        _read(lambda c: _export(c, since, until, print_line))
        return
    count = _read(lambda c: _export_to(file, c, since, until))
    say(f"{count} acts are in {file}.")


@app.command()
def verify(
    tip: Tips = None,
    tips_path: TipsFile = None,
    file: Annotated[
        Path | None,
        typer.Option(dir_okay=False, exists=True, help="Check an exported file instead of the pool's own trail."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the whole trail, and compare it with every head that was published or kept.

    Tells the first act that was edited, removed or moved, and a tail that was cut. Then the answer is no."""
    demanded = [*map(_tip, tip or ()), *(_tips(tips_path) if tips_path else ())]
    check = asyncio.run(_verify_file(file, demanded)) if file else _read(lambda c: _verify_pool(c, demanded))
    verification, flaw = check
    if flaw:
        if as_json:
            print_json({"whole": False, "damage": flaw.damage, "number": flaw.number, "detail": flaw.sentence})
        raise CommandRefused(f"Act {flaw.number}, {flaw.damage}. {flaw.sentence}")
    fields = {"whole": True, "head": str(verification.head), "lost_heads": [str(tip) for tip in verification.lost]}
    report(_praise(verification), fields, as_json=as_json)


async def _verify_pool(connection: Connection, demanded: Sequence[TrailTip]) -> tuple[TrailVerifier, Flaw | None]:
    """Read the tips before the trail, so that a tip published meanwhile is in the trail that is read."""
    file = load_configuration().settings.home / tips_file.NAME
    expected = [*(await trail.published_tips(connection)), *(_tips(file, torn=True) if file.exists() else ())]
    verification = TrailVerifier(demanded=demanded, expected=expected)
    flaw = await _first_flaw(verification, trail.acts(connection))
    return verification, flaw or await trail.difference(connection)


async def _verify_file(file: Path, demanded: Sequence[TrailTip]) -> tuple[TrailVerifier, Flaw | None]:
    verification = TrailVerifier(demanded=demanded, partial=True)
    with file.open("rb") as lines:
        return verification, await _first_flaw(verification, _acts_in(lines))


async def _first_flaw(verification: TrailVerifier, acts: "AsyncIterator[Act | Flaw]") -> Flaw | None:
    async for act in acts:
        if flaw := act if isinstance(act, Flaw) else verification.take(act):
            return flaw
    return verification.finish()


async def _acts_in(lines: Iterable[bytes]) -> "AsyncIterator[Act | Flaw]":
    for number, line in enumerate(lines, start=1):
        act = act_of(line.decode("ascii", errors="replace").removesuffix("\n"))
        yield act or Flaw(Damage.EDITED, number, f"Line {number} of the file is no act as it was exported.")


async def _export(
    connection: Connection, since: datetime | None, until: datetime | None, write: Callable[[str], object]
) -> int:
    first, last = 1, trail.NUMBER_MAX
    if since or until:
        latest = as_instant(datetime.max.replace(tzinfo=UTC))
        first, last = await trail.bounds(
            connection, _utc(since) if since else Instant(0), _utc(until) if until else latest
        )
    count = 0
    async for act in trail.acts(connection, after=first - 1, until=last):
        write(line_of(act))
        count += 1
    return count


async def _export_to(file: Path, connection: Connection, since: datetime | None, until: datetime | None) -> int:
    """Write the trail to a new file, which is made only once there is a database to read from."""
    with file.open("x", encoding="ascii") as out:
        return await _export(connection, since, until, lambda line: out.write(line + "\n"))


def _read(question: Callable[[Connection], Awaitable[T]]) -> T:
    """Ask the database itself, which is started for this if the pool is down."""

    async def ask() -> T:
        async with database_urls(load_configuration().settings) as urls, connected(urls.program) as connection:
            return await question(connection)

    return asyncio.run(ask())


def _tip(text: str) -> TrailTip:
    tip = tip_of(text)
    if tip is None:
        raise CommandRefused(f"{text!r} is no head: write it as `tidemill audit head` does, NUMBER:SHA256.")
    return tip


def _tips(file: Path, *, torn: bool = False) -> list[TrailTip]:
    """The tips in a file. In our own file a line may be torn; in a user's file that is a mistake."""
    tips, unreadable_count = tips_file.read_tips(file.read_text("ascii", errors="replace").splitlines())
    if unreadable_count and not torn:
        raise CommandRefused(f"{unreadable_count} lines of {file} are no heads: write one a line, as NUMBER:SHA256.")
    if unreadable_count:
        say(f"{unreadable_count} lines of {file} cannot be read and were left out.")
    return tips


def _praise(verification: TrailVerifier) -> str:
    if verification.head == NO_ACTS:
        return "The trail is empty."
    sentence = f"The trail is whole up to {verification.head}."
    if verification.lost:
        sentence += f" {len(verification.lost)} heads were published before a backup was restored; their acts are gone."
    return sentence


def _utc(at: datetime) -> Instant:
    return as_instant(at.replace(tzinfo=UTC))


def _row(act: Act) -> tuple[str, ...]:
    body = ", ".join(f"{name}: {value}" for name, value in json.loads(act.body).items())
    return str(act.number), f"{as_datetime(act.at):%Y-%m-%d %H:%M:%S}", act.kind, act.subject, body
