"""The agent's hardware through the makers' real bindings, on driver libraries that stand in for the real ones."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from tidemill.agent.machine.cpu import CpuUsage
from tidemill.agent.machine.operating_system import disk_free_mib, engines, host

pytestmark = pytest.mark.needs("gcc")

HERE = Path(__file__).parent
GPU_IS_LOST, NOT_SUPPORTED, UNKNOWN, DRIVER_NOT_LOADED, VERSION_MISMATCH = "15", "3", "999", "9", "18"

PAIR = {"NVML_COUNT": "2", "GPU_0_LINKS": "4", "GPU_0_PEER": "1", "GPU_1_LINKS": "4", "GPU_1_PEER": "0"}
"""Two cards with a bridge between them."""


class Asker:
    """A child process that asks the drivers, in an environment of our choice."""

    def __init__(self, libraries: Path | None, home: Path, told: dict[str, str], waits: tuple[float, float]) -> None:
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("ROCM", "LD_"))}
        if libraries is not None:
            variables |= {"LD_LIBRARY_PATH": str(libraries)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.worlds.agents.hardware_asker", str(home), *map(str, waits)],
            cwd=HERE.parents[2],
            env=variables | {"PATH": str(home)} | told,  # without engines, whose versions take time to tell
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, what: str, **told: str | None) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps({"ask": what, "set": told}) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def machine(self, **told: str | None) -> dict[str, Any]:
        answer = self.ask("machine", **told)
        assert not answer["objections"]
        machine: dict[str, Any] = answer["machine"]
        return machine

    def devices(self, **told: str | None) -> list[dict[str, Any]]:
        """The states of the devices."""
        answer = self.ask("state", **told)
        assert not answer["objections"]
        devices: list[dict[str, Any]] = answer["state"]["devices"]
        return devices

    def end(self) -> int:
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(20)


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library that stands in for NVIDIA's."""
    return _compiled(tmp_path_factory.mktemp("nvml"), "libnvidia-ml.so.1", HERE / "nvml_stand_in.c")


@pytest.fixture(scope="module")
def amd_smi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library that stands in for AMD's, with every function that its binding wants."""
    folder = tmp_path_factory.mktemp("amd")
    written = (HERE / "amd_smi_stand_in.c").read_text("utf-8")
    binding = Path(str(distribution("amdsmi").locate_file("amdsmi/amdsmi_wrapper.py"))).read_text("utf-8")
    wanted = set(re.findall(r"_libraries\['libamd_smi\.so'\]\.(\w+)", binding))
    missing = sorted(name for name in wanted if f"int {name}(" not in written)
    (folder / "rest.c").write_text("".join(f"int {name}(void) {{ return 2; }}\n" for name in missing), "ascii")
    return _compiled(folder, "libamd_smi.so", HERE / "amd_smi_stand_in.c", folder / "rest.c")


@pytest.fixture
def asker(nvml: Path, tmp_path: Path) -> Iterator[Callable[..., Asker]]:
    """Starts askers on NVIDIA's stand-in, and ends them."""
    started: list[Asker] = []

    def start(told: dict[str, str], libraries: Path | None = nvml, waits: tuple[float, float] = (20, 20)) -> Asker:
        started.append(Asker(libraries, tmp_path, told, waits))
        return started[-1]

    yield start
    for one in started:
        with one.process:  # which closes its pipes and waits for it
            one.process.kill()


def test_two_gpus_with_a_bridge_are_read_whole(asker: Callable[..., Asker]) -> None:
    one = asker({**PAIR, "GPU_0_LINK_SPEED": "14062", "GPU_1_LINK_SPEED": "14062"})
    machine = one.machine()
    assert machine["devices"][0] == {
        "index": 0,
        "kind": "nvidia",
        "name": "NVIDIA GeForce RTX 3090",
        "uuid": "GPU-00000000-0000-0000-0000-000000000000",
        "memory_mib": 24_576,
        "driver": "570.86.10",
        "cuda": "12.8",
        "power_limit_w": 350,
        "pcie": {"generation": 4, "width": 16},
    }
    link = {"one": 0, "other": 1, "kind": "nvlink", "count": 4, "generation": 3, "gb_per_s": 112}
    assert machine["links"] == [link]
    assert machine["memory_mib"] > 0
    assert machine["disk_mib"] > 0
    assert machine["cores"] >= 1
    states = one.devices(GPU_1_TEMPERATURE="93", GPU_1_UTILISATION="100", GPU_1_USED="24000")
    assert states[0] | {"failing": None} == {
        "index": 0,
        "utilisation_pct": 7,
        "memory_used_mib": 512,
        "temperature_c": 41,
        "power_w": 31,
        "ecc_corrected": None,
        "ecc_uncorrected": None,
        "failing": None,
    }
    assert (states[1]["temperature_c"], states[1]["utilisation_pct"], states[1]["memory_used_mib"]) == (93, 100, 24_000)
    assert one.end() == 0


def test_a_gpu_that_falls_off_the_bus_is_failing_and_its_neighbour_is_not(asker: Callable[..., Asker]) -> None:
    one = asker(PAIR)
    assert [device.get("failing") for device in one.machine()["devices"]] == [None, None]
    states = one.devices(GPU_1_FAIL=GPU_IS_LOST)
    assert [state["failing"] for state in states] == [None, "GPU is lost"]
    assert states[0]["temperature_c"] == 41
    again = one.machine()
    assert [device.get("failing") for device in again["devices"]] == [None, "GPU is lost"]
    assert again["links"] == []
    assert [state["failing"] for state in one.devices()] == [None, "GPU is lost"]
    assert [device.get("failing") for device in one.machine(GPU_1_FAIL=None)["devices"]] == [None, None]


def test_whatever_question_fails_the_device_is_failing_in_the_drivers_words(asker: Callable[..., Asker]) -> None:
    words = {GPU_IS_LOST: "GPU is lost", UNKNOWN: "Unknown Error", "777": "An error nobody has heard of"}
    one = asker({"NVML_COUNT": "2"})
    for function in ("HANDLE", "NAME", "UUID", "MEMORY", "LIMIT", "ECC", "PCIE"):
        for code, said in words.items():
            well, failing = one.machine(**{f"GPU_1_FAIL_{function}": code})["devices"]
            assert "failing" not in well
            assert said in failing["failing"]
            assert said in one.devices()[1]["failing"]
        one.machine(**{f"GPU_1_FAIL_{function}": None})
    assert [state["failing"] for state in one.devices()] == [None, None]


def test_what_a_model_does_not_have_is_left_out(asker: Callable[..., Asker]) -> None:
    without = {f"GPU_0_FAIL_{what}": NOT_SUPPORTED for what in ("LIMIT", "PCIE", "POWER", "UTILISATION", "TEMPERATURE")}
    one = asker({"NVML_COUNT": "1", **without})
    device = one.machine()["devices"][0]
    assert not {"failing", "power_limit_w", "pcie", "ecc"} & set(device)
    state = one.devices()[0]
    assert [state[what] for what in ("failing", "power_w", "temperature_c", "utilisation_pct")] == [None, None, None, 0]
    assert one.devices(GPU_0_OLD_TEMPERATURE="66")[0]["temperature_c"] == 66


def test_errors_of_the_memory_are_counted_where_it_corrects_them(asker: Callable[..., Asker]) -> None:
    told = {"GPU_0_NAME": "NVIDIA A10", "GPU_0_MEMORY": "23028", "GPU_0_ECC": "1", "GPU_0_CORRECTED": "12"}
    one = asker({"NVML_COUNT": "1", **told, "GPU_0_UNCORRECTED": "3"})
    assert one.machine()["devices"][0]["ecc"] is True
    state = one.devices()[0]
    assert (state["ecc_corrected"], state["ecc_uncorrected"]) == (12, 3)


def test_gpus_on_a_switch_are_linked_each_with_each(asker: Callable[..., Asker]) -> None:
    told = {f"GPU_{gpu}_{what}": value for gpu in range(4) for what, value in _HOPPER.items()}
    links = asker({"NVML_COUNT": "4", **told}).machine()["links"]
    pairs = [(link["one"], link["other"]) for link in links]
    assert pairs == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert {(link["count"], link["generation"], link["gb_per_s"]) for link in links} == {(18, 4, 956)}


_HOPPER = {
    "NAME": "NVIDIA H100 80GB HBM3",
    "MEMORY": "81559",
    "ECC": "1",
    "LINKS": "18",
    "LINK_VERSION": "6",
    "LINK_SPEED": "26562",
}


def test_a_driver_that_hangs_blocks_nobody_and_is_heard_when_it_answers_again(asker: Callable[..., Asker]) -> None:
    one = asker(PAIR, waits=(1.5, 0.5))
    one.machine()
    silent = one.ask("state", GPU_1_HANG="1")
    assert 0.5 <= silent["took_s"] < 5
    assert silent["turns"] > 5, "the event loop stood still"
    failing = [state["failing"] for state in silent["state"]["devices"]]
    assert all("The NVIDIA driver has not answered for 0.5 s" in said for said in failing)
    assert silent["state"]["disk_free_mib"] > 0
    again = one.machine()["devices"]
    assert [device["name"] for device in again] == ["NVIDIA GeForce RTX 3090"] * 2
    assert all("has not answered" in device["failing"] for device in again)
    assert "has not answered" in one.devices()[0]["failing"]
    one.machine(GPU_1_HANG=None)
    _until(lambda: "failing" not in one.machine()["devices"][0])
    assert one.devices()[0]["failing"] is None
    assert one.end() == 0


def test_a_driver_that_hangs_from_the_beginning_is_one_failing_device(asker: Callable[..., Asker]) -> None:
    one = asker({**PAIR, "NVML_HANG": "1"}, waits=(1.5, 0.5))
    devices = one.machine()["devices"]
    assert [(device["kind"], device["name"]) for device in devices] == [("nvidia", "")]
    assert "has not answered" in devices[0]["failing"]
    assert one.end() == 0, "a hanging call kept the process from ending"


def test_an_answer_that_comes_after_its_deadline_is_not_taken_for_another(asker: Callable[..., Asker]) -> None:
    one = asker({**PAIR, "NVML_HANG": "1"}, waits=(1.5, 0.5))
    assert len(one.machine()["devices"]) == 1
    assert len(one.devices(NVML_HANG=None)) == 1
    _until(lambda: len(one.machine()["devices"]) == 2)
    assert [state["failing"] for state in one.devices()] == [None, None]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"NVML_FAIL_INIT": VERSION_MISMATCH}, "version mismatch"),
        ({"NVML_FAIL_INIT": UNKNOWN}, "Unknown Error"),
        ({"NVML_FAIL_COUNT": UNKNOWN}, "Unknown Error"),
    ],
)
def test_a_driver_that_does_not_work_is_a_failing_device(
    asker: Callable[..., Asker], told: dict[str, str], said: str
) -> None:
    one = asker({**PAIR, **told})
    devices = one.machine()["devices"]
    assert [device["kind"] for device in devices] == ["nvidia"]
    assert said in devices[0]["failing"]
    assert said in one.devices()[0]["failing"]
    assert len(one.machine(**dict.fromkeys(told))["devices"]) == 2


@pytest.mark.parametrize("told", [{"NVML_FAIL_INIT": DRIVER_NOT_LOADED}, {"NVML_COUNT": "0"}])
def test_without_gpus_the_processor_is_the_device(asker: Callable[..., Asker], told: dict[str, str]) -> None:
    one = asker(told)
    machine = one.machine()
    (device,) = machine["devices"]
    assert (device["kind"], device["memory_mib"]) == ("cpu", machine["memory_mib"])
    assert one.devices()[0]["failing"] is None
    assert machine["links"] == []


def test_without_any_driver_the_processor_is_the_device(asker: Callable[..., Asker]) -> None:
    assert [device["kind"] for device in asker({}, libraries=None).machine()["devices"]] == ["cpu"]


def test_whatever_a_driver_says_the_facts_can_be_read(asker: Callable[..., Asker]) -> None:
    huge = str(2**64 - 1)
    one = asker({"NVML_COUNT": "4000000000", "GPU_0_NAME": "x" * 90 + "\x1b[31m", "GPU_1_UUID": "\tGPU \u202e1"})
    strange = {"GPU_2_NAME": "[[]]", "GPU_2_MEMORY": str(2**43), "GPU_2_LIMIT": huge, "GPU_2_PCIE": huge}
    machine = one.machine(NVML_CUDA="2000000000", **strange)
    assert len(machine["devices"]) == 64
    assert "\x1b" not in machine["devices"][0]["name"]
    one.devices(GPU_2_TEMPERATURE=huge, GPU_2_UTILISATION=huge, GPU_2_POWER=huge, GPU_2_USED=huge)


def test_a_name_that_is_not_text_makes_its_device_failing(asker: Callable[..., Asker]) -> None:
    device = asker({"NVML_COUNT": "1", "GPU_0_NAME": os.fsdecode(b"RTX \xff")}).machine()["devices"][0]
    assert "codec can't decode" in device["failing"]


def test_a_claim_that_cannot_be_is_noticed_by_the_agent_itself(asker: Callable[..., Asker]) -> None:
    answer = asker({"NVML_COUNT": "1", "GPU_0_NAME": "NVIDIA GeForce RTX 3060"}).ask("machine")
    assert "8,192 MiB or 12,288 MiB" in answer["objections"][0]
    assert "24,576 MiB" in answer["objections"][0]


def test_how_busy_the_processor_is_counts_from_the_last_question() -> None:
    busy = CpuUsage()
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        pass
    assert 0 < busy.percent() <= 100


def test_a_disk_that_cannot_be_asked_has_no_room(tmp_path: Path) -> None:
    assert host(tmp_path / "nowhere").disk_mib == 0
    assert disk_free_mib(tmp_path / "nowhere") == 0
    assert 0 < disk_free_mib(tmp_path) <= host(tmp_path).disk_mib


def test_engines_are_found_with_their_versions_and_one_that_hangs_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, does in (("docker", "echo Docker version 27.3.1, build ce12230"), ("podman", "exec sleep 60")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n", "ascii")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert {engine.name: engine.version for engine in engines(within_s=0.5)} | {"bubblewrap": ""} == {
        "docker": "27.3.1",
        "podman": "",
        "bubblewrap": "",
    }


def test_gpus_by_amd_are_read_whole_and_one_that_fails_is_failing(asker: Callable[..., Asker], amd_smi: Path) -> None:
    one = asker({"AMD_COUNT": "2", "AMD_1_CORRECTED": "5"}, libraries=amd_smi)
    machine = one.machine()
    assert machine["devices"][1] == {
        "index": 1,
        "kind": "amd",
        "name": "AMD Instinct MI300X",
        "uuid": "c4ff74a1-0000-1000-8000-000000000001",
        "memory_mib": 196_592,
        "driver": "6.10.5",
        "power_limit_w": 750,
        "ecc": True,
    }
    assert machine["links"] == [{"one": 0, "other": 1, "kind": "xgmi", "count": 1}]
    state = one.devices(AMD_1_UTILISATION="64")[1]
    assert (state["utilisation_pct"], state["memory_used_mib"], state["power_w"]) == (64, 283, 140)
    assert (state["temperature_c"], state["ecc_corrected"], state["failing"]) == (45, 5, None)
    well, failing = one.devices(AMD_1_FAIL="6")
    assert well["failing"] is None
    assert "AMDSMI_STATUS_DRM_ERROR" in failing["failing"]
    assert "AMDSMI_STATUS_DRM_ERROR" in one.machine()["devices"][1]["failing"]


def test_a_binding_by_amd_of_another_version_makes_its_devices_failing(
    asker: Callable[..., Asker], amd_smi: Path, tmp_path: Path
) -> None:
    shutil.copytree(str(distribution("amdsmi").locate_file("amdsmi")), tmp_path / "amdsmi")
    names = (tmp_path / "amdsmi" / "__init__.py").read_text("utf-8")
    older = names.replace("from .amdsmi_interface import amdsmi_get_gpu_activity\n", "")
    assert older != names
    (tmp_path / "amdsmi" / "__init__.py").write_text(older, "utf-8")
    one = asker({"AMD_COUNT": "1", "PYTHONPATH": str(tmp_path)}, libraries=amd_smi)
    assert [device["kind"] for device in one.machine()["devices"]] == ["amd"]
    assert "amdsmi_get_gpu_activity" in one.devices()[0]["failing"]


def test_an_amd_driver_that_is_not_loaded_is_no_device_and_one_that_does_not_work_a_failing_one(
    asker: Callable[..., Asker], amd_smi: Path
) -> None:
    one = asker({"AMD_COUNT": "2", "AMD_INIT": "34"}, libraries=amd_smi)
    assert [device["kind"] for device in one.machine()["devices"]] == ["cpu"]
    (device,) = one.machine(AMD_INIT="6")["devices"]
    assert "AMDSMI_STATUS_DRM_ERROR" in device["failing"]
    assert [device["kind"] for device in one.machine(AMD_INIT=None)["devices"]] == ["amd", "amd"]


def test_gpus_of_both_makers_are_numbered_through(
    asker: Callable[..., Asker], nvml: Path, amd_smi: Path, tmp_path: Path
) -> None:
    for library in (*nvml.glob("*.so*"), *amd_smi.glob("*.so*")):
        (tmp_path / library.name).symlink_to(library)
    one = asker({**PAIR, "AMD_COUNT": "2"}, libraries=tmp_path)
    machine = one.machine()
    assert [(device["index"], device["kind"]) for device in machine["devices"]] == [
        (0, "nvidia"),
        (1, "nvidia"),
        (2, "amd"),
        (3, "amd"),
    ]
    assert [(link["one"], link["other"], link["kind"]) for link in machine["links"]] == [
        (0, 1, "nvlink"),
        (2, 3, "xgmi"),
    ]
    assert [state["index"] for state in one.devices()] == [0, 1, 2, 3]


def _until(holds: Callable[[], bool], tries: int = 50) -> None:
    assert any(holds() for _ in range(tries))


def _compiled(folder: Path, name: str, *sources: Path) -> Path:
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(folder / name), *map(str, sources)], check=True)
    return folder
