"""What a machine claims about itself: read within bounds, and compared with what can be."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.nodes.machine.hardware import (
    DEVICES_MAX,
    FACTS_MAX_BYTES,
    LINKS_MAX,
    Device,
    DeviceKind,
    DeviceLink,
    EngineVersion,
    HardwareObjection,
    HardwareRefusal,
    LinkKind,
    Machine,
    Network,
    Pcie,
    facts_of,
    machine_of,
    objections,
)


def gpu(index: int, name: str = "NVIDIA GeForce RTX 3090", memory_mib: int = 24_576, **other: Any) -> Device:
    told = {"kind": DeviceKind.NVIDIA, "uuid": f"GPU-{index}", "driver": "570.86.10"} | other
    return Device(index=index, name=name, memory_mib=memory_mib, **told)


def machine(*devices: Device, links: tuple[DeviceLink, ...] = ()) -> Machine:
    return Machine("Debian GNU/Linux 12", "6.1", "x86_64", "EPYC 7302", 32, 128_000, 900_000, devices, links)


BRIDGE = DeviceLink(0, 1, LinkKind.NVLINK, 4, 3, 112)
CPU = Device(0, DeviceKind.CPU, "EPYC 7302", "CPU-0", 128_000, "Linux 6.1")
PAIR = machine(gpu(0), gpu(1), links=(BRIDGE,))

texts = st.text(st.characters(exclude_categories=("C", "Z")), max_size=100)
mib = st.integers(0, 2**31)
devices = st.builds(
    Device,
    index=st.integers(0, DEVICES_MAX - 1),
    kind=st.sampled_from(DeviceKind),
    name=texts,
    uuid=texts,
    memory_mib=mib,
    driver=texts,
    cuda=st.none() | texts,
    power_limit_w=st.none() | st.integers(0, 100_000),
    ecc=st.none() | st.booleans(),
    pcie=st.none() | st.builds(Pcie, st.integers(1, 20), st.integers(1, 64)),
    failing=st.none() | texts,
)
links = st.builds(
    DeviceLink,
    one=st.integers(0, DEVICES_MAX - 1),
    other=st.integers(0, DEVICES_MAX - 1),
    kind=st.sampled_from(LinkKind),
    count=st.integers(1, 64),
    generation=st.none() | st.integers(1, 20),
    gb_per_s=st.none() | st.integers(0, 100_000),
)
machines = st.builds(
    Machine,
    system=texts,
    kernel=texts,
    architecture=texts,
    cpu=texts,
    cores=st.integers(1, 65_536),
    memory_mib=mib,
    disk_mib=st.integers(0, 2**53),
    devices=st.lists(devices, max_size=4).map(tuple),
    links=st.lists(links, max_size=4).map(tuple),
    engines=st.lists(st.builds(EngineVersion, texts, texts), max_size=3).map(tuple),
    network=st.builds(Network, st.none() | mib, st.none() | mib, st.none() | st.integers(0, 1000), st.none() | texts),
)


@given(machines)
def test_facts_are_read_back_as_they_were_and_anything_that_can_be_read_can_be_judged(one: Machine) -> None:
    assert machine_of(facts_of(one)) == one
    assert all(objection.sentence for objection in objections(one))


def test_the_largest_machine_fits_what_the_link_carries() -> None:
    device = gpu(63, "x" * 60, 2**31, uuid="GPU-" + "0" * 36, cuda="12.8", power_limit_w=100_000, ecc=True)
    full = machine(
        *(replace(device, pcie=Pcie(20, 64), failing="GPU is lost") for _ in range(DEVICES_MAX)),
        links=(DeviceLink(62, 63, LinkKind.NVLINK, 64, 20, 100_000),) * LINKS_MAX,
    )
    assert len(facts_of(full)) <= FACTS_MAX_BYTES
    assert machine_of(facts_of(full)) == full


def test_what_newer_agents_add_is_skipped_and_what_older_ones_leave_out_has_its_default() -> None:
    told = json.loads(facts_of(PAIR)) | {"colour": "green"}
    del told["links"], told["engines"], told["network"]
    assert machine_of(json.dumps(told).encode()) == replace(PAIR, links=())


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("cores",), 0, "cores must be a whole number from 1 to 65,536."),
        (("cores",), 1.5, "cores must be a whole number"),
        (("cores",), True, "cores must be a whole number"),
        (("cores",), "8", "cores must be a whole number"),
        (("cores",), 10**400, "cores must be a whole number"),
        (("memory_mib",), -1, "memory_mib must be a whole number"),
        (("system",), "x" * 101, "system must be a text of at most 100 printable characters."),
        (("system",), "red\x1b[31m", "system must be a text"),
        (("system",), "nul\x00", "system must be a text"),
        (("system",), "\ud800", "system must be a text"),
        (("system",), "\u202eright to left", "system must be a text"),
        (("system",), None, "system must be a text"),
        (("system",), ["x"], "system must be a text"),
        (("devices",), {}, "devices must be a list of at most 64."),
        (("devices",), [{}] * 65, "devices must be a list of at most 64."),
        (("devices", 1), None, "devices[1] must be an object."),
        (("devices", 1, "kind"), "tpu", "devices[1].kind must be one of nvidia, amd, cpu."),
        (("devices", 1, "kind"), {}, "devices[1].kind must be one of"),
        (("devices", 1, "ecc"), 1, "devices[1].ecc must be true or false."),
        (("devices", 1, "index"), 64, "devices[1].index must be a whole number from 0 to 63."),
        (("devices", 1, "pcie"), {"generation": 4}, "devices[1].pcie.width must be there."),
        (("links", 0, "count"), 0, "links[0].count must be a whole number from 1 to 64."),
        (("network",), {"down_bps": -1}, "network.down_bps must be a whole number"),
        (("network",), None, "network must be an object."),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(path: tuple[str | int, ...], value: object, said: str) -> None:
    told = json.loads(facts_of(PAIR))
    place = told
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    refused = machine_of(json.dumps(told).encode())
    assert isinstance(refused, HardwareObjection)
    assert refused.refusal is HardwareRefusal.FACTS_MALFORMED
    assert refused.sentence.startswith(said)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'{"cores": NaN}',
        b'{"cores": Infinity}',
        b'{"cores": ' + b"9" * 5_000 + b"}",
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b" " * (FACTS_MAX_BYTES + 1),
    ],
)
def test_a_body_that_is_no_machine_is_refused(body: bytes) -> None:
    refused = machine_of(body)
    assert isinstance(refused, HardwareObjection)
    assert refused.refusal is HardwareRefusal.FACTS_MALFORMED


@given(st.binary(max_size=300))
def test_any_bytes_at_all_are_read_or_refused(body: bytes) -> None:
    assert isinstance(machine_of(body), HardwareObjection | Machine)


@pytest.mark.parametrize(
    "one",
    [
        machine(),
        machine(CPU),
        PAIR,
        machine(gpu(0, "Some GPU of next year", 1_000_000)),
        machine(gpu(0, "", 0, uuid="", driver="", failing="GPU is lost"), gpu(1)),
        machine(gpu(0, "NVIDIA A10", 23_028, ecc=True)),
        machine(
            *(gpu(index, "NVIDIA H100 80GB HBM3", 81_559) for index in range(2)),
            links=(DeviceLink(0, 1, LinkKind.NVLINK, 18, 4, 956),),
        ),
    ],
)
def test_a_machine_that_can_be_meets_no_objection(one: Machine) -> None:
    assert objections(one) == ()


@pytest.mark.parametrize(
    ("one", "refusal", "figures"),
    [
        (
            machine(gpu(0, "NVIDIA GeForce RTX 3060", 24_576)),
            HardwareRefusal.DEVICE_MEMORY_IMPLAUSIBLE,
            "Device 0, GeForce RTX 3060, has 8,192 MiB or 12,288 MiB of memory and claims 24,576 MiB.",
        ),
        (
            machine(replace(CPU, memory_mib=128_001)),
            HardwareRefusal.DEVICE_MEMORY_IMPLAUSIBLE,
            "The CPU claims 128,001 MiB of memory, the machine has 128,000 MiB.",
        ),
        (
            machine(gpu(0, kind=DeviceKind.AMD)),
            HardwareRefusal.DEVICE_MAKER_WRONG,
            "Device 0, GeForce RTX 3090, is by nvidia, its driver by amd.",
        ),
        (machine(gpu(0, "")), HardwareRefusal.DEVICE_INCOMPLETE, "Of device 0 something is missing."),
        (machine(gpu(0, "New", 0)), HardwareRefusal.DEVICE_INCOMPLETE, "Of device 0 something is missing."),
        (machine(gpu(1), gpu(0)), HardwareRefusal.DEVICES_DISORDERED, "The devices are numbered 1, 0."),
        (machine(gpu(0), gpu(1, uuid="GPU-0")), HardwareRefusal.DEVICE_TWICE, "Devices 0 and 1 are both GPU-0."),
        (machine(gpu(0), links=(BRIDGE,)), HardwareRefusal.LINK_IMPLAUSIBLE, "A link joins devices 0 and 1 of 1."),
        (
            machine(gpu(0), gpu(1), links=(replace(BRIDGE, one=1),)),
            HardwareRefusal.LINK_IMPLAUSIBLE,
            "A link joins devices 1 and 1 of 2.",
        ),
        (
            machine(gpu(0), gpu(1), links=(BRIDGE, BRIDGE)),
            HardwareRefusal.LINK_IMPLAUSIBLE,
            "Devices 0 and 1 are linked twice.",
        ),
        (
            machine(gpu(0), gpu(1, "NVIDIA GeForce RTX 4090"), links=(BRIDGE,)),
            HardwareRefusal.LINK_IMPLAUSIBLE,
            "Device 1, GeForce RTX 4090, has 0 GB/s of NVLink and claims 112 GB/s.",
        ),
        (
            machine(gpu(0, "New"), gpu(1), links=(replace(BRIDGE, gb_per_s=900),)),
            HardwareRefusal.LINK_IMPLAUSIBLE,
            "Device 1, GeForce RTX 3090, has 112.5 GB/s of NVLink and claims 900 GB/s.",
        ),
        (
            machine(gpu(0, "New"), gpu(1, "New", kind=DeviceKind.AMD), links=(BRIDGE,)),
            HardwareRefusal.LINK_IMPLAUSIBLE,
            "Device 1 is by amd and claims a link of the kind nvlink.",
        ),
    ],
)
def test_a_claim_that_cannot_be_is_refused_with_both_figures(
    one: Machine, refusal: HardwareRefusal, figures: str
) -> None:
    assert objections(one) == (HardwareObjection(refusal, figures),)
    assert objections(one)[0].sentence == f"{figures} {refusal.sentence}"
