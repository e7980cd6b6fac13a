"""`tidemill profiles`: whom commands can act as here, which of them is current, and how to change that."""

from typing import Annotated

import typer

from tidemill.cli.client.http_calls import PoolClient, PoolRefused
from tidemill.cli.client.identity import all_profiles, chosen, profile_called
from tidemill.cli.client.pool_caller import SessionCaller
from tidemill.cli.client.profiles import Profile, ProfileKind, use_from_now
from tidemill.cli.terminal.command_group import CommandGroup
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_table, report
from tidemill.core.faults import Fault
from tidemill.host.standard_error import say

app = CommandGroup("Whom commands can act as: list, use, remove.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name, as `tidemill profiles` shows it.")]

_COLUMNS = ("profile", "who", "roles", "how", "pool", "")


@app.callback(invoke_without_command=True)
def profiles(context: typer.Context, as_json: AsJson = False) -> None:
    """List your profiles, or do one of these. `--as NAME` on any command chooses one for that command."""
    if context.invoked_subcommand is not None:
        return
    found, acting = all_profiles(), _acting()
    if as_json:
        print_json([_fields(profile, acting) for profile in found])
    elif found:
        print_table(_COLUMNS, [_row(profile, acting) for profile in found])
        say("`tidemill --as NAME …` acts as another one for one command, `tidemill profiles use NAME` from now on.")
    else:
        say("There are no profiles: `tidemill login` makes one.")


@app.command()
def use(name: Name, as_json: AsJson = False) -> None:
    """Act as this profile from now on."""
    profile = profile_called(name)
    use_from_now(profile)
    sentence = f"You are {profile.address or profile.name} at {profile.url} from now on."
    report(sentence, _fields(profile, profile), as_json=as_json)


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """End a profile's session, and remove its tokens from this machine."""
    profile = profile_called(name)
    if profile.kind is not ProfileKind.LOGIN:
        raise CommandRefused(f"{name} comes from the home of this machine's pool, and was kept by no login: leave it.")
    session = SessionCaller(PoolClient(profile.url), profile)
    try:
        session.ask("POST", "/auth/logout")
    except (PoolRefused, Fault) as failed:
        say(f"The pool was not told: {failed}")
    session.forget()
    report(f"{name} is removed: its tokens are no longer on this machine.", {"removed": name}, as_json=as_json)


def _acting() -> Profile | None:
    """Whom a command would act as now. Who that is may be open: then none is marked."""
    try:
        return chosen()[1]
    except (CommandRefused, Fault):
        return None


def _fields(profile: Profile, acting: Profile | None) -> dict[str, object]:
    return {
        "name": profile.name,
        "address": profile.address or None,
        "roles": list(profile.roles),
        "how": profile.kind.value,
        "pool": profile.url,
        "current": _is(profile, acting),
    }


def _row(profile: Profile, acting: Profile | None) -> tuple[str, ...]:
    who, roles = profile.address or "nobody's account", ", ".join(profile.roles) or "not asked yet"
    return profile.name, who, roles, profile.kind.value, profile.url, "current" if _is(profile, acting) else ""


def _is(profile: Profile, acting: Profile | None) -> bool:
    return acting is not None and (profile.name, profile.url) == (acting.name, acting.url)
