"""Asks the drivers of a child process, which finds the stand-ins. Reads one JSON order a line, answers one a line.

An order may set variables of the environment, which the stand-ins read at every call, and asks for the machine or its
state. The answer says how long it took, and how often the event loop turned meanwhile.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tidemill.agent.machine import DriverPatience, Hardware, beat_of
from tidemill.core.nodes.machine.hardware import Machine, MachineState, facts_of, machine_of, objections


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
    return {"state": asdict(state), "objections": list(too_much(memory["machine"], state))}


def too_much(machine: Machine, state: MachineState) -> Iterator[str]:
    """What of a state cannot be on its machine."""
    for device, now in zip(machine.devices, state.devices, strict=True):
        if device.index != now.index or now.memory_used_mib > device.memory_mib > 0:
            yield f"Device {device.index} has {device.memory_mib} MiB, and {now.index} uses {now.memory_used_mib} MiB."
    if state.memory_used_mib > machine.memory_mib or state.disk_free_mib > machine.disk_mib:
        yield "More is used than there is."


async def turn(turns: list[int]) -> None:
    while True:
        await asyncio.sleep(0.01)
        turns[0] += 1


async def main(home: Path) -> None:
    hardware = Hardware(home, DriverPatience(detection_s=float(sys.argv[2]), state_s=float(sys.argv[3])))
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
