"""Requests that were refused, by caller, address, route and reason."""

from typing import TypeAlias

from tidemill.control.events.refusal_tallies import RefusalTally, RefusalTallyLoop
from tidemill.core.accounts.events import AuthorisationFailed
from tidemill.core.refusals import Refusal

_DenialKind: TypeAlias = tuple[str, str, str, str]


class Denials(RefusalTally[_DenialKind]):
    def __init__(self) -> None:
        super().__init__(("many callers", "many addresses", "many routes", "many refusals"))

    def note(self, caller: str, address: str, route: str, refusal: Refusal) -> None:
        self.count((caller, address, route, refusal.code))


class DenialLoop(RefusalTallyLoop[_DenialKind]):
    """Writes down which requests were refused."""

    name = "denials"

    def event_of(self, kind: _DenialKind, times: int) -> AuthorisationFailed:
        return AuthorisationFailed(*kind, times)
