"""Reports to spool: each tells its own number, so that what is read back can be told from another."""

from tidemill.wire.messages import BeatMessage, DeviceBeatMessage, Facts, LogLines, ReceiptsMessage, Report

ATTEMPT = b"a" * 16


def receipt(number: int, size_bytes: int = 100) -> ReceiptsMessage:
    """Never dropped."""
    return ReceiptsMessage(b"%010d" % number + b"r" * (size_bytes - 10), b"s" * 64)


def lines(number: int, size_bytes: int = 100) -> LogLines:
    """Dropped when there is no room."""
    return LogLines(ATTEMPT, 1, number, ["x" * size_bytes])


def number_in(report: Report) -> int:
    """Which one it is; -1 for one that tells of dropped ones."""
    if isinstance(report, ReceiptsMessage):
        return int(report.batch[:10])
    if isinstance(report, LogLines):
        return report.first
    assert isinstance(report, Facts)
    return -1


def beat(number: int) -> BeatMessage:
    return BeatMessage(number, 5, 2_000, 90_000, 20, [DeviceBeatMessage(50, 1_000, 61, 220)])
