"""`tidemill login|logout|whoami|sessions|logins`: your sessions at a pool, from a terminal or a script."""

from typing import Annotated, Any
from uuid import UUID

import typer

from tidemill.cli.client.credentials import StoredTokens
from tidemill.cli.client.http_calls import PoolClient, PoolRefused, moment
from tidemill.cli.client.pool_caller import (
    PoolCaller,
    SessionCaller,
    keep_session,
    pool_caller,
    pool_named,
    session_caller,
)
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, print_fields, print_json, print_table, report
from tidemill.cli.terminal.questions import ask, ask_password, password_from_stdin, with_code
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.faults import Fault

Where = Annotated[
    str | None,
    typer.Argument(metavar="[URL]", show_default=False, help="The pool; else TIDEMILL_URL, else this machine's."),
]
Email = Annotated[str | None, typer.Option("--email", help="Your e-mail address; asked for if it is missing.")]

EMAIL_OTHERWISE = "Give your address with --email."

sessions_app = CommandGroup("Where you are logged in: list your sessions, end them.")


def login(
    url: Where = None,
    email: Email = None,
    remember: Annotated[bool, typer.Option("--remember", help="Stay logged in while it is not used.")] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from the first line of stdin.")
    ] = False,
    code: Annotated[str | None, typer.Option(help="A code of your authenticator; asked for if it is needed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Log in to a pool.

    The tokens are kept in a file that only you can read.
    """
    pool = pool_named(url)
    address = email or ask("E-mail address", otherwise=EMAIL_OTHERWISE)
    otherwise = "Send your password with --password-stdin."
    password = password_from_stdin() if password_stdin else ask_password("Password", otherwise=otherwise)
    stored = log_in(pool, address, password, code, remember=remember).stored
    fields = {"pool": pool.url, **_session_fields(stored)}
    report(f"You are logged in at {pool.url} as {stored.address}.", fields, as_json=as_json)


def log_in(
    pool: PoolClient, address: str, password: str, code: str | None = None, *, remember: bool = False
) -> SessionCaller:
    """Begin a session and keep its tokens. Asks for a code if the pool wants one."""
    credentials = {"address": address, "password": password, "remember": remember}
    opened = with_code(lambda given_code: pool.ask("POST", "/auth/login", {**credentials, "code": given_code}), code)
    return keep_session(pool, address, opened)


def logout(as_json: AsJson = False) -> None:
    """End this session and remove its tokens from the disk."""
    session = session_caller()
    try:
        _end(session)
    except Fault as fault:
        raise Fault(f"Your tokens are removed, but the pool could not be told: {fault}") from fault
    finally:
        session.forget()
    report(f"You are logged out at {session.pool.url}.", {"pool": session.pool.url}, as_json=as_json)


def whoami(as_json: AsJson = False) -> None:
    """Who am I, at which pool, and in which roles?"""
    caller = pool_caller()
    view = caller.ask("GET", "/account")
    session = _session_fields(caller.stored) if isinstance(caller, SessionCaller) else {}
    if as_json:
        print_json({"pool": caller.pool.url, **view, "session_expires_at": session.get("session_expires_at")})
    else:
        print_fields(_fields_of(caller, view))


@sessions_app.callback(invoke_without_command=True)
def sessions(context: typer.Context, as_json: AsJson = False) -> None:
    """List the sessions of your account, or do one of these."""
    if context.invoked_subcommand is not None:
        return
    sessions_found = pool_caller().ask("GET", "/account/sessions")["items"]
    if as_json:
        print_json(sessions_found)
    else:
        columns = ("session", "last seen", "ends", "from", "with", "this one")
        print_table(columns, [_session_row(session) for session in sessions_found])


@sessions_app.command()
def end(
    session: Annotated[UUID, typer.Argument(metavar="SESSION", help="The session's id.")], as_json: AsJson = False
) -> None:
    """End one session."""
    session_caller().ask("DELETE", f"/account/sessions/{session}")
    report("The session is ended.", {"ended": 1}, as_json=as_json)


@sessions_app.command()
def end_others(as_json: AsJson = False) -> None:
    """End every session but this one."""
    ended = session_caller().ask("POST", "/account/sessions/end-others")
    report(f"{ended['ended']} other sessions are ended.", ended, as_json=as_json)


def logins(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Show at most so many.")] = 50, as_json: AsJson = False
) -> None:
    """List the tries to log in to your account, newest first."""
    attempts = pool_caller().listed("/account/logins", {}, limit)
    if as_json:
        print_json(attempts)
    else:
        rows = [
            (moment(attempt["at"]), attempt["result"], attempt["address"], attempt["user_agent"])
            for attempt in attempts
        ]
        print_table(("when", "result", "from", "with"), rows)


def _end(session: SessionCaller) -> None:
    try:
        session.ask("POST", "/auth/logout")
    except PoolRefused as refused:
        if refused.code not in (SessionRefusal.SESSION_OVER.code, SessionRefusal.TOKEN_UNKNOWN.code):
            raise


def _session_fields(stored: StoredTokens) -> dict[str, str]:
    names = ("address", "session_id", "session_expires_at")
    return {name: getattr(stored, name) for name in names}


def _fields_of(caller: PoolCaller, view: dict[str, Any]) -> dict[str, str]:
    account = view["account"]
    until = (
        f"until {moment(caller.stored.session_expires_at)}" if isinstance(caller, SessionCaller) else "none: an API key"
    )
    return {
        "address": account["address"],
        "roles": ", ".join(sorted(account["roles"])),
        "acting as": ", ".join(view["acting_as"]) or "nobody",
        "second factor": "on" if account["second_factor_on"] else "off",
        "pool": caller.pool.url,
        "session": until,
    }


def _session_row(session: dict[str, Any]) -> tuple[str, ...]:
    times = (moment(session["seen_at"]), moment(session["expires_at"]))
    return session["id"], *times, session["address"], session["user_agent"], "yes" if session["current"] else ""
