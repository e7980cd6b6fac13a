"""What an engine is told about one run: the body of the request that creates its container. Pure.

Nothing of the image decides how the run is held: not its user, its entry point, nor the volumes it declares, which
would be room on the engine's disk without a limit and become memory of a fixed size instead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tidemill.agent.sandboxes.bubblewrap.view import LINKS, WORK
from tidemill.agent.sandboxes.cgroups import PERIOD_US
from tidemill.agent.sandboxes.engine.keeper import LABEL
from tidemill.core.jobs.sandboxes import Mount, RunLimits, RunSpecification

PROCESSES_OF_A_USER = 4096
"""Some engines ask for more than their host lets them unless they are told; a run's own are counted by its group."""
PODMANS_OWN = ("/run", "/var/tmp")  # noqa: S108
TEMPORARY = "/tmp"  # noqa: S108 - the run's own


@dataclass(frozen=True)
class ContainerSetting:
    """What does not come from the order: where, as whom, in which image, and how calls are refused."""

    mark: str
    work: Path
    user: int
    image: str
    volumes: tuple[str, ...]
    """Directories that the image wants to be volumes."""
    calls: str | None
    is_podman: bool


def creation(order: RunSpecification, setting: ContainerSetting) -> dict[str, object]:
    program, *arguments = order.command.arguments
    return {
        "Image": setting.image,
        "Entrypoint": [program],
        "Cmd": arguments,
        "Env": [f"{name}={value}" for name, value in order.command.environment.items()],
        "User": f"{setting.user}:{setting.user}",
        "WorkingDir": WORK,
        "Hostname": "task",
        "Labels": {LABEL: setting.mark},
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": not order.grants.network,
        "HostConfig": _held(order, setting),
    }


def _held(order: RunSpecification, setting: ContainerSetting) -> dict[str, object]:
    limits = order.limits
    return {
        "NetworkMode": "bridge" if order.grants.network else "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", *([f"seccomp={setting.calls}"] if setting.calls else [])],
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "PidsLimit": limits.pids,
        "CpuPeriod": PERIOD_US,
        "CpuQuota": max(1000, int(limits.cpu_share * PERIOD_US)),
        "ShmSize": limits.shared_memory_bytes,
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "OomScoreAdj": 1000,
        "Tmpfs": {place: _size(limits) for place in _writable(setting) if place != WORK},
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in _resources(limits).items()],
        "Mounts": [_bound(str(setting.work), WORK, read_only=False), *_inputs(order)],
        "LogConfig": {"Type": "none"},
        "RestartPolicy": {"Name": "no"},
        **_devices(order, setting.is_podman),
    }


def system_mounts() -> list[Mount]:
    """The machine's programs and libraries, for runs that bring no image: what the empty image's links lead to."""
    places = [Path("/usr"), *(Path(link) for link in LINKS if Path(link).is_dir() and not Path(link).is_symlink())]
    return [Mount(PurePosixPath(place), PurePosixPath(place)) for place in places]


def _inputs(order: RunSpecification) -> Iterable[dict[str, object]]:
    mounts = [*([] if order.image else system_mounts()), *order.inputs]
    return [_bound(str(mount.source), str(mount.target), read_only=True) for mount in mounts]


def _bound(source: str, target: str, read_only: bool) -> dict[str, object]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def _writable(setting: ContainerSetting) -> list[str]:
    """Podman makes more than the usual place in memory, without any size unless it is told."""
    return [TEMPORARY, *(PODMANS_OWN if setting.is_podman else ()), *setting.volumes]


def _size(limits: RunLimits) -> str:
    return f"rw,nosuid,nodev,mode=1777,size={limits.temporary_bytes}"


def _resources(limits: RunLimits) -> Mapping[str, int]:
    return {
        "nofile": limits.open_files,
        "nproc": max(limits.pids, PROCESSES_OF_A_USER),
        "fsize": min(limits.file_bytes, limits.disk_bytes),
        **{"core": 0, "memlock": 0, "msgqueue": 0, "rtprio": 0, "nice": 0, "sigpending": 1024},
    }


def _devices(order: RunSpecification, is_podman: bool) -> dict[str, object]:
    """Files as they are; GPUs by name, which Docker asks of the driver's tools and Podman of their description."""
    files = [_device(str(device)) for device in order.grants.devices]
    gpus = order.grants.gpus
    if not gpus or is_podman:
        return {"Devices": [*files, *(_device(f"nvidia.com/gpu={gpu}") for gpu in gpus)]}
    asked = {"Driver": "nvidia", "DeviceIDs": list(gpus), "Capabilities": [["gpu", "compute", "utility"]]}
    return {"Devices": files, "DeviceRequests": [asked]}


def _device(path: str) -> dict[str, str]:
    return {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"}
