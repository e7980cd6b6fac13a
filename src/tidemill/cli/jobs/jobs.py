"""`tidemill jobs`: what you order from the pool, from its quote to its result; and, for operators, everybody's."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tidemill.cli.client.http_calls import PoolRefused, moment
from tidemill.cli.client.pool_caller import PoolCaller, pool_caller
from tidemill.cli.client.references import JobReference, OwnerOption, at
from tidemill.cli.jobs import job_watch
from tidemill.cli.jobs.explanation_view import print_why_job
from tidemill.cli.jobs.job_errors import told_with_lines
from tidemill.cli.jobs.job_files import read_job, with_inputs
from tidemill.cli.jobs.job_progress import say_end, wait_until_over
from tidemill.cli.jobs.job_view import (
    cancelled_words,
    print_job,
    print_jobs,
    print_quote,
    print_results,
    say_quote,
    say_why_over,
)
from tidemill.cli.jobs.job_watch import ROUTE, order_job, results_of
from tidemill.cli.jobs.node_options import NodeOptions
from tidemill.cli.jobs.order_options import Explain, OutFolder, Private, with_options
from tidemill.cli.jobs.private_results import made_private
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, Exit, print_json, print_line, report
from tidemill.core.ids import short_id
from tidemill.core.jobs.job import JobState
from tidemill.host.standard_error import say

app = CommandGroup("Jobs: order, quote, confirm, follow, fetch the result.")

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Confirm without asking.")]
Wait = Annotated[bool, typer.Option("--wait", "-w", help="Wait until the job is over, and tell how far it is.")]


@app.command()
@with_options
def submit(  # noqa: PLR0913  # each is an option of the command
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A job file, in YAML or JSON.")],
    *,
    confirm: Annotated[bool, typer.Option("--confirm", help="Show the plan, ask, and confirm.")] = False,
    yes: Yes = False,
    wait: Wait = False,
    private: Private = False,
    explain: Explain = False,
    nodes: NodeOptions,
    as_json: AsJson = False,
) -> None:
    """Order a job from a file. It is quoted; with --confirm or --yes it is confirmed as well.

    Options that choose nodes come before what the file says.
    """
    body, caller = {**read_job(file), **nodes.node_fields()}, pool_caller()
    body = made_private(body) if private else body
    try:
        job = order_job(caller, with_inputs(body, file.parent))
    except PoolRefused as refused:
        raise told_with_lines(file, refused) from None
    if confirm or yes:
        job = job_watch.ask_and_confirm(caller, job, yes=yes, explain=explain)
        if wait:
            _wait(caller, job, as_json=as_json)
            return
    elif not as_json:
        say_quote(job, explain=explain)
        starts = f"Nothing is held yet: `tidemill jobs confirm {short_id(job['id'])}` starts it."
        say(starts if job["quote"]["can_confirm"] else job["quote"]["why_not"])
    if as_json:
        print_json(job)
    else:
        print_job(job)


@app.command()
def quote(job: JobReference, explain: Explain = False, as_json: AsJson = False) -> None:
    """What a job costs; with --explain every line of it, and why. A quote that has expired is made anew."""
    quote_view = pool_caller().ask("GET", at(ROUTE, job, "quote"))
    if as_json:
        print_json(quote_view)
    else:
        print_quote(quote_view, explain=explain)


@app.command()
def confirm(job: JobReference, yes: Yes = False, wait: Wait = False, as_json: AsJson = False) -> None:
    """Confirm a quote: its upper end is held, and the job's tasks wait for nodes."""
    caller = pool_caller()
    job_view = caller.ask("GET", at(ROUTE, job))
    quoted = {**job_view, "quote": caller.ask("GET", at(ROUTE, job_view["id"], "quote"))}
    confirmed = job_watch.ask_and_confirm(caller, quoted, yes=yes)
    if wait:
        _wait(caller, confirmed, as_json=as_json)
        return
    report(
        f"The job is {confirmed['state']}: `tidemill jobs show {job}` tells how far it is.", confirmed, as_json=as_json
    )


@app.command("list")
def list_jobs(
    state: Annotated[JobState | None, typer.Option(help="Only those in this state.")] = None,
    owner: OwnerOption = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List your jobs, newest first; an operator sees everybody's."""
    filters = {name: str(value) for name, value in {"state": state, "owner": owner}.items() if value}
    jobs_found = pool_caller().listed(ROUTE, filters, limit)
    if as_json:
        print_json(jobs_found)
    elif jobs_found:
        print_jobs(jobs_found)
    else:
        say("There are no jobs: `tidemill run matmul` orders one, and so does `tidemill jobs submit FILE`.")


@app.command()
def show(job: JobReference, as_json: AsJson = False) -> None:
    """Show a job: where it is, what it waits for, what it costs and what it has cost."""
    caller = pool_caller()
    job_view = caller.ask("GET", at(ROUTE, job))
    if as_json:
        print_json(job_view)
        return
    print_job(job_view)
    if job_view["state"] in (JobState.FAILED, JobState.EXPIRED):
        say_why_over(job_view, results_of(caller, job_view["id"]))


@app.command()
def why(
    job: JobReference,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Show at most so many attempts.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Why the tasks of a job went where they went, and what those that wait wait for."""
    explanation = pool_caller().ask("GET", at(ROUTE, job, "explanation"), query={"limit": str(limit)})
    if as_json:
        print_json(explanation)
    else:
        print_why_job(explanation)


@app.command()
def logs(
    job: JobReference,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep on until the job is over.")] = False,
    as_json: AsJson = False,
) -> None:
    """What the tasks of a job print."""
    caller = pool_caller()
    for output in job_watch.output_of(caller, job_watch.job_id_of(caller, job), follow=follow):
        if as_json:
            print_json(output)
            continue
        for line in output["text"].splitlines():
            print_line(f"{moment(output['at'])}  task {output['task']}  {line}")


@app.command()
def result(job: JobReference, out: OutFolder = None, as_json: AsJson = False) -> None:
    """What came of each task of a job that is over; with --out its files are fetched."""
    caller = pool_caller()
    results = results_of(caller, job_watch.job_id_of(caller, job))
    files = job_watch.keep_results(caller, results, out) if out else []
    if as_json:
        print_json({"items": results, "files": [str(file) for file in files]})
        return
    print_results(results, fetched_from=None if out else job)
    for file in files:
        say(str(file))


@app.command()
def cancel(job: JobReference, as_json: AsJson = False) -> None:
    """Call a job off. What was delivered is judged and paid; the rest of what was held goes back."""
    caller = pool_caller()
    called_off = caller.ask("POST", at(ROUTE, job, "cancel"))
    job_view = caller.ask("GET", at(ROUTE, called_off["id"]))
    report(cancelled_words(job_view), job_view, as_json=as_json)


@app.command()
def extend(
    job: JobReference,
    hours: Annotated[float, typer.Option(min=0, help="How much later the deadline is to be.")] = 0,
    max_budget: Annotated[str | None, typer.Option(help="A larger budget, before the job is confirmed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Give a job more time, or a larger budget."""
    if not hours and max_budget is None:
        raise CommandRefused("Say what to add: --hours, or --max-budget.")
    body: dict[str, object] = {"hours": hours, **({} if max_budget is None else {"max_budget": max_budget})}
    job_view = pool_caller().ask("POST", at(ROUTE, job, "extend"), body)
    sentence = (
        f"The deadline is {moment(job_view['deadline_at'])} UTC."
        if hours
        else f"The budget is {job_view['max_budget']}."
    )
    report(sentence, job_view, as_json=as_json)


def _wait(caller: PoolCaller, job: dict[str, Any], *, as_json: bool) -> None:
    """Wait until a job is over and say what came of it; the exit code is that of `tidemill run`."""
    job = wait_until_over(caller, job, to_stderr=as_json)
    if as_json:
        print_json(job)
    else:
        say_end(job, results_of(caller, job["id"]), job_watch.paid_of(caller, job["id"]), None)
    if job["state"] != "completed":
        raise typer.Exit(Exit.NO)
