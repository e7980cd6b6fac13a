"""`tidemill login|logout|whoami|sessions|logins`: your sessions at a pool, from a terminal or a script.

A login is kept as a profile, which `tidemill profiles` lists. At a demonstration `--as` needs no password: the home has
it.
"""

from typing import Annotated, Any

import typer

from tidemill.cli.client.credentials import StoredTokens
from tidemill.cli.client.http_calls import PoolClient, PoolRefused, moment
from tidemill.cli.client.identity import chosen, named, own_pool
from tidemill.cli.client.pool_caller import (
    PoolCaller,
    SessionCaller,
    keep_session,
    pool_caller,
    pool_named,
    session_caller,
)
from tidemill.cli.client.profiles import Profile, ProfileKind
from tidemill.cli.client.references import BY_ID, at
from tidemill.cli.client.who_refused import who
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_fields, print_json, print_table, report
from tidemill.cli.terminal.questions import ask, ask_password, password_from_stdin, with_code
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.faults import Fault
from tidemill.core.ids import short_id
from tidemill.core.operations.demonstration import authenticator_file, password_file

Where = Annotated[
    str | None,
    typer.Argument(metavar="[URL]", show_default=False, help="The pool; else TIDEMILL_URL, else this machine's."),
]
Email = Annotated[str | None, typer.Option("--email", help="Your e-mail address; asked for if it is missing.")]

EMAIL_OTHERWISE = "Give your address with --email."

sessions_app = CommandGroup("Where you are logged in: list your sessions, end them.")


def login(  # each argument is an option
    url: Where = None,
    email: Email = None,
    remember: Annotated[bool, typer.Option("--remember", help="Stay logged in while it is not used.")] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from the first line of stdin.")
    ] = False,
    code: Annotated[str | None, typer.Option(help="A code of your authenticator; asked for if it is needed.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="What to call this profile; else what stands before the @.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Log in to a pool.

    The tokens are kept in a file that only you can read, as a profile that is the current one.
    """
    again = None if url or email or not named() else chosen()[1]
    if again is not None and again.kind is ProfileKind.DEMONSTRATION:
        session = _log_in_to_demonstration(again, remember=remember)
    else:
        pool = pool_named(url)
        if not (email and password_stdin):
            pool.expect_answer()  # before somebody types a password for nothing
        address = email or (again and again.address) or ask("E-mail address", otherwise=EMAIL_OTHERWISE)
        otherwise = "Send your password with --password-stdin."
        password = password_from_stdin() if password_stdin else ask_password("Password", otherwise=otherwise)
        session = log_in(pool, address, password, code, remember=remember, name=name)
    _report_login(session, as_json=as_json)


def log_in(
    pool: PoolClient,
    address: str,
    password: str,
    code: str | None = None,
    *,
    remember: bool = False,
    name: str | None = None,
) -> SessionCaller:
    """Begin a session and keep its tokens. Asks for a code if the pool wants one."""
    credentials = {"address": address, "password": password, "remember": remember}
    opened = with_code(lambda given_code: pool.ask("POST", "/auth/login", {**credentials, "code": given_code}), code)
    session = keep_session(pool, address, opened, name)
    session.keep_roles(tuple(sorted(session.ask("GET", "/account")["account"]["roles"])))
    return session


def _log_in_to_demonstration(person: Profile, *, remember: bool) -> SessionCaller:
    """Log in as a person of a demonstration, with the password in its home, and the code of its authenticator."""
    import pyotp

    home = own_pool().home
    password = password_file(home, person.name).read_text("utf-8").strip()
    authenticator = authenticator_file(home, person.name)
    code = pyotp.TOTP(authenticator.read_text("utf-8").strip()).now() if authenticator.exists() else None
    return log_in(PoolClient(person.url), person.address, password, code, remember=remember)


def _report_login(session: SessionCaller, *, as_json: bool) -> None:
    fields = {"profile": session.profile.name, "pool": session.pool.url, **_session_fields(session.stored)}
    sentence = f"You are logged in at {session.pool.url} as {session.stored.address}; the profile is called"
    report(f"{sentence} {session.profile.name}, and is the current one.", fields, as_json=as_json)


def logout(as_json: AsJson = False) -> None:
    """End this session and remove its tokens from the disk."""
    session = session_caller()
    try:
        _end(session)
    except Fault as fault:
        raise Fault(f"Your tokens are removed, but the pool could not be told: {fault}") from fault
    finally:
        session.forget()
    report(f"You are logged out at {session.pool.url}. {_who_is_next()}", {"pool": session.pool.url}, as_json=as_json)


def _who_is_next() -> str:
    """Whom commands act as after a logout."""
    try:
        _, profile = chosen()
    except (CommandRefused, Fault):
        profile = None
    if profile is None:
        return "Nobody is current now: `tidemill login` or `tidemill profiles use NAME` changes that."
    return f"{who(profile)}, from now on."


def whoami(as_json: AsJson = False) -> None:
    """Who am I, at which pool, in which roles?"""
    caller = pool_caller()
    view = _own_view(caller)
    session = caller.stored if isinstance(caller, SessionCaller) else None
    if as_json:
        about = {"profile": caller.profile.name, "how": caller.profile.kind.value, "pool": caller.pool.url}
        print_json({**about, **view, "session_expires_at": session and session.session_expires_at})
    else:
        print_fields(_fields_of(caller, view))


def _own_view(caller: PoolCaller) -> dict[str, Any]:
    """What the pool says of us. The token of the home is nobody's account, so there is nothing to ask for it but
    whether it is let in."""
    if caller.profile.kind is ProfileKind.HOME:
        caller.ask("GET", "/admin/switches")
        return {"account": None, "session_id": None, "acting_as": list(caller.profile.roles)}
    view: dict[str, Any] = caller.ask("GET", "/account")
    if isinstance(caller, SessionCaller):
        caller.keep_roles(tuple(sorted(view["account"]["roles"])))
    return view


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
    session: Annotated[str, typer.Argument(metavar="SESSION", help=f"The session: {BY_ID}.")], as_json: AsJson = False
) -> None:
    """End one session."""
    session_caller().ask("DELETE", at("/account/sessions", session))
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
    profile = caller.profile
    about = {"profile": profile.name, "pool": caller.pool.url, "how": _how(caller)}
    acting = {"acting as": ", ".join(view["acting_as"]) or "nobody"}
    if view["account"] is None:
        return {"address": "none: this is nobody's account", "roles": ", ".join(profile.roles), **acting, **about}
    account = view["account"]
    return {
        "address": account["address"],
        "roles": ", ".join(sorted(account["roles"])),
        **acting,
        "second factor": "on" if account["second_factor_on"] else "off",
        **about,
    }


def _how(caller: PoolCaller) -> str:
    if isinstance(caller, SessionCaller):
        return f"a login, until {moment(caller.stored.session_expires_at)}"
    if caller.profile.kind is ProfileKind.KEY:
        return f"the API key in {caller.profile.name}"
    what = "token" if caller.profile.kind is ProfileKind.HOME else "API key"
    return f"the {what} in {caller.profile.secret_file}"


def _session_row(session: dict[str, Any]) -> tuple[str, ...]:
    times = (moment(session["seen_at"]), moment(session["expires_at"]))
    return (
        short_id(session["id"]),
        *times,
        session["address"],
        session["user_agent"],
        "yes" if session["current"] else "",
    )
