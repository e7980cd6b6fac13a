"""All areas of the control plane. A new area gets a line here.

Routes are searched in this order, so those for programs come before those for people.
"""

from tidemill.control.accounts import area as accounts
from tidemill.control.artefacts import area as artefacts
from tidemill.control.events import area as events
from tidemill.control.jobs import area as jobs
from tidemill.control.ledger import area as ledger
from tidemill.control.models import area as models
from tidemill.control.nodes import area as nodes
from tidemill.control.notices import area as notices
from tidemill.control.operations import area as operations
from tidemill.control.pages import area as pages
from tidemill.control.placement import area as placement
from tidemill.control.trust import area as trust

AREAS = (
    operations.AREA,
    accounts.AREA,
    events.AREA,
    nodes.AREA,
    artefacts.AREA,
    models.AREA,
    jobs.AREA,
    placement.AREA,
    trust.AREA,
    ledger.AREA,
    notices.AREA,
    pages.AREA,
)
