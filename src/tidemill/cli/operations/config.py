"""`tidemill config`: every setting, its value, and where it came from."""

from typing import Annotated

import typer

from tidemill.cli.client.local_pool import load_configuration, refuse_elsewhere
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_table
from tidemill.core.settings import SourceKind, rows
from tidemill.host.standard_error import say


def config(
    names: Annotated[list[str] | None, typer.Argument(help="Only settings whose name begins so.")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only those that are not at their default.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show this machine's settings and where each came from."""
    configuration = load_configuration()
    refuse_elsewhere(configuration.settings)
    all_rows = rows(configuration)
    selected = [
        row
        for row in all_rows
        if (not names or row.name.startswith(tuple(names))) and not (changed and row.source.kind is SourceKind.DEFAULT)
    ]
    if names and not any(row.name.startswith(tuple(names)) for row in all_rows):
        raise CommandRefused(f"No setting's name begins with {' or '.join(names)}: `tidemill config` lists them all.")
    if changed and not selected and not as_json:
        say("All of these settings have their defaults.")
    elif as_json:
        fields = ("name", "value", "unit", "meaning")
        print_json(
            [{**{field: getattr(row, field) for field in fields}, "source": str(row.source)} for row in selected]
        )
    else:
        columns = ("setting", "value", "from", "meaning")
        print_table(columns, [(row.name, row.value, str(row.source), row.meaning) for row in selected])
