"""What agents say over the link, as the registry keeps it: the wire's messages become core's values."""

from collections.abc import Sequence
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.jobs import attempt_reports as work
from tidemill.core.nodes.health import telemetry
from tidemill.core.nodes.health.telemetry import PastBeat
from tidemill.core.nodes.reports import Dropped, Fact, Said
from tidemill.wire import spool_reports
from tidemill.wire.messages import Accepted, Beat, Declined, Facts, LogLines, Progress, Receipts, Report


def beat_of(beat: Beat) -> telemetry.Beat:
    devices = tuple(
        telemetry.DeviceBeat(one.utilisation_pct, one.memory_used_mib, one.temperature_c, one.power_w)
        for one in beat.devices
    )
    return telemetry.Beat(beat.cpu_pct, beat.memory_used_mib, beat.disk_free_mib, beat.round_trip_ms, devices)


def said_in(reports: Sequence[Report]) -> list[Said]:
    """Reports in their order. Raises a `ProtocolError` for what no agent of ours sends."""
    return [_said(report) for report in reports]


def _said(report: Report) -> Said:
    if not isinstance(report, Facts):
        return _of_work(report)
    about = spool_reports.said_in(report)
    if isinstance(about, spool_reports.Dropped):
        return Dropped(damaged=about.why == "damaged")
    if isinstance(about, spool_reports.PastBeat):
        return PastBeat(Instant(about.at), beat_of(about.beat))
    return Fact(report.kind, report.body)


def _of_work(report: Accepted | Declined | Progress | LogLines | Receipts) -> work.WorkSaid:
    if isinstance(report, Receipts):
        return work.Receipts(report.batch, report.signature)
    attempt = work.OfAttempt(UUID(bytes=report.attempt_id), report.lease)
    match report:
        case Accepted():
            return work.Accepted(attempt)
        case Declined():
            return work.Declined(attempt, report.reason)
        case Progress():
            return work.Progress(attempt, report.share_ppm)
        case LogLines():
            return work.Lines(attempt, report.first, tuple(report.lines))
