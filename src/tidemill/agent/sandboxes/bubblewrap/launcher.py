"""A small program beside the agent that starts runs. Each starts from a process that waits for a command in its limits.

Such a process is a seat. The launcher forks it when the agent asks for one. The seat moves itself into its control
groups, says that it is ready, and becomes bubblewrap when its command comes. Forking from here is cheap because this
program is small, and a seat that is already in its groups saves a run the milliseconds of moving a process.

The kernel shows a run where a directory comes from. So the launcher shows the directories that most runs use through
overlays, in a mount namespace of its own: of those the kernel shows only short names. They are made once, because
removing an overlay takes milliseconds.

The launcher imports the standard library alone. It ends with the agent, ends its seats and what they became, and
removes their control groups: the agent's directory may be gone by then, and nobody else would know of them. Signals to
the agent that reach all of its processes do not end it earlier. Its command line has the words that a sweep seeks.
"""

import contextlib
import ctypes
import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import stat
import sys
import time
from typing import Any, NoReturn

CONTROL = 0
DIRECTORIES_FROM = 4
"""Where the directories to be shown begin in its command line, after the stage."""
MESSAGE_BYTES = 16384
OUTPUT, ERRORS, STATUS, GATE, OPTIONS, CALLS, AFTER = 1, 2, 3, 4, 5, 6, 7
"""The numbers of bubblewrap's descriptors."""
HIGH = 100
FOR_THE_AGENT = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
LEAVING_TRIES = 300
_groups: set[str] = set()
"""The control groups of all seats that still exist."""
_overlays: dict[str, str] = {}
"""The names on the stage of directories that are shown through an overlay."""
_NEW_MOUNTS = 0x00020000
_BIND, _RECURSIVE, _PRIVATE, _FOLLOWING = 4096, 16384, 1 << 18, 1 << 19
_READ_ONLY = 1
_NOTHING = "nothing"
"""The name of an empty directory: an overlay has two layers at least."""
_INERT = 2 | 4 | 8
"""A mount without set-user programs, devices and execution: the stage itself, not what is mounted there."""


def main() -> None:
    """Fork a seat for each message; tell how each child ended."""
    if directories := sys.argv[DIRECTORIES_FROM:]:
        _show_directories(sys.argv[DIRECTORIES_FROM - 1], directories)
    gc.disable()  # a collection would touch, and so copy, memory that all seats share
    gc.freeze()
    control = socket.socket(fileno=CONTROL)
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, *FOR_THE_AGENT):
        signal.signal(number, lambda *_: None)  # unlike ignoring it, bubblewrap does not inherit this
    watched = select.poll()
    for descriptor in (control.fileno(), woken):
        watched.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in watched.poll()}
        if woken in ready:
            os.read(woken, 4096)
            _tell_ended(control)
        if control.fileno() in ready:
            _serve(control)


def _serve(control: socket.socket) -> None:
    message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 1)
    if not message:
        raise ConnectionResetError
    groups = json.loads(message)
    if os.fork() == 0:
        control.detach()
        _wait_in_seat(socket.socket(fileno=descriptors[0]), groups)
    os.close(descriptors[0])
    _groups.difference_update([group for group in _groups if not os.path.isdir(group)])
    _groups.update(groups)


def _remove_groups() -> None:
    """End every process in the groups of our seats, and remove the groups. Wait while processes die."""
    for _ in range(LEAVING_TRIES):
        for group in [*_groups]:
            try:
                with open(f"{group}/cgroup.procs") as members:
                    for pid in members.read().split():
                        os.kill(int(pid), signal.SIGKILL)
                os.rmdir(group)
            except ProcessLookupError:
                continue
            except FileNotFoundError:
                pass
            except OSError:
                continue
            _groups.discard(group)
        if not _groups:
            return
        time.sleep(0.01)


def _tell_ended(control: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        control.send(json.dumps([pid, status]).encode())


def _wait_in_seat(agent: socket.socket, groups: list[str]) -> NoReturn:
    """Wait in these groups for a command, and become its program. Tell the agent what goes wrong before."""
    try:
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)  # undo what the agent was started with, as by nohup
        os.dup2(os.open(os.devnull, os.O_RDONLY), CONTROL)
        os.setpgid(0, 0)
        for group in groups:
            members = os.open(f"{group}/cgroup.procs", os.O_WRONLY)
            os.write(members, b"0")
            os.close(members)
        socket.send_fds(agent, [str(os.getpid()).encode()], [os.pidfd_open(os.getpid())])
    except OSError as fault:
        with contextlib.suppress(OSError):
            agent.send(f"{fault}".encode())
        os._exit(1)
    try:
        message, descriptors, _, _ = socket.recv_fds(agent, 16, AFTER)
    except ConnectionError:
        os._exit(0)
    if not message:
        os._exit(0)
    command = json.loads(os.read(descriptors[0], os.fstat(descriptors[0]).st_size))
    _renumber(descriptors[1:])
    try:
        _become(command)
    except OSError as fault:
        os.write(ERRORS, f"The run could not be started: {fault}\n".encode())
    os._exit(1)


def _renumber(descriptors: list[int]) -> None:
    """Give descriptors the numbers that bubblewrap was told, and close all others."""
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, HIGH) for descriptor in descriptors]
    for number, descriptor in enumerate(high, start=OUTPUT):
        os.dup2(descriptor, number)
    os.closerange(OUTPUT + len(high), HIGH + AFTER)


def _become(command: dict[str, Any]) -> None:
    """Mount the run's inputs while we still may, take on its limits and its user, and become its program."""
    if command["mounts"]:
        _mount(command["stage"], command["mounts"])
    for name, value in command["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    if command["user"] is not None:
        os.setgroups([])
        os.setresgid(*[command["user"]] * 3)
        os.setresuid(*[command["user"]] * 3)
    os.execve(command["words"][0], command["words"], {})


def _mount(stage: str, sources: dict[str, str]) -> None:
    """Mount the sources below the stage, by name, in a mount namespace that ends with the run."""
    _call_libc("unshare", _NEW_MOUNTS)
    _call_libc("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
    shown = {source: os.open(f"{stage}/{name}", os.O_PATH) for source, name in _overlays.items()}
    _cover(stage)
    for name, source in sources.items():
        path = f"/proc/self/fd/{shown[source]}" if source in shown else source
        _bind(path, f"{stage}/{name}")


def _show_directories(stage: str, sources: list[str]) -> None:
    """Mount directories on the stage through overlays, for as long as the launcher lives."""
    _call_libc("unshare", _NEW_MOUNTS)
    _call_libc("mount", b"none", b"/", None, _RECURSIVE | _FOLLOWING, None)
    _cover(stage)
    os.chdir(stage)  # an overlay is shown with the names that it was made with
    os.mkdir(_NOTHING)
    for number, source in enumerate(sources):
        name, link = str(number), f"{number}-source"
        os.mkdir(name)
        os.symlink(source, link)
        with contextlib.suppress(OSError):  # in some containers there are no overlays
            layers = os.fsencode(f"lowerdir={link}:{_NOTHING}")
            _call_libc("mount", b"overlay", os.fsencode(name), b"overlay", _READ_ONLY, layers)
            _overlays[source] = name
    os.chdir("/")


def _cover(stage: str) -> None:
    _call_libc("mount", b"tmpfs", os.fsencode(stage), b"tmpfs", _INERT, b"mode=0711,size=1m")


def _bind(source: str, target: str) -> None:
    if stat.S_ISDIR(os.stat(source).st_mode):
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT))
    _call_libc("mount", os.fsencode(source), os.fsencode(target), None, _BIND | _RECURSIVE, None)


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


def _call_libc(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}", *arguments[:1])


if __name__ == "__main__":
    try:
        main()
    except ConnectionError:  # the agent has ended
        _remove_groups()
        os._exit(0)
