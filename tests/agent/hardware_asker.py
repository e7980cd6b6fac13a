"""Asks the drivers of a child process, which finds the stand-ins. Reads one JSON order a line, answers one a line.

An order may set variables of the environment, which the stand-ins read at every call, and asks for the machine or its
state. The answer says how long it took, and how often the event loop turned meanwhile.
"""

import asyncio
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tidemill.agent.hardware import Hardware, Patience, beat_of
from tidemill.core.hardware import facts_of, machine_of, objections, state_objections


async def answer(hardware: Hardware, order: dict[str, Any], memory: dict[str, Any]) -> dict[str, Any]:
    for name, value in order.get("set", {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if order["ask"] == "machine":
        machine = await hardware.machine()
        memory["machine"] = machine
        assert machine_of(facts_of(machine)) == machine, "what is sent must be read back as it was"
        objected = [one.sentence for one in objections(machine)]
        return {"machine": json.loads(facts_of(machine)), "objections": objected}
    state = await hardware.state()
    beat_of(state, 1, None)
    objected = [one.sentence for one in state_objections(memory["machine"], state)]
    return {"state": asdict(state), "objections": objected}


async def turn(turns: list[int]) -> None:
    while True:
        await asyncio.sleep(0.01)
        turns[0] += 1


async def main(home: Path) -> None:
    hardware = Hardware(home, Patience(detection_s=float(sys.argv[2]), state_s=float(sys.argv[3])))
    memory: dict[str, Any] = {}
    turns = [0]
    turning = asyncio.create_task(turn(turns))
    while line := await asyncio.to_thread(sys.stdin.readline):
        turns[0], begun = 0, time.monotonic()
        answered = await answer(hardware, json.loads(line), memory)
        answered |= {"took_s": time.monotonic() - begun, "turns": turns[0]}
        sys.stdout.write(json.dumps(answered) + "\n")
        sys.stdout.flush()
    turning.cancel()


asyncio.run(main(Path(sys.argv[1])))
