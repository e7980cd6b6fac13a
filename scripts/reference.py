"""Writes the reference pages in docs/reference from the code, so that they cannot say anything else than it does.

One function a page, each answering the page's text; `make reference` writes them all, and a test compares them.
"""

import importlib
import pkgutil
import sys
import textwrap
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import UUID

import typer

import tidemill
from tidemill.cli.main import app
from tidemill.cli.terminal import help_page
from tidemill.cli.terminal.output import Exit
from tidemill.control.app import create_api
from tidemill.control.http import views
from tidemill.control.http.statuses import STATUS
from tidemill.core import settings
from tidemill.core.accounts.permissions import RULES, ObjectScope, RouteRule
from tidemill.core.accounts.roles import Role
from tidemill.core.events.log import KINDS, Event
from tidemill.core.faults import Fault
from tidemill.core.jobs.attempt import ATTEMPTS, AttemptState, Happening
from tidemill.core.jobs.job import JOBS, ClosingReason, EndCounts, JobLife, JobState, after_count
from tidemill.core.jobs.task import Attempt, RetryLimits, TaskLife, TaskState, cancel
from tidemill.core.jobs.task import step as task_step
from tidemill.core.nodes.life import LIVES
from tidemill.wire.link_phases import LINKS

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"

JSON_TYPES: Mapping[object, str] = {
    str: "text",
    bool: "yes or no",
    int: "whole number",
    float: "number",
    UUID: "UUID",
}


def settings_page() -> str:
    return settings.reference()


def cli_page() -> str:
    """Every command with its arguments and options, and what exit codes mean."""
    root = typer.main.get_command(app)
    commands = list(_commands(root, typer.Context(root, info_name="tidemill")))
    exits = [(str(code.value), code.name, code.meaning) for code in Exit]
    return _page(
        _generated("the commands in src/tidemill/cli"),
        "# The `tidemill` command",
        _paragraph(
            "Results go to stdout, everything else to stderr. Off a terminal there is no colour. Every command "
            "explains itself with `-h` or `--help`; `tidemill --debug` before a command shows where an error came from."
        ),
        *_groups(root),
        "## All commands",
        _table(("command", "what it does"), [(f"`{path}`", help_text) for path, help_text, _ in commands[1:]]),
        *(section for _, _, section in commands),
        "## Exit codes",
        "They are stable; programs may match them.",
        _table(("code", "name", "meaning"), exits),
    )


def events_page() -> str:
    """Every kind of event: what it means, what it is about, what it carries, and who may read it."""
    _import_everything()
    kinds = [KINDS[kind] for kind in sorted(KINDS) if _is_ours(KINDS[kind])]
    return _page(
        _generated("the events in src/tidemill"),
        "# Events",
        _paragraph(
            "Every change of state appends one event, in its own transaction. An event has an `id` (UUIDv7), a "
            "`cursor`, the time `at`, its `kind`, a `subject` and a `body`, whose fields are listed here. Operators "
            "read every event; the table says who else does."
        ),
        _table(("kind", "meaning", "who may read it"), [(f"`{e.kind}`", event_meaning(e), _readers(e)) for e in kinds]),
        *(_event_section(event) for event in kinds),
    )


def api_page() -> str:
    """Every route: what it does, who may call it and what it answers; and every problem it may answer with."""
    _import_everything()
    operations = [
        (
            method.upper(),
            f"`{path}`",
            _first_line(operation),
            *_who(RULES[f"{method.upper()} {path}"]),
            _statuses(operation),
        )
        for path, methods in create_api().openapi()["paths"].items()
        for method, operation in methods.items()
    ]
    refusals = [(str(status), f"`{refusal.code}`", refusal.sentence) for refusal, status in STATUS.items()]
    faults = [("503", f"`{fault.code}`", fault.__doc__ or "") for fault in _faults()]
    return _page(
        _generated("the routes in src/tidemill/control"),
        "# HTTP API",
        _paragraph(
            f"The OpenAPI description is at `{views.API}/openapi.json`. A caller shows an access token, an API key or "
            "the token in the pool's home as `Authorization: Bearer …`; a browser shows its cookie. *Own only* means "
            "that another account's object is answered as if it did not exist. *Key* names the scope an API key needs; "
            "where it is empty no key will do, unless the route is open to anyone."
        ),
        _table(("method", "path", "what it does", "who", "key", "statuses"), operations),
        "## Problems",
        _paragraph(
            'An answer of "no" is `application/problem+json` (RFC 9457). Its `code` is stable; `detail` says what to '
            "do. Besides these, `invalid_request` (422) names the value that does not fit, and `internal` (500) "
            "is our fault."
        ),
        _table(("status", "code", "what it says"), sorted(set(refusals)) + sorted(faults)),
    )


def states_page() -> str:
    """The life of a job, a task, an attempt, a node and a link, as diagrams drawn from the tables that decide it."""
    diagrams = (
        ("Job", "core/jobs/job.py", _job_changes()),
        ("Task", "core/jobs/task.py", _task_changes()),
        ("Attempt", "core/jobs/attempt.py", _changes(ATTEMPTS)),
        ("Node", "core/nodes/life.py", _changes(LIVES)),
        ("Link", "wire/link_phases.py", _changes(LINKS)),
    )
    parts = [_generated("the tables of the life cycles"), "# States", "What is not drawn changes nothing."]
    for title, file, changes in diagrams:
        drawn = "\n".join(_arrows(changes))
        parts.append(f"## {title}\n\nFrom `{file}`.\n\n```mermaid\nstateDiagram-v2\n{drawn}\n```")
    return "\n\n".join(parts) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "cli.md": cli_page,
    "events.md": events_page,
    "api.md": api_page,
    "states.md": states_page,
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in PAGES.items():
        (FOLDER / name).write_text(text(), encoding="utf-8")
        sys.stderr.write(f"docs/reference/{name}\n")


Change = tuple[str, str, str]
"""A state, what happens, and the state after it."""


def _arrows(changes: Sequence[Change]) -> Iterator[str]:
    """One arrow between two states, with everything that leads along it."""
    happenings: dict[tuple[str, str], list[str]] = {}
    for before, happening, after in changes:
        happenings.setdefault((before, after), []).append(happening)
    for (before, after), along in happenings.items():
        yield f"    {before} --> {after}: {', '.join(along)}"


def _changes(table: Mapping[tuple[Any, Any], Any]) -> list[Change]:
    """What a table of states says; its refusals change nothing."""
    return [
        (before.value, happening.value, after.value)
        for (before, happening), after in table.items()
        if type(after) is type(before)
    ]


def _job_changes() -> list[Change]:
    """The table, and how a job ends with its last task: found by asking the rule for every way of ending."""
    changes = _changes(JOBS)
    for closing in (None, *ClosingReason):
        for state in (JobState.QUEUED, JobState.RUNNING):
            for ends in (EndCounts(completed=2), EndCounts(completed=1, failed=1)):
                end = after_count(JobLife(state, 2, ends, closing)).state
                why = (
                    "all tasks completed" if end is JobState.COMPLETED else f"last task ended, {closing or 'a failure'}"
                )
                changes.append((state.value, why, end.value))
    return list(dict.fromkeys(changes))


def _task_changes() -> list[Change]:
    """Found by asking the rules for every state and every happening to the attempt that holds the task."""
    holder, changes = UUID(int=1), [("pending", "placed", "assigned")]
    for state in TaskState:
        task = TaskLife(state, tries=1, holder=holder)
        for attempt, happening in ATTEMPTS:
            if happening is not Happening.CALLED_OFF and _may_meet(state, attempt):
                changes.extend(
                    (state.value, happening.value, done.task.state.value)
                    for limits in (RetryLimits(), RetryLimits(failures_max=1, tries_max=1))
                    if (done := task_step(task, Attempt(holder, attempt), happening, limits))
                )
        if state is TaskState.PROOF_SUBMITTED:  # the next transaction finds its lease as one that is being judged
            changes.append((state.value, "verification begins", TaskState.VERIFYING.value))
        if cancelled := cancel(task):
            changes.append((state.value, "cancelled", cancelled.state.value))
    return [change for change in dict.fromkeys(changes) if change[0] != change[2]]


def _may_meet(task: TaskState, attempt: AttemptState) -> bool:
    """Whether a task in this state can have an attempt in that one as its holder."""
    delivered = task in (TaskState.PROOF_SUBMITTED, TaskState.VERIFYING)
    return (attempt is AttemptState.SUBMITTED) == delivered and task is not TaskState.PENDING


def event_meaning(event: type[Event]) -> str:
    """The first paragraph of its docstring; empty where it has none of its own."""
    text = vars(event).get("__doc__") or ""
    if text.startswith(f"{event.__name__}("):  # written by @dataclass
        return ""
    return " ".join(text.split("\n\n")[0].split())


def _commands(command: Any, context: typer.Context) -> Iterator[tuple[str, str, str]]:
    """The path, the summary and the section of a command and of everything below it."""
    path = context.command_path
    examples = help_page.examples_of(path)
    params = [param for param in command.params if not param.hidden]
    arguments = [param for param in params if help_page.is_argument(param)]
    blocks = (
        f"## {path}",
        *help_page.paragraphs(command),
        f"```\n{help_page.usage(command, context)}\n```",
        _table(("argument", "meaning"), [_argument(param) for param in arguments]),
        _table(("option", "default", "meaning"), [_option(param) for param in params if param not in arguments]),
        "\n".join(["```sh", *examples, "```"]),
    )
    yield path, help_page.summary_of(command), _page(*blocks).strip()
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from _commands(below, typer.Context(below, info_name=name, parent=context))


def _groups(root: Any) -> Iterator[str]:
    """The commands of the root, section by section, as its page of help shows them."""
    for title, rows in root.sections().items():
        yield f"### {title}"
        yield _table(
            ("command", "what it does"), [(f"[`tidemill {name}`](#tidemill-{name})", text) for name, text in rows]
        )


def _option(param: Any) -> tuple[str, str, str]:
    value = "" if param.is_flag else f" {help_page.placeholder(param)}"
    names = ", ".join(f"`{name}{value}`" for name in (*param.opts, *param.secondary_opts))
    default = "must be given" if param.required else help_page.default_of(param).removeprefix("default ")
    return names, f"`{default}`" if default and not param.required else default, help_page.explained(param)


def _argument(param: Any) -> tuple[str, str]:
    default = help_page.default_of(param)
    return f"`{help_page.placeholder(param)}`", help_page.explained(param) + (f" ({default})" if default else "")


def _event_section(event: type[Event]) -> str:
    types = typing.get_type_hints(event)
    body = [(f"`{field.name}`", JSON_TYPES.get(types[field.name], str(types[field.name]))) for field in fields(event)]
    about = f"Subject: `{_subject(event)}`."
    return _page(f"## {event.kind}", event_meaning(event), about, _table(("field", "type"), body)).strip()


def _subject(event: type[Event]) -> str:
    """Its subject, with the names of fields in place of their values."""
    example = object.__new__(event)
    for field in fields(event):
        object.__setattr__(example, field.name, f"<{field.name}>")
    return example.subject


def _readers(event: type[Event]) -> str:
    if event.public:
        return "anyone"
    return "operators" if event.accounts is Event.accounts else "operators and the accounts it concerns"


def _who(rule: RouteRule) -> tuple[str, str]:
    """Who may call a route, and with which scope an API key may."""
    roles = (
        "anyone" if rule.roles is None else "any account" if rule.roles == frozenset(Role) else ", ".join(rule.roles)
    )
    own = ", own only" if rule.whose is ObjectScope.OWN and rule.roles is not None else ""
    fresh = ", fresh password" if rule.fresh else ""
    key = "" if rule.scope is None else f"`{rule.scope}`"
    return roles + own + fresh, key


def _first_line(operation: Mapping[str, Any]) -> str:
    text: str = operation.get("description") or operation["summary"]
    return text.splitlines()[0]


def _statuses(operation: Mapping[str, Any]) -> str:
    known = sorted(int(status) for status in operation["responses"])
    return ", ".join(f"{status} {HTTPStatus(status).phrase}" if status < 300 else str(status) for status in known)


def _faults(base: type[Fault] = Fault) -> Iterator[type[Fault]]:
    """Every kind of fault below a kind."""
    for below in base.__subclasses__():
        if _is_ours(below):
            yield below
            yield from _faults(below)


def _is_ours(one: type) -> bool:
    """Whether it is defined in the package; a test may have defined others in the same process."""
    return one.__module__.startswith("tidemill.")


def _import_everything() -> None:
    for module in pkgutil.walk_packages(tidemill.__path__, "tidemill."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def _generated(source: str) -> str:
    return f"<!-- Generated from {source} by `make reference`; do not edit. -->"


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False)


def _page(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    main()
