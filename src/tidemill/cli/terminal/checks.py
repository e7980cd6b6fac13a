"""Prints the results of checks. A failed one makes the command answer no."""

from collections.abc import Sequence

from tidemill.cli.terminal.output import CommandRefused, print_json, print_table
from tidemill.store.checks import DatabaseCheck


def print_checks(checks: Sequence[DatabaseCheck], *, advice: str, as_json: bool) -> None:
    """Print every check with its result. `advice` says what to do if one has failed."""
    if as_json:
        print_json([{"check": check.name, "ok": check.ok, "detail": check.detail} for check in checks])
    else:
        rows = [(check.name, "ok" if check.ok else "FAILED", check.detail) for check in checks]
        print_table(("check", "result", "detail"), rows)
    if failed := [check.name for check in checks if not check.ok]:
        raise CommandRefused(f"{len(failed)} of {len(checks)} checks failed ({', '.join(failed)}): {advice}")
