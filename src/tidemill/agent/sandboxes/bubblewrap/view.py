"""What a run sees of the machine, as bubblewrap's options. Pure.

The root has the system's programs and libraries, read-only, and a few files of our own. Nothing of the owner's, the
agent's or another run's has a path in it. Every writable directory has a size limit.
"""

from pathlib import Path

from tidemill.core.jobs.sandboxes import RunSpecification

WORK = "/work"
LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""On most systems these are links into /usr; where they are directories, the run sees directories."""
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives")
NETWORK_FILES = ("/etc/resolv.conf", "/etc/ssl", "/etc/ca-certificates", "/etc/hosts", "/etc/nsswitch.conf")
TASK_ID = 1000
"""The user and group that a run sees itself as; outside it is another."""


def options(specification: RunSpecification, work: Path, system: list[str], stage: Path | None) -> list[str]:
    """All options but the descriptors. Later mounts cover earlier ones, and the root becomes read-only at the end.

    With a stage, inputs are there by their number: the launcher mounted them with its own rights.
    """
    limits = specification.limits
    sources = staged(specification).values() if stage is None else [str(stage / name) for name in staged(specification)]
    return [
        *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"),
        *("--uid", str(TASK_ID), "--gid", str(TASK_ID), "--hostname", "task"),
        *(["--share-net", *_read_only(NETWORK_FILES)] if specification.grants.network else []),
        *system,
        *_kernel_files(limits.shared_memory_bytes),
        *("--size", str(limits.temporary_bytes), "--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108 - the run's own
        *(part for device in specification.grants.devices for part in ("--dev-bind", str(device), str(device))),
        *(
            part
            for source, mount in zip(sources, specification.inputs, strict=True)
            for part in ("--ro-bind", source, str(mount.target))
        ),
        *("--bind", str(work), WORK, "--chdir", WORK),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *(part for name, value in specification.command.environment.items() for part in ("--setenv", name, value)),
    ]


def staged(specification: RunSpecification) -> dict[str, str]:
    """The paths of the run's inputs, by their names on the stage."""
    return {str(number): str(mount.source) for number, mount in enumerate(specification.inputs)}


def system_options() -> list[str]:
    """Options for programs and libraries, as this machine has them. They are the same for all runs: call it once."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for link in map(Path, LINKS):
        if link.is_symlink():
            arguments += ["--symlink", str(link.readlink()), str(link)]
        elif link.is_dir():
            arguments += ["--ro-bind", str(link), str(link)]
    return [*arguments, *_read_only(SYSTEM_FILES)]


def _kernel_files(shared_memory_bytes: int) -> list[str]:
    """Hide /proc/1: the first process is the sandbox's own, and a run that reached its memory could outlive it."""
    return [
        *("--proc", "/proc", "--size", "4096", "--perms", "0555", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"),
        *("--dev", "/dev", "--size", str(shared_memory_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"),  # noqa: S108
    ]


def _read_only(paths: tuple[str, ...]) -> list[str]:
    return [part for path in paths for part in ("--ro-bind-try", path, path)]
