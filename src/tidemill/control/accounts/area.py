"""Accounts, as a control process runs them."""

from tidemill.control.accounts import account_routes, admin_routes, auth_routes, key_routes, second_factor_routes
from tidemill.control.accounts.loops import AccountForgettingLoop, KeyUseLoop, SigningKeyLoop
from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.http.denials import DenialLoop
from tidemill.control.http.limits_loop import LimitsLoop
from tidemill.control.loops.frame import Loop


def _loops(control: Control) -> list[Loop]:
    return [
        SigningKeyLoop(control, control.tokens),
        KeyUseLoop(control, control.callers),
        AccountForgettingLoop(control),
        DenialLoop(control, control.denials),
        LimitsLoop(control, control.limiter),
    ]


AREA = Area(
    routers=(
        auth_routes.set_up_router,
        auth_routes.router,
        account_routes.router,
        second_factor_routes.router,
        key_routes.router,
        admin_routes.router,
    ),
    loops=_loops,
)
