"""Turns messages of the link into core's values, as the registry keeps them."""

from collections.abc import Sequence
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.jobs import attempt_reports as work
from tidemill.core.nodes.health import telemetry
from tidemill.core.nodes.health.telemetry import PastBeat
from tidemill.core.nodes.reports import DroppedReport, Fact, NodeReport
from tidemill.wire import spool_reports
from tidemill.wire.messages import (
    AcceptedMessage,
    BeatMessage,
    DeclinedMessage,
    Facts,
    LogLines,
    ProgressMessage,
    ReceiptsMessage,
    Report,
)


def beat_of(beat: BeatMessage) -> telemetry.Beat:
    devices = tuple(
        telemetry.DeviceBeat(device.utilisation_pct, device.memory_used_mib, device.temperature_c, device.power_w)
        for device in beat.devices
    )
    return telemetry.Beat(beat.cpu_pct, beat.memory_used_mib, beat.disk_free_mib, beat.round_trip_ms, devices)


def node_reports(reports: Sequence[Report]) -> list[NodeReport]:
    """Reports in their order. Raises a `ProtocolError` for what no agent of ours sends."""
    return [_report_of(report) for report in reports]


def _report_of(report: Report) -> NodeReport:
    if not isinstance(report, Facts):
        return _attempt_report(report)
    about = spool_reports.spool_report_in(report)
    if isinstance(about, spool_reports.SpoolGap):
        return DroppedReport(damaged=about.why == "damaged")
    if isinstance(about, spool_reports.PastBeatReport):
        return PastBeat(Instant(about.at), beat_of(about.beat))
    return Fact(report.kind, report.body)


def _attempt_report(
    report: AcceptedMessage | DeclinedMessage | ProgressMessage | LogLines | ReceiptsMessage,
) -> work.AttemptReport:
    if isinstance(report, ReceiptsMessage):
        return work.ReceiptsReport(report.batch, report.signature)
    attempt = work.AttemptLease(UUID(bytes=report.attempt_id), report.lease)
    match report:
        case AcceptedMessage():
            return work.AcceptReport(attempt)
        case DeclinedMessage():
            return work.DeclineReport(attempt, report.reason)
        case ProgressMessage():
            return work.ProgressReport(attempt, report.share_ppm)
        case LogLines():
            return work.OutputReport(attempt, report.first, tuple(report.lines))
