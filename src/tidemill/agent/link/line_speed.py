"""Measures the line to the pool: sends and receives some bytes through a channel of the link.

It begins with small amounts, so that a slow line is not busy for minutes, and takes larger ones while the time is too
short to tell anything. The result is kept, so that an agent which is often restarted does not measure often.
"""

import asyncio
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tidemill.core.clock import SECOND, Instant
from tidemill.host.clocks import steady
from tidemill.host.private_files import replace_private_file
from tidemill.link.dialled.streams import DialledStream, DialledStreams, StreamBroken

PURPOSE = "speed"
_STEPS_BYTES = (256 * 1024, 2 * 1024 * 1024, 16 * 1024 * 1024)
_ENOUGH_US = SECOND // 2
_WITHIN_S = 60.0
_PIECE = bytes(64 * 1024)
_MOST_BPS = 10**15
_MOST_MS = 3_600_000
_FILE_MAX = 1_000


@dataclass(frozen=True)
class LineSpeed:
    """Bits a second each way, the time of a round trip, and when it was measured by the machine's own clock."""

    down_bps: int
    up_bps: int
    latency_ms: int
    at: Instant


async def measure_line(streams: DialledStreams, round_trip_us: int, now: Instant) -> LineSpeed | None:
    """The speed of a link's line; None if the pool does not serve this or the link was lost."""
    speed = None
    try:
        async with asyncio.timeout(_WITHIN_S):
            for size_bytes in _STEPS_BYTES:
                step = await _measure_step(streams, size_bytes, round_trip_us, now)
                if step is None:
                    break
                speed, took_us = step
                if took_us >= _ENOUGH_US:
                    break
    except (TimeoutError, StreamBroken):
        return speed
    return speed


def read_speed(file: Path) -> LineSpeed | None:
    """The last measured speed; None if there is none, or the file cannot be read."""
    try:
        fields = json.loads(file.read_bytes()[:_FILE_MAX])
        numbers = [fields[name] for name in ("down_bps", "up_bps", "latency_ms", "at")]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if not all(type(number) is int and number >= 0 for number in numbers):
        return None
    down_bps, up_bps, latency_ms, at = numbers
    return LineSpeed(min(down_bps, _MOST_BPS), min(up_bps, _MOST_BPS), min(latency_ms, _MOST_MS), Instant(at))


def write_speed(file: Path, speed: LineSpeed) -> None:
    replace_private_file(file, json.dumps(asdict(speed)) + "\n")


async def _measure_step(
    streams: DialledStreams, size_bytes: int, round_trip_us: int, now: Instant
) -> tuple[LineSpeed, int] | None:
    about = json.dumps({"down_bytes": size_bytes, "up_bytes": size_bytes}).encode()
    if (stream := streams.open(PURPOSE, about)) is None:
        return None
    try:
        return await _transfer(stream, size_bytes, round_trip_us, now)
    finally:
        streams.close(stream)


async def _transfer(
    stream: DialledStream, size_bytes: int, round_trip_us: int, now: Instant
) -> tuple[LineSpeed, int] | None:
    """Time both ways. The pool begins to send when it has received everything, so its first byte marks that moment."""
    began = steady()
    for _ in range(size_bytes // len(_PIECE)):
        await stream.write(_PIECE)
    stream.end()
    first = await stream.read()
    turned = steady()
    received = len(first)
    while received < size_bytes and (piece := await stream.read()):
        received += len(piece)
    ended = steady()
    if received < size_bytes:
        return None
    up_us, down_us = turned - began - round_trip_us, ended - turned
    latency_ms = min(_MOST_MS, round_trip_us // 1000)
    speed = LineSpeed(_bps(received - len(first), down_us), _bps(size_bytes, up_us), latency_ms, now)
    return speed, min(up_us, down_us)


def _bps(size_bytes: int, took_us: int) -> int:
    return min(_MOST_BPS, size_bytes * 8 * SECOND // max(1, took_us))
