"""How fast the line to the pool is: some bytes up, some down, through a channel of the link beside everything else.

Small amounts first, so that a slow line is not busy for minutes; larger ones while they take too little time to tell
anything. The result is kept, so that an agent that is restarted often does not measure often.
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
    """Bits a second each way, the time of a round trip, and when the machine's own clock said that was."""

    down_bps: int
    up_bps: int
    latency_ms: int
    at: Instant


async def measure_line(streams: DialledStreams, round_trip_us: int, now: Instant) -> LineSpeed | None:
    """The speed of a link's line; nothing if the pool does not serve this or the link was lost."""
    found = None
    try:
        async with asyncio.timeout(_WITHIN_S):
            for size_bytes in _STEPS_BYTES:
                step = await _step(streams, size_bytes, round_trip_us, now)
                if step is None:
                    break
                found, took_us = step
                if took_us >= _ENOUGH_US:
                    break
    except (TimeoutError, StreamBroken):
        return found
    return found


def read_speed(file: Path) -> LineSpeed | None:
    """What was measured last; nothing if it was never, or the file is not ours."""
    try:
        kept = json.loads(file.read_bytes()[:_FILE_MAX])
        numbers = [kept[name] for name in ("down_bps", "up_bps", "latency_ms", "at")]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    if not all(type(number) is int and number >= 0 for number in numbers):
        return None
    down_bps, up_bps, latency_ms, at = numbers
    return LineSpeed(min(down_bps, _MOST_BPS), min(up_bps, _MOST_BPS), min(latency_ms, _MOST_MS), Instant(at))


def write_speed(file: Path, speed: LineSpeed) -> None:
    replace_private_file(file, json.dumps(asdict(speed)) + "\n")


async def _step(
    streams: DialledStreams, size_bytes: int, round_trip_us: int, now: Instant
) -> tuple[LineSpeed, int] | None:
    about = json.dumps({"down_bytes": size_bytes, "up_bytes": size_bytes}).encode()
    if (stream := streams.open(PURPOSE, about)) is None:
        return None
    try:
        return await _timed(stream, size_bytes, round_trip_us, now)
    finally:
        streams.close(stream)


async def _timed(
    stream: DialledStream, size_bytes: int, round_trip_us: int, now: Instant
) -> tuple[LineSpeed, int] | None:
    """The pool sends when it has everything, so its first byte tells when that was."""
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
