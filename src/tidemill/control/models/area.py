"""Models, as a control process runs them."""

from tidemill.control.area import Area
from tidemill.control.models import routes

AREA = Area(routers=(routes.router,))
