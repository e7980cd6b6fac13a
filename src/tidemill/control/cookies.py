"""The browser's cookies: the access token for every path, the refresh token only for where it is changed.

Scripts cannot read them and other sites cannot send them. Over TLS they are never sent in the clear.
"""

from fastapi import Response

from tidemill.control.context import Control
from tidemill.control.guard import ACCESS_COOKIE, REFRESH_COOKIE
from tidemill.core.clock import SECOND

_REFRESH_PATH = "/api/v1/auth"


def give_cookies(
    response: Response, control: Control, *, access: str, refresh: str, remember: bool, secure: bool
) -> None:
    """A session that is not remembered ends with the browser."""
    lasting_s = control.session_rules.remembered_us // SECOND if remember else None
    shared = {"httponly": True, "samesite": "strict", "secure": secure}
    response.set_cookie(ACCESS_COOKIE, access, max_age=control.tokens.lifetime_s, path="/", **shared)  # type: ignore[arg-type]
    response.set_cookie(REFRESH_COOKIE, refresh, max_age=lasting_s, path=_REFRESH_PATH, **shared)  # type: ignore[arg-type]


def take_cookies(response: Response) -> None:
    response.delete_cookie(ACCESS_COOKIE, path="/")
    response.delete_cookie(REFRESH_COOKIE, path=_REFRESH_PATH)
