"""Letters, as a control process runs them."""

from tidemill.control.area import Area
from tidemill.control.context import Control
from tidemill.control.loops.frame import Loop
from tidemill.control.notices.mail_loop import MailForgettingLoop, MailLoop


def _loops(control: Control) -> list[Loop]:
    return [
        MailLoop(control),
        MailForgettingLoop(control),
    ]


AREA = Area(loops=_loops)
