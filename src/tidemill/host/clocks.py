"""The clocks of a machine: its owner's, for rules and for display, and one that only grows, for everything else."""

import time

from tidemill.core.clock import Instant


def wall() -> Instant:
    """What the machine takes the time for. The pool never trusts it."""
    return Instant(time.time_ns() // 1000)


def steady() -> Instant:
    """A time that nobody can set, without a meaning outside this process."""
    return Instant(time.monotonic_ns() // 1000)


def utc_offset_s() -> int:
    """How far the owner's clock is from UTC now; it differs by season."""
    return time.localtime().tm_gmtoff
