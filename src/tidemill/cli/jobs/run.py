"""`tidemill run`: a whole job in one line. It orders, shows the price, confirms, waits and fetches the result.

It confirms by itself if the highest possible cost is within --max-budget, and only if some online node can do the job.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.artefacts.artefacts import UploadPurpose, upload_file
from tidemill.cli.client.pool_caller import PoolCaller, pool_caller
from tidemill.cli.jobs.job_files import read_job
from tidemill.cli.jobs.job_view import print_results, say_plan
from tidemill.cli.jobs.job_watch import confirm_job, keep_results, order_job, paid_of, results_of, wait_until_over
from tidemill.cli.jobs.order_options import OrderOptions, with_options
from tidemill.cli.jobs.private_results import made_private
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import CommandRefused, Exit, print_json
from tidemill.core.jobs.kinds.embed import INLINE_MAX, TEXT_MAX_BYTES
from tidemill.core.jobs.kinds.matmul import SIDE_MAX, Element
from tidemill.core.jobs.kinds.script import PROGRAM_MAX_BYTES
from tidemill.host.standard_error import say

app = CommandGroup("Order a job, wait for it and fetch its result, in one line.")

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
    seconds: Annotated[int, typer.Option(min=1, help="How long it may take.")] = 60,
    memory: Annotated[int, typer.Option(min=16, help="Its memory, in MiB.")] = 512,
    inputs: Annotated[list[Path] | None, typer.Option("--input", help="A file that it finds below /inputs.")] = None,
    options: OrderOptions,
) -> None:
    """Run a Python program. With --tasks each finds its number where {task} stands in its arguments."""
    text = _text(program, PROGRAM_MAX_BYTES)
    parameters = {"seconds": seconds, "program": text, "arguments": list(arguments or ()), "memory_mib": memory}
    input_ids = {file.name: upload_file(file, file.name, UploadPurpose.INPUT)["id"] for file in inputs or ()}
    _run("script", parameters, input_ids, options)


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


def _run(kind: str, parameters: dict[str, Any], inputs: dict[str, str], options: OrderOptions) -> None:
    body: dict[str, Any] = {"kind": kind, "parameters": parameters, "inputs": inputs, **options.order_fields()}
    caller = pool_caller()
    job = order_job(caller, made_private(body) if options.private else body)
    say_plan(job)
    if job["quote"]["can_confirm"] and not job["quote"]["nodes"]:
        raise CommandRefused(
            "No node that is online can do this, so nothing is held: `tidemill nodes show` tells of each node why. "
            f"`tidemill jobs confirm {job['id']} --wait` has it wait for one that can."
        )
    confirm_job(caller, job)
    _show_outcome(caller, wait_until_over(caller, job["id"]), options)


def _show_outcome(caller: PoolCaller, job: dict[str, Any], options: OrderOptions) -> None:
    """Show the result, its verdict and its price."""
    results = results_of(caller, job["id"])
    files = keep_results(caller, results, options.out) if options.out else []
    if options.as_json:
        print_json({"job": job, "results": results, "files": [str(file) for file in files]})
    else:
        print_results(results)
        for node, paid in paid_of(caller, job["id"]).items():
            say(f"{node} was paid {paid} {job['currency']}s.")
        say(f"The job {job['id']} is {job['state']}, and cost {job['spent']} {job['currency']}s.")
        for file in files:
            say(f"{file} is there.")
        if options.out and not files:
            say("The result has no files. A program leaves them below out/.")
    if job["state"] != "completed":
        raise typer.Exit(Exit.NO)


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
