"""A small program beside the agent that starts runs: each from a process which waits, limited already, for its order.

Such a process is a seat. It is forked when the agent asks for one, moves itself into its control groups, says that it
is ready, and becomes bubblewrap when its order comes. Forking from here is cheap because this program has nothing in
it, and a seat that is already in its groups saves a run the milliseconds in which the kernel moves a process.

It imports the standard library alone, and it ends when the agent does, with its seats and what became of them, and
removes their control groups: the agent's place may be gone by then, and nobody else would know of them. Signals that
mean the agent, and come to all of its processes, do not end it before. It is started with the words that the sweep
looks for.
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
import time
from typing import Any, NoReturn

CONTROL = 0
MESSAGE_BYTES = 16384
OUTPUT, ERRORS, STATUS, GATE, OPTIONS, CALLS, AFTER = 1, 2, 3, 4, 5, 6, 7
"""Where bubblewrap finds its descriptors."""
HIGH = 100
FOR_THE_AGENT = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
LEAVING_TRIES = 300
_groups: set[str] = set()
"""Of the seats that were asked for, as far as they are still there."""
_NEW_MOUNTS = 0x00020000
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_INERT = 2 | 4 | 8
"""A mount without set-user programs, devices and execution: the stage itself, not what is mounted there."""


def main() -> None:
    """Fork a seat for each request; tell how each child ended."""
    gc.disable()  # a collection would touch, and so copy, memory that every seat shares
    gc.freeze()
    control = socket.socket(fileno=CONTROL)
    woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGCHLD, *FOR_THE_AGENT):
        signal.signal(number, lambda *_: None)  # unlike ignoring it, this ends where a seat becomes bubblewrap
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
        _sit(socket.socket(fileno=descriptors[0]), groups)
    os.close(descriptors[0])
    _groups.difference_update([group for group in _groups if not os.path.isdir(group)])
    _groups.update(groups)


def _leave() -> None:
    """End everything in the groups of our seats and remove them, for as long as that may take a dying process."""
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


def _sit(agent: socket.socket, groups: list[str]) -> NoReturn:
    """Wait in these groups for an order, and become it. Whatever goes wrong before is said to the agent."""
    try:
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)  # whatever the agent was started with, as by nohup
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
    order = json.loads(os.read(descriptors[0], os.fstat(descriptors[0]).st_size))
    _place(descriptors[1:])
    try:
        _become(order)
    except OSError as fault:
        os.write(ERRORS, f"The run could not be started: {fault}\n".encode())
    os._exit(1)


def _place(descriptors: list[int]) -> None:
    """Give descriptors the numbers that bubblewrap was told, whatever they are now, and close all others."""
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, HIGH) for descriptor in descriptors]
    for number, descriptor in enumerate(high, start=OUTPUT):
        os.dup2(descriptor, number)
    os.closerange(OUTPUT + len(high), HIGH + AFTER)


def _become(order: dict[str, Any]) -> None:
    """Mount what the run may read, and a program of ours, while we may, take on its limits and its user, and begin."""
    if order["mounts"]:
        _mount(order["stage"], order["mounts"])
    for name, value in order["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    if order["user"] is not None:
        os.setgroups([])
        os.setresgid(*[order["user"]] * 3)
        os.setresuid(*[order["user"]] * 3)
    os.execve(order["words"][0], order["words"], {})


def _mount(stage: str, sources: dict[str, str]) -> None:
    """Lay the sources out below the stage, by name, in a mount namespace that ends with the run."""
    _called("unshare", _NEW_MOUNTS)
    _called("mount", b"none", b"/", None, _RECURSIVE | _PRIVATE, None)
    _called("mount", b"tmpfs", os.fsencode(stage), b"tmpfs", _INERT, b"mode=0711,size=1m")
    for name, source in sources.items():
        target = f"{stage}/{name}"
        if stat.S_ISDIR(os.stat(source).st_mode):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT))
        _called("mount", os.fsencode(source), os.fsencode(target), None, _BIND | _RECURSIVE, None)


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)


def _called(name: str, *arguments: Any) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}", *arguments[:1])


if __name__ == "__main__":
    try:
        main()
    except ConnectionError:  # the agent has ended
        _leave()
        os._exit(0)
