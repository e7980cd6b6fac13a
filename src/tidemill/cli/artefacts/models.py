"""`tidemill models`: the models of the pool. Everybody sees them; operators add and remove them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.artefacts.artefacts import UploadPurpose, upload_file
from tidemill.cli.client.http_calls import moment
from tidemill.cli.client.pool_caller import pool_caller
from tidemill.cli.client.references import BY_NAME, at
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, in_words, print_fields, print_json, print_table, report
from tidemill.core.ids import short_id
from tidemill.core.references import is_addressable
from tidemill.host.standard_error import say

app = CommandGroup("The models of the pool: list, show, add, remove.")

Name = Annotated[str, typer.Argument(metavar="MODEL", help=f"The model: {BY_NAME}.")]

_ROUTE = "/models"


@app.command("list")
def list_models(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 100, as_json: AsJson = False
) -> None:
    """List the models of the pool, by name."""
    models = pool_caller().listed(_ROUTE, {}, limit)
    if as_json:
        print_json(models)
    elif models:
        print_table(("name", "size", "memory", "GPU memory", "licence"), [_row(model) for model in models])
    else:
        say("The pool has no models yet: an operator adds one with `tidemill models add`.")


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a model: where it comes from, its licence, its SHA-256, and what it needs."""
    model = pool_caller().ask("GET", at(_ROUTE, name))
    if as_json:
        print_json(model)
    else:
        _print_model(model)


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it will be called.")],
    what: Annotated[
        str, typer.Argument(metavar="FILE|ARTEFACT", help="Its file, or one that was uploaded as a model.")
    ],
    *,
    source: Annotated[str, typer.Option(help="Where it comes from, in words or as a URL.")],
    licence: Annotated[str, typer.Option(help="Its licence, such as Apache-2.0.")],
    memory: Annotated[int, typer.Option(min=0, help="The memory that a node needs for it, in MiB.")] = 0,
    gpu_memory: Annotated[int, typer.Option(min=0, help="The GPU memory that it needs, in MiB; 0 needs none.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Add a model to the pool, as an operator. An upload that was interrupted goes on when this is run again."""
    needs = {"memory_mib": memory, "gpu_memory_mib": gpu_memory}
    body = {"name": name, "source": source, "licence": licence, "artefact_id": _artefact(what), **needs}
    model = pool_caller().ask("POST", _ROUTE, body)
    report(f"The pool has the model {model['name']} now, with SHA-256 {model['digest']}.", model, as_json=as_json)


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Remove a model from the pool, as an operator. Its artefact stays."""
    model = pool_caller().ask("DELETE", at(_ROUTE, name))
    report(
        f"The model {model['name']} is removed; its artefact {short_id(model['artefact_id'])} stays.",
        model,
        as_json=as_json,
    )


def _artefact(file_or_id: str) -> str:
    """The id of the model's artefact. A file is uploaded first."""
    file = Path(file_or_id)
    if not file.exists() and is_addressable(file_or_id):
        return str(pool_caller().ask("GET", at("/artefacts", file_or_id))["id"])
    artefact_id: str = upload_file(file, file.name, UploadPurpose.MODEL)["id"]
    return artefact_id


def _row(model: dict[str, Any]) -> tuple[str, ...]:
    needs = (f"{model['memory_mib']} MiB", f"{model['gpu_memory_mib']} MiB")
    return model["name"], in_words(model["size_bytes"]), *needs, model["licence"]


def _print_model(model: dict[str, Any]) -> None:
    print_fields(
        {
            "name": model["name"],
            "source": model["source"],
            "licence": model["licence"],
            "size": in_words(model["size_bytes"]),
            "sha256": model["digest"],
            "artefact": model["artefact_id"],
            "memory": f"{model['memory_mib']} MiB",
            "GPU memory": f"{model['gpu_memory_mib']} MiB",
            "added (UTC)": moment(model["added_at"]),
        }
    )
