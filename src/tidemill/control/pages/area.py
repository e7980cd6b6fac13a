"""The pool's own pages, as a control process runs them."""

from tidemill.control.area import Area
from tidemill.control.pages import routes

AREA = Area(routers=(routes.router,))
