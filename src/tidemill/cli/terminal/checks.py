"""Printing what a check found; a failed one is an answer of no."""

from collections.abc import Sequence

from tidemill.cli.terminal.output import CommandRefused, print_json, print_table
from tidemill.store.checks import DatabaseCheck


def print_checks(found: Sequence[DatabaseCheck], *, advice: str, as_json: bool) -> None:
    """Every check with its result. `advice` says what to do when one has failed."""
    if as_json:
        print_json([{"check": one.name, "ok": one.ok, "detail": one.detail} for one in found])
    else:
        rows = [(one.name, "ok" if one.ok else "FAILED", one.detail) for one in found]
        print_table(("check", "result", "detail"), rows)
    if failed := [one.name for one in found if not one.ok]:
        raise CommandRefused(f"{len(failed)} of {len(found)} checks failed ({', '.join(failed)}): {advice}")
