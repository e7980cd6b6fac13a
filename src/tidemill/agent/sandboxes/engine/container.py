"""What an engine is told about one run: the body of the call that creates its container. Pure.

The image decides nothing about the run's limits: neither by its user, nor its entry point, nor the volumes it declares.
Volumes would be unlimited space on the engine's disk, so they become memory of a fixed size instead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tidemill.agent.sandboxes.bubblewrap.view import LINKS, WORK
from tidemill.agent.sandboxes.cgroups import PERIOD_US
from tidemill.agent.sandboxes.engine.keeper import LABEL
from tidemill.core.jobs.sandboxes import Mount, RunLimits, RunSpecification

PROCESSES_OF_A_USER = 4096
"""Without a number, some engines ask for more than their host allows. Its group limits a run's own processes."""
PODMANS_OWN = ("/run", "/var/tmp")  # noqa: S108
HOST_NAME = "task"
TEMPORARY = "/tmp"  # noqa: S108 - the run's own


@dataclass(frozen=True)
class ContainerSetting:
    """What the run's specification does not say: directory, user, image, and the filter of system calls."""

    mark: str
    work: Path
    hosts: Path
    """The names of machines that it knows. Podman would show it those that the machine knows."""
    user: int
    image: str
    volumes: tuple[str, ...]
    """Directories that the image wants to be volumes."""
    calls: str | None
    is_podman: bool


def creation(specification: RunSpecification, setting: ContainerSetting) -> dict[str, object]:
    program, *arguments = specification.command.arguments
    return {
        "Image": setting.image,
        "Entrypoint": [program],
        "Cmd": arguments,
        "Env": [f"{name}={value}" for name, value in specification.command.environment.items()],
        "User": f"{setting.user}:{setting.user}",
        "WorkingDir": WORK,
        "Hostname": HOST_NAME,
        "Labels": {LABEL: setting.mark},
        "AttachStdout": True,
        "AttachStderr": True,
        "NetworkDisabled": not specification.grants.network,
        "HostConfig": _host_config(specification, setting),
    }


def _host_config(specification: RunSpecification, setting: ContainerSetting) -> dict[str, object]:
    limits = specification.limits
    return {
        "NetworkMode": "bridge" if specification.grants.network else "none",
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
        "Tmpfs": {path: _size(limits) for path in _writable(setting) if path != WORK},
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in _resources(limits).items()],
        "Mounts": [
            _bind_mount(str(setting.work), WORK, read_only=False),
            _bind_mount(str(setting.hosts), "/etc/hosts", read_only=True),
            *_inputs(specification),
        ],
        "LogConfig": {"Type": "none"},
        "RestartPolicy": {"Name": "no"},
        **_devices(specification, setting.is_podman),
    }


def system_mounts() -> list[Mount]:
    """The machine's programs and libraries, for runs without an image: the targets of the empty image's links."""
    paths = [Path("/usr"), *(Path(link) for link in LINKS if Path(link).is_dir() and not Path(link).is_symlink())]
    return [Mount(PurePosixPath(path), PurePosixPath(path)) for path in paths]


def _inputs(specification: RunSpecification) -> Iterable[dict[str, object]]:
    mounts = [*([] if specification.image else system_mounts()), *specification.inputs]
    return [_bind_mount(str(mount.source), str(mount.target), read_only=True) for mount in mounts]


def _bind_mount(source: str, target: str, read_only: bool) -> dict[str, object]:
    return {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}


def _writable(setting: ContainerSetting) -> list[str]:
    """Directories in memory. Podman makes more than the usual one, without a limit unless it is given one."""
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


def _devices(specification: RunSpecification, is_podman: bool) -> dict[str, object]:
    """Device files by path, GPUs by name: Docker asks the driver's tools for a name, Podman their description."""
    files = [_device(str(device)) for device in specification.grants.devices]
    gpus = specification.grants.gpus
    if not gpus or is_podman:
        return {"Devices": [*files, *(_device(f"nvidia.com/gpu={gpu}") for gpu in gpus)]}
    gpu_request = {"Driver": "nvidia", "DeviceIDs": list(gpus), "Capabilities": [["gpu", "compute", "utility"]]}
    return {"Devices": files, "DeviceRequests": [gpu_request]}


def _device(path: str) -> dict[str, str]:
    return {"PathOnHost": path, "PathInContainer": path, "CgroupPermissions": "rw"}
