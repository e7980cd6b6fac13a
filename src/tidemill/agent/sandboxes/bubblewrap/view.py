"""What a run sees of the machine, as bubblewrap's options. Pure.

The root is made of the system's programs and libraries, read-only, and a few files of our own; nothing of the
owner's, the agent's or another run's has a path in it. Every place that can be written to has a size.
"""

from pathlib import Path

from tidemill.core.jobs.sandboxes import RunSpecification

WORK = "/work"
LINKS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""On most systems they point into /usr; where they are directories, they are shown as such."""
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives")
NETWORK_FILES = ("/etc/resolv.conf", "/etc/ssl", "/etc/ca-certificates", "/etc/hosts", "/etc/nsswitch.conf")
TASK_ID = 1000
"""The user and group that a run sees itself as; outside it is another."""


def options(order: RunSpecification, work: Path, system: list[str], stage: Path | None) -> list[str]:
    """All options but the descriptors. Later ones cover earlier ones, and the root is closed at the end.

    With a stage, inputs are found there by their number, mounted by somebody who may go where they are.
    """
    limits = order.limits
    found = staged(order).values() if stage is None else [str(stage / name) for name in staged(order)]
    return [
        *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"),
        *("--uid", str(TASK_ID), "--gid", str(TASK_ID), "--hostname", "task"),
        *(["--share-net", *_shown(NETWORK_FILES)] if order.grants.network else []),
        *system,
        *_kernel_files(limits.shared_memory_bytes),
        *("--size", str(limits.temporary_bytes), "--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108 - the run's own
        *(part for device in order.grants.devices for part in ("--dev-bind", str(device), str(device))),
        *(
            part
            for source, mount in zip(found, order.inputs, strict=True)
            for part in ("--ro-bind", source, str(mount.target))
        ),
        *("--bind", str(work), WORK, "--chdir", WORK),
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *(part for name, value in order.command.environment.items() for part in ("--setenv", name, value)),
    ]


def staged(order: RunSpecification) -> dict[str, str]:
    """What the run may read, by the name that it has on the stage."""
    return {str(number): str(mount.source) for number, mount in enumerate(order.inputs)}


def system_options() -> list[str]:
    """Programs and libraries, as this machine has laid them out. The same for all runs, so looked up once."""
    found = ["--ro-bind", "/usr", "/usr"]
    for link in map(Path, LINKS):
        if link.is_symlink():
            found += ["--symlink", str(link.readlink()), str(link)]
        elif link.is_dir():
            found += ["--ro-bind", str(link), str(link)]
    return [*found, *_shown(SYSTEM_FILES)]


def _kernel_files(shared_memory_bytes: int) -> list[str]:
    """The first process is the sandbox's own and obeys the agent: a run that reached its memory could outlive it."""
    return [
        *("--proc", "/proc", "--size", "4096", "--perms", "0555", "--tmpfs", "/proc/1", "--remount-ro", "/proc/1"),
        *("--dev", "/dev", "--size", str(shared_memory_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"),  # noqa: S108
    ]


def _shown(paths: tuple[str, ...]) -> list[str]:
    return [part for path in paths for part in ("--ro-bind-try", path, path)]
