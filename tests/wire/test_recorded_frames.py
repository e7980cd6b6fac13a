"""Frames that the first version of the protocol sent are read and written the same way for ever."""

import json
from pathlib import Path

import pytest

from tidemill.wire.messages import encode, from_agent, from_pool

FRAMES = json.loads((Path(__file__).parent / "recorded_frames.json").read_text("utf-8"))


@pytest.mark.parametrize("frame", FRAMES["agent"])
def test_a_recorded_frame_of_an_agent_is_read_and_written_the_same(frame: str) -> None:
    assert encode(from_agent.decode(bytes.fromhex(frame))).hex() == frame


@pytest.mark.parametrize("frame", FRAMES["pool"])
def test_a_recorded_frame_of_the_pool_is_read_and_written_the_same(frame: str) -> None:
    assert encode(from_pool.decode(bytes.fromhex(frame))).hex() == frame
