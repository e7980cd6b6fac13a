"""What a refused command says about who acted, and what to type next.

Only refusals that depend on who asks get this: the sentence names the person, the pool, and the next command.
"""

from collections.abc import Iterable, Sequence

from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.client.profiles import Profile, ProfileKind
from tidemill.core.accounts.lockout import LoginRefusal
from tidemill.core.accounts.permissions import PermissionRefusal
from tidemill.core.accounts.roles import Role
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.ledger import AdjustmentRefusal
from tidemill.core.nodes.join_tokens import JoinTokenRefusal
from tidemill.core.settings.critical import SettingChangeRefusal

NOT_LOGGED_IN = "You are not logged in, and this takes a login."

_UNAUTHENTICATED, _FORBIDDEN = 401, 403
_TYPED_JUST_NOW = {LoginRefusal.LOGIN_FAILED.code, LoginRefusal.SECOND_FACTOR_NEEDED.code}
_NAMED_OPERATOR = {AdjustmentRefusal.OWN_ACCOUNT_NEEDED.code, SettingChangeRefusal.OWN_LOGIN_NEEDED.code}
_OTHER_OPERATOR = {
    AdjustmentRefusal.SECOND_OPERATOR_NEEDED.code,
    SettingChangeRefusal.ANOTHER_OPERATOR_NEEDED.code,
}
_OPERATOR = {PermissionRefusal.OPERATOR_ONLY.code, JoinTokenRefusal.JOIN_TOKEN_NOT_HOUSE.code}
_PROVIDER = {JoinTokenRefusal.JOIN_TOKEN_NOT_PROVIDER.code, PermissionRefusal.ROLE_MISSING.code}
_LOG_IN = {PermissionRefusal.SESSION_NEEDED.code}
_LOG_IN_AGAIN = {
    PermissionRefusal.UNAUTHENTICATED.code,
    SessionRefusal.SESSION_OVER.code,
    SessionRefusal.TOKEN_UNKNOWN.code,
}


def depends_on_who(refused: PoolRefused) -> bool:
    """Whether somebody else might have been let in."""
    return refused.status in (_UNAUTHENTICATED, _FORBIDDEN) and refused.code not in _TYPED_JUST_NOW


def who(profile: Profile) -> str:
    """Whom the command acted as, without a full stop."""
    roles = f" ({', '.join(profile.roles)})" if profile.roles else ""
    if profile.kind is ProfileKind.HOME:
        return f"You are the operator by the token of the home, and nobody's account, at {profile.url}"
    if not profile.address:
        return f"You act by the API key in {profile.name} at {profile.url}"
    by = ", by an API key" if profile.kind is ProfileKind.KEY else ""
    return f"You are {profile.address}{roles}{by} at {profile.url}"


def told(refused: PoolRefused, profile: Profile, everybody: Sequence[Profile]) -> str:
    """A refusal with whom it met, and what they can type next."""
    is_about_keys = refused.code in _LOG_IN and profile.kind is not ProfileKind.KEY
    sentence = NOT_LOGGED_IN if is_about_keys else str(refused)
    return f"{sentence} {who(profile)}{_advice(refused, profile, everybody)}"


def how_to_log_in(profile: Profile) -> str:
    """What to type to log in as this person."""
    if profile.kind is ProfileKind.KEY:
        return f"unset {profile.name}, and run `tidemill login`"
    if profile.kind is ProfileKind.LOGIN:
        return f"run `tidemill login {profile.url} --email {profile.address}`"
    return f"run `tidemill login{f' --as {profile.name}' if profile.kind is ProfileKind.DEMONSTRATION else ''}`"


def _advice(refused: PoolRefused, profile: Profile, everybody: Sequence[Profile]) -> str:
    """The next command, after a colon; a full stop if there is none."""
    if refused.code in _LOG_IN | _LOG_IN_AGAIN:
        return f": {how_to_log_in(profile)}."
    operators = [one for one in everybody if one.is_operator]
    persons = [one for one in operators if one.address and one.address != profile.address]
    providers = [one for one in everybody if Role.PROVIDER in one.roles]
    ways = (
        (_NAMED_OPERATOR, persons, "this needs the account of an operator", "run `tidemill login`"),
        (_OTHER_OPERATOR, persons, "this needs another operator", "they run it after their own `tidemill login`"),
        (_OPERATOR, operators, "this needs an operator", "run `tidemill login` as one"),
        (_PROVIDER, providers, "this needs a provider", "run `tidemill account become provider`"),
    )
    for codes, others, needs, otherwise in ways:
        if refused.code in codes:
            return f": {_choose(profile, others, needs, otherwise)}."
    return "."


def _choose(profile: Profile, others: Iterable[Profile], needs: str, otherwise: str) -> str:
    """Name a profile at the same pool that has what is needed, or another way."""
    there = next((one for one in others if one.url == profile.url and one.name != profile.name), None)
    return f"{needs}: add `--as {there.name}`" if there else f"{needs}: {otherwise}"
