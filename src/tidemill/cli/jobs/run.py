"""`tidemill run`: a whole job in one line. It orders, shows the price, confirms, waits and fetches the result.

It confirms by itself if the highest possible cost is within --max-budget, and only if some online node can do the job.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.artefacts.artefacts import UploadPurpose, upload_file
from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.client.pool_caller import PoolCaller, pool_caller
from tidemill.cli.jobs.job_files import read_job
from tidemill.cli.jobs.job_progress import say_end, wait_until_over
from tidemill.cli.jobs.job_view import say_quote
from tidemill.cli.jobs.job_watch import confirm_job, keep_results, order_job, paid_of, results_of
from tidemill.cli.jobs.node_options import told_with_options
from tidemill.cli.jobs.order_options import OrderOptions, with_options
from tidemill.cli.jobs.private_results import made_private
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import CommandRefused, Exit, print_json
from tidemill.core.ids import short_id
from tidemill.core.jobs.kinds.embed import INLINE_MAX, TEXT_MAX_BYTES
from tidemill.core.jobs.kinds.matmul import SIDE_MAX, Element
from tidemill.core.jobs.kinds.script import PROGRAM_MAX_BYTES
from tidemill.host.standard_error import say

app = CommandGroup("Order a job, wait for it and fetch its result, in one line.")

Seconds = Annotated[int, typer.Option(min=1, help="How many seconds it may take; then it is stopped.")]
Memory = Annotated[int, typer.Option(min=16, help="Its memory, in MiB.")]
InputFiles = Annotated[list[Path] | None, typer.Option("--input", help="A file that it finds below /inputs.")]
Side = Annotated[int, typer.Option(min=1, max=SIDE_MAX, help="A side of the matrices: m × k times k × n.")]


@app.command()
@with_options
def matmul(  # each is an option of the command
    *,
    m: Side = 1024,
    n: Side = 1024,
    k: Side = 1024,
    element: Annotated[Element, typer.Option(help="What the matrices hold.")] = Element.INT8,
    seed: Annotated[int, typer.Option(min=0, help="From which the matrices are drawn.")] = 1,
    gpu: Annotated[bool, typer.Option("--gpu", help="On a GPU.")] = False,
    options: OrderOptions,
) -> None:
    """Multiply two matrices that are drawn from a seed."""
    sizes: dict[str, Any] = {"m": m, "n": n, "k": k, "element": element.value, "seed": seed, "devices": int(gpu)}
    _run("matmul", sizes, {}, options)


@app.command()
@with_options
def embed(  # each is an option of the command
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT...", help="The texts themselves.")] = None,
    *,
    file: Annotated[Path | None, typer.Option(help="A file with one text a line instead.")] = None,
    options: OrderOptions,
) -> None:
    """Embed texts: 384 numbers for each."""
    all_texts = _texts(file) if file else list(texts or ())
    if not all_texts or len(all_texts) > INLINE_MAX:
        raise CommandRefused(f"Give 1 to {INLINE_MAX} texts; more of them go into a job file, as the input `texts`.")
    _run("embed", {"texts": all_texts}, {}, options)


@app.command()
@with_options
def script(  # each is an option of the command
    program: Annotated[Path, typer.Argument(metavar="PROGRAM", help="A Python program; it writes below out/.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="ARGUMENT...", help="What it is given.")] = None,
    *,
    seconds: Seconds = 60,
    memory: Memory = 512,
    inputs: InputFiles = None,
    options: OrderOptions,
) -> None:
    """Run a Python program: what it prints is shown, and what it writes below out/ is its result.

    The same input must give the same bytes, since another node runs it again to check. With --tasks each task finds its
    number where {task} stands among the arguments. After -- come arguments that begin with a dash.
    """
    text = _text(program, PROGRAM_MAX_BYTES)
    parameters = {"seconds": seconds, "program": text, "arguments": list(arguments or ()), "memory_mib": memory}
    _run("script", parameters, _uploaded(inputs), options)


@app.command()
@with_options
def render(  # each is an option of the command
    scene: Annotated[Path, typer.Argument(metavar="SCENE", help="A scene, in YAML or JSON.")],
    *,
    width: Annotated[int, typer.Option(min=1, max=32_768, help="Of the picture, in pixels.")] = 640,
    height: Annotated[int, typer.Option(min=1, max=32_768, help="Of the picture, in pixels.")] = 480,
    samples: Annotated[int, typer.Option(min=1, max=4096, help="Rays a pixel.")] = 4,
    options: OrderOptions,
) -> None:
    """Render a picture, in bands that fit together."""
    parameters = {"scene": read_job(scene), "width": width, "height": height, "samples": samples}
    _run("render", parameters, {}, options)


@app.command(context_settings={"allow_interspersed_args": False})
@with_options
def container(  # noqa: PLR0913  # each is an option of the command
    image: Annotated[
        str, typer.Argument(metavar="IMAGE", help="A name in a registry, or a tarball of `docker export`.")
    ],
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="What it runs, with its arguments.")],
    *,
    seconds: Seconds = 60,
    memory: Memory = 1024,
    cores: Annotated[int, typer.Option(min=1, help="Its cores.")] = 1,
    variables: Annotated[list[str] | None, typer.Option("--env", help="NAME=VALUE for its environment.")] = None,
    inputs: InputFiles = None,
    options: OrderOptions,
) -> None:
    """Run a command in a container image. Options come before IMAGE; what follows it is the command's own."""
    parameters: dict[str, Any] = {"seconds": seconds, "command": command, "memory_mib": memory, "cores": cores}
    parameters |= {"environment": [_variable(text) for text in variables or ()]}
    input_ids = _uploaded(inputs)
    if Path(image).is_file():
        input_ids["image"] = upload_file(Path(image), Path(image).name, UploadPurpose.INPUT)["id"]
    else:
        parameters["image"] = image
    _run("container", parameters, input_ids, options)


def _run(kind: str, parameters: dict[str, Any], inputs: dict[str, str], options: OrderOptions) -> None:
    body: dict[str, Any] = {"kind": kind, "parameters": parameters, "inputs": inputs, **options.order_fields()}
    caller = pool_caller()
    try:
        job = order_job(caller, made_private(body) if options.private else body)
    except PoolRefused as refused:
        raise (CommandRefused(told_with_options(refused.errors)) if refused.errors else refused) from None
    say_quote(job, explain=options.explain)
    _refuse_hopeless(job)
    job = confirm_job(caller, job)
    say(f"Confirmed as job {short_id(job['id'])}.")
    job = wait_until_over(caller, job, to_stderr=options.as_json)
    finish_job(caller, job, options.out, as_json=options.as_json)


def _refuse_hopeless(job: dict[str, Any]) -> None:
    """Confirm nothing that no node could do, or that nobody could check, today."""
    quote = job["quote"]
    if not quote["can_confirm"] or (quote["nodes"] and quote["can_be_checked"]):
        return
    why = "`tidemill top` shows what there is" if not quote["nodes"] else "the result would wait, unpaid"
    raise CommandRefused(
        f"Nothing is held: {why}. `tidemill jobs confirm {short_id(job['id'])} --wait` confirms it all the same."
    )


def finish_job(caller: PoolCaller, job: dict[str, Any], out: Path | None, *, as_json: bool) -> None:
    """Show what came of a job that is over, and fetch its files; the exit code tells whether it is completed."""
    results = results_of(caller, job["id"])
    files = keep_results(caller, results, out) if out else None
    if as_json:
        print_json({"job": job, "results": results, "files": [str(file) for file in files or ()]})
    else:
        say_end(job, results, paid_of(caller, job["id"]), files)
    if job["state"] != "completed":
        raise typer.Exit(Exit.NO)


def _uploaded(files: list[Path] | None) -> dict[str, str]:
    return {file.name: upload_file(file, file.name, UploadPurpose.INPUT)["id"] for file in files or ()}


def _variable(text: str) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandRefused(f"--env {text} has no value: write it as NAME=VALUE.")
    return {"name": name, "value": value}


def _texts(file: Path) -> list[str]:
    return [line for line in _text(file, INLINE_MAX * TEXT_MAX_BYTES).splitlines() if line.strip()]


def _text(file: Path, most_bytes: int) -> str:
    if not file.is_file():
        raise CommandRefused(f"{file} is no file: give one that can be read.")
    if file.stat().st_size > most_bytes:
        raise CommandRefused(f"{file} has more than {most_bytes:,} bytes: upload it, and order with a job file.")
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        raise CommandRefused(f"{file} is no text in UTF-8.") from None
