"""`tidemill kinds`: the kinds of work, their parameters, and for each an example that can be ordered as it stands."""

import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line, print_table
from tidemill.core.jobs.kinds.guide import GUIDES, TRAINING_ABOUT, TRAINING_EXAMPLE

TRAINING = "training"

Schema = Mapping[str, Any]


def kinds(
    kind: Annotated[str | None, typer.Argument(metavar="KIND", help="Show this kind.")] = None,
    *,
    example: Annotated[bool, typer.Option("--example", help="Print its example, and nothing else.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of job files, from which editors complete them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The kinds of work, their parameters, and an example each."""
    if kind is not None and kind not in _ABOUT:
        raise CommandRefused(f"There is no kind {kind!r}: the kinds are {', '.join(_ABOUT)}.")
    if schema:
        print_json(_schema(kind))
    elif kind is None:
        _print_all(as_json=as_json)
    elif example:
        sys.stdout.write(_EXAMPLES[kind])
    elif as_json:
        print_json({"kind": kind, "about": _ABOUT[kind], "schema": _schema(kind), "example": _EXAMPLES[kind]})
    else:
        _print_one(kind)


_ABOUT = {**{name: guide.about for name, guide in GUIDES.items()}, TRAINING: TRAINING_ABOUT}
_EXAMPLES = {**{name: guide.example for name, guide in GUIDES.items()}, TRAINING: TRAINING_EXAMPLE}


def _schema(kind: str | None) -> Schema:
    from tidemill.core.jobs.quotes.order_schema import job_file_schema, order_schemas

    return job_file_schema() if kind is None else order_schemas()[kind]


def _print_all(*, as_json: bool) -> None:
    if as_json:
        print_json([{"kind": name, "about": about} for name, about in _ABOUT.items()])
        return
    print_table(("kind", "what"), list(_ABOUT.items()))
    print_line("")
    print_line("`tidemill kinds script` shows the parameters of one, and an example.")


def _print_one(kind: str) -> None:
    schema = _schema(kind)
    print_line(f"{kind}: {_ABOUT[kind]}")
    if parameters := schema["properties"].get("parameters"):
        print_line("")
        print_table(("parameter", "may be", "usually", "meaning"), list(_rows(parameters)))
    print_line("")
    fields = {**schema, "properties": {name: of for name, of in schema["properties"].items() if name not in _OWN}}
    print_table(("field", "meaning"), [(name, meaning) for name, _, _, meaning in _rows(fields)])
    print_line("")
    print_line(f"An example: `tidemill kinds {kind} --example > job.yaml && tidemill jobs submit job.yaml`")
    print_line("")
    sys.stdout.write(_EXAMPLES[kind])


_OWN = ("kind", "parameters")


def _rows(schema: Schema) -> Iterator[tuple[str, str, str, str]]:
    needed = schema.get("required", ())
    for name, of in schema["properties"].items():
        usual = "must be there" if name in needed else str(of.get("default") or "")
        yield name, _may_be(of), usual, of.get("description", "")


def _may_be(of: Schema) -> str:
    """What a value may be, in a few words."""
    if "enum" in of:
        return ", ".join(of["enum"])
    kind = of.get("type")
    if kind == "integer":
        return f"{of['minimum']:,} to {of['maximum']:,}"
    if kind == "array":
        return f"up to {of['maxItems']}"
    return {"string": "text", "boolean": "true, false", "object": "object"}.get(str(kind), "")
