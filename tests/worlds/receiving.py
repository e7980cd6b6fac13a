"""What a pool makes of reports that may come twice, for those ends of links that only tests have."""

from collections.abc import Sequence

from tidemill.core.nodes import reports as core
from tidemill.wire.messages import Report, Reports


def fresh(reports: Reports, received: int) -> tuple[Sequence[Report], int]:
    """What of a batch is new, and what has been received then."""
    new = core.fresh_reports(received, reports.first, reports.items)
    assert new is not None, f"reports before {reports.first} are missing behind {received}"
    return new, received + len(new)
