"""The machine's clocks: the wall clock for rules and display, and a steady clock for everything else."""

import time

from tidemill.core.clock import Instant


def wall() -> Instant:
    """The time by the machine's own clock. The pool never trusts it."""
    return Instant(time.time_ns() // 1000)


def steady() -> Instant:
    """A time that only grows and that nobody can set. It means nothing outside this process."""
    return Instant(time.monotonic_ns() // 1000)


def utc_offset_s() -> int:
    """How far the owner's clock is from UTC now; it differs by season."""
    return time.localtime().tm_gmtoff
