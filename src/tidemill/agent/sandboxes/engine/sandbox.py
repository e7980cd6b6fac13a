"""Runs in a container engine through Docker's API, by Docker or Podman: for tasks that bring their own image.

A run without an image sees the machine's own programs, as in bubblewrap. The engine must run as root: otherwise it
enforces no memory limit. Containers and images have the agent's mark. They are removed after each run, by the keeper
when the agent is gone, and at the agent's next start.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tidemill.agent.sandboxes import run_directories
from tidemill.agent.sandboxes.bubblewrap.gate import descendants
from tidemill.agent.sandboxes.bubblewrap.sandbox import directory_lock, own_users
from tidemill.agent.sandboxes.bubblewrap.seats import mark
from tidemill.agent.sandboxes.bubblewrap.seccomp import call_profile, this_machine
from tidemill.agent.sandboxes.cgroups import MemoryCount
from tidemill.agent.sandboxes.engine import keeper as engine_keeper
from tidemill.agent.sandboxes.engine.api import CannotStart, EngineApi, EngineFault, tell_apart
from tidemill.agent.sandboxes.engine.container import HOST_NAME, ContainerSetting, creation
from tidemill.agent.sandboxes.engine.images import FetchedImage, Images, UnfitImage
from tidemill.agent.sandboxes.exits import wait_status
from tidemill.agent.sandboxes.gpu_memory import watched_gpu_memory
from tidemill.agent.sandboxes.interface import OutputStream, RunListener, Sandbox, SandboxFault
from tidemill.agent.sandboxes.run_life import GRACE_S, POLITE, RunLife, RunProcesses
from tidemill.artefacts.threads import whole
from tidemill.core.jobs.sandboxes import (
    Ability,
    Command,
    Enforcement,
    RunEnding,
    RunLimits,
    RunOutcome,
    RunSpecification,
    outcome,
    outcome_of_wait,
)

SOCKETS = (Path("/run/docker.sock"), Path("/var/run/docker.sock"), Path("/run/podman/podman.sock"))
CALLS_FILES = ("calls.json", "calls-of-many-gpus.json")
HOSTS_FILE = "hosts"
KILL = 137
KEEPER_S = 20.0
"""How long the keeper of a killed agent may take to remove its containers and images."""
ASKED_MAX = 20
ASKED_AGAIN_S = 0.1
TOLD_BY_ENGINE = {Ability.MEMORY: "MemoryLimit", Ability.PIDS: "PidsLimit", Ability.CPU: "CpuCfsQuota"}


class EngineSandbox(Sandbox):
    """Use `open_engine`."""

    def __init__(
        self, directory: Path, lock: int, api: EngineApi, keeper: subprocess.Popen[bytes], answers: Any
    ) -> None:
        self._directory, self._lock, self._api, self._keeper = directory, lock, api, keeper
        self._mark, self._is_podman = mark(directory), "podman" in json.dumps(answers["version"]).lower()
        self._users = own_users() if os.geteuid() == 0 else set()
        self._calls, self._calls_of_many_gpus = _calls(directory, self._is_podman)
        (directory / HOSTS_FILE).write_text(f"127.0.0.1 localhost {HOST_NAME}\n::1 localhost\n")
        (directory / HOSTS_FILE).chmod(0o644)
        self._gpu_memory = watched_gpu_memory()
        self._lives: dict[str, RunLife] = {}
        self.images = Images(
            api, self._mark, directory, Path(answers["info"].get("DockerRootDir") or "/"), self._is_podman
        )
        name, version = "Podman" if self._is_podman else "Docker", answers["version"].get("Version", "")
        self.description = f"{name} {version}".rstrip()
        self.enforced = _enforced(answers["info"], self._calls is not None, self._gpu_memory is not None)

    async def run(self, specification: RunSpecification, listener: RunListener) -> RunOutcome:
        if specification.name in self._lives:
            raise SandboxFault(
                f"A run named {specification.name} is here already: give each attempt a name of its own."
            )
        life = self._lives[specification.name] = RunLife(specification, listener, self._gpu_memory)
        user = self._users.pop() if os.geteuid() == 0 else None
        room = self._directory / specification.name
        try:
            async with self.images.used(specification.image, specification.limits.seconds) as image:
                return await self._run(life, room, user, image)
        except UnfitImage as unfit:
            life.hear(OutputStream.ERRORS, f"{unfit}\n".encode())
            return RunOutcome(RunEnding.NOT_STARTED)
        finally:
            try:
                await whole(asyncio.to_thread(run_directories.remove_room, room))
            finally:  # also when the caller is cancelled: else the name and the user would stay taken
                del self._lives[specification.name]
                self._users |= set() if user is None else {user}

    def cancel(self, name: str) -> bool:
        life = self._lives.get(name)
        if life is not None:
            life.stop(RunEnding.CANCELLED)
        return life is not None

    async def settled(self) -> None:
        """Nothing to wait for: `run` removes everything before it returns."""

    def close(self) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.close()
        self._keeper.wait()
        os.close(self._lock)

    async def _run(self, life: RunLife, room: Path, user: int | None, image: FetchedImage) -> RunOutcome:
        work = run_directories.make_room(room, user, [])
        await life.listener.prepared(work)
        user_id = os.getuid() if user is None else user
        calls = self._calls_of_many_gpus if len(life.specification.grants.gpus) > 1 else self._calls
        setting = ContainerSetting(
            self._mark,
            work,
            self._directory / HOSTS_FILE,
            user_id,
            image.name,
            image.volumes,
            calls,
            self._is_podman,
        )
        body = creation(life.specification, setting)
        async with self._created(f"tidemill-{self._mark}-{life.specification.name}", body) as container:
            run_outcome = await self._run_container(life, work, container)
        await life.listener.collected(work)
        return run_outcome

    @asynccontextmanager
    async def _created(self, name: str, body: dict[str, object]) -> AsyncIterator[str]:
        """A container, removed by its name: a call that was given up may still have created it."""
        try:
            await self._api.ask("POST", "/containers/create", body, name=name)
            yield name
        finally:
            removing = asyncio.ensure_future(self._api.ask("DELETE", f"/containers/{name}", force="true", v="true"))
            with contextlib.suppress(EngineFault):
                await asyncio.shield(removing)

    async def _run_container(self, life: RunLife, work: Path, container: str) -> RunOutcome:
        try:
            async with (
                self._api.attached(container) as chunks,
                ContainerProcesses(self._api, container, life, chunks) as running,
            ):
                return await life.until_end(work, running)
        except CannotStart as words:
            life.hear(OutputStream.ERRORS, f"{words}\n".encode())
            return RunOutcome(RunEnding.NOT_STARTED)


class ContainerProcesses(RunProcesses):
    """The processes of a container."""

    def __init__(self, api: EngineApi, container: str, life: RunLife, chunks: AsyncIterator[bytes]) -> None:
        self._api, self._path = api, f"/containers/{container}"
        self._listening = asyncio.create_task(_hear(chunks, life))
        self._first = 0
        self._first_descriptor: int | None = None
        self._killed = False
        self._status: int | None = None
        self._memory: MemoryCount | None = None
        self._ran_out = False
        self._was_counted = False
        self.exited: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "ContainerProcesses":
        """Start it."""
        try:
            await self._start()
            state = await self._state()
        except BaseException:
            self._let_go()
            raise
        if state.get("Pid"):
            self._watch(int(state["Pid"]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._let_go()

    async def _start(self) -> None:
        try:
            await self._api.ask("POST", f"{self._path}/start")
        except EngineFault as fault:
            raise (CannotStart(str(fault)) if fault.status else fault) from fault
        self._waiting = asyncio.create_task(self._wait())

    def _let_go(self) -> None:
        self._listening.cancel()
        if self._waiting is not None:
            self._waiting.cancel()
        if self._first_descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._first_descriptor)
            os.close(self._first_descriptor)

    def processes(self) -> list[int]:
        return [self._first, *descendants(self._first)] if self._first else []

    def ran_out_of_memory(self) -> bool:
        """By the kernel's count while the container's group exists, then by its last count when the first process
        ended; or by the engine's answer."""
        if self._memory and not self._was_counted:
            self._ran_out |= bool(self._memory.kills())
        return self._ran_out

    async def end(self, ending: RunEnding) -> None:
        if ending in POLITE and not self.exited.done():
            await self._signal("SIGTERM")
            await asyncio.wait({self.exited}, timeout=GRACE_S)
        if not self.exited.done():
            self._killed = True
            await self._signal("SIGKILL")
            await asyncio.wait({self.exited})
        await asyncio.wait({self._listening}, timeout=GRACE_S)

    def outcome(self, ending: RunEnding) -> RunOutcome:
        """Nothing inside can kill the first process: the kernel killed it for memory, or somebody outside did. Without
        a count, assume memory, the usual cause. If the kernel does not tell that it was killed, the program may have
        chosen this exit code, so nobody else is blamed."""
        kernel_status = None if self._first_descriptor is None else wait_status(self._first_descriptor)
        run_outcome = outcome(ending, self._status) if kernel_status is None else outcome_of_wait(ending, kernel_status)
        if ending is RunEnding.DONE and self._status == KILL and run_outcome.exit_code is None and not self._killed:
            if not self._was_counted:
                return RunOutcome(RunEnding.MEMORY, signal=run_outcome.signal)
            return run_outcome if kernel_status is None else RunOutcome(RunEnding.KILLED, signal=run_outcome.signal)
        return run_outcome

    async def _wait(self) -> None:
        try:
            answer = await self._api.ask("POST", f"{self._path}/wait", patient=True)
            self._status = int(answer["StatusCode"])
            if self._status == KILL:  # Docker tells the truth; a "no" from Podman means nothing
                self._ran_out |= bool((await self._state()).get("OOMKilled"))
        finally:
            if not self.exited.done():
                self.exited.set_result(None)

    async def _state(self) -> Any:
        """What the engine says of the container. Podman fails to tell while a process that has just ended still counts
        as running, so it is asked again."""
        for _ in range(ASKED_MAX - 1):
            try:
                return (await self._api.ask("GET", f"{self._path}/json"))["State"]
            except EngineFault as fault:
                if not fault.status:
                    raise
            await asyncio.sleep(ASKED_AGAIN_S)
        return (await self._api.ask("GET", f"{self._path}/json"))["State"]

    def _watch(self, first: int) -> None:
        """Count when the first process ends: the engine removes its group a moment later."""
        self._first, self._memory = first, MemoryCount(first)
        with contextlib.suppress(ProcessLookupError):
            self._first_descriptor = os.pidfd_open(first)
            asyncio.get_running_loop().add_reader(self._first_descriptor, self._count_last)

    def _count_last(self) -> None:
        assert self._first_descriptor is not None
        assert self._memory is not None
        asyncio.get_running_loop().remove_reader(self._first_descriptor)
        kills = self._memory.kills()
        self._was_counted = kills is not None
        self._ran_out |= bool(kills)

    async def _signal(self, name: str) -> None:
        with contextlib.suppress(EngineFault):  # the container may have ended meanwhile
            await self._api.ask("POST", f"{self._path}/kill", signal=name)


async def _hear(chunks: AsyncIterator[bytes], life: RunLife) -> None:
    await tell_apart(chunks, life.hear)


async def open_engine(directory: Path, path: Path) -> EngineSandbox:
    """Lock a directory for runs, remove what a killed agent left in it and in the engine, and try a run."""
    lock = await asyncio.to_thread(directory_lock, directory, KEEPER_S)
    api = EngineApi(path)
    try:
        answers = await _ask_about_engine(api)
        await asyncio.to_thread(engine_keeper.remove_all, str(path), mark(directory))
        await asyncio.to_thread(run_directories.sweep, directory, str(path))
    except BaseException:
        await api.close()
        os.close(lock)
        raise
    engine = EngineSandbox(directory, lock, api, _keeper(path, mark(directory), lock), answers)
    try:
        await engine.images.sweep()
        await engine.images.bring_empty()
        await _try_out(engine)
    except BaseException:
        engine.close()
        raise
    return engine


async def _ask_about_engine(api: EngineApi) -> dict[str, Any]:
    """The engine's answers about its version and its abilities."""
    answers = {"version": await api.ask("GET", "/version"), "info": await api.ask("GET", "/info")}
    if "rootless" in json.dumps(answers["info"].get("SecurityOptions") or []) or answers["info"].get("Rootless"):
        raise SandboxFault("This container engine runs without root and enforces no memory limit: start it as root.")
    return answers


def _keeper(path: Path, own_mark: str, lock: int) -> subprocess.Popen[bytes]:
    """Start the keeper. It keeps the lock, too: it would remove a new agent's containers, which have the same mark."""
    line = [sys.executable, "-I", "-S", engine_keeper.__file__, str(path), own_mark]
    return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={}, cwd="/", pass_fds=(lock,))


async def _try_out(engine: EngineSandbox) -> None:
    output = bytearray()
    specification = RunSpecification("trial", Command(("/usr/bin/true",)), RunLimits(seconds=60))
    run_outcome = await engine.run(specification, RunListener(lambda _, chunk: output.extend(chunk)))
    if not run_outcome.succeeded:
        words = output.decode(errors="replace").strip() or run_outcome.ending.value
        raise SandboxFault(f"The container engine does not work on this machine. It says: {words}")


def _calls(directory: Path, is_podman: bool) -> tuple[str | None, str | None]:
    """The profiles of refused calls as the engine takes them: Podman reads a file, Docker takes the text.

    The second is for containers with several GPUs: NCCL takes the memory that they share with fallocate, and fails
    where it is refused.
    """
    usual, of_many_gpus = (call_profile(this_machine(), may_reserve) for may_reserve in (False, True))
    if usual is None or of_many_gpus is None:
        return None, None
    texts = json.dumps(usual), json.dumps(of_many_gpus)
    if not is_podman:
        return texts
    for name, text in zip(CALLS_FILES, texts, strict=True):
        (directory / name).write_text(text)
    return str(directory / CALLS_FILES[0]), str(directory / CALLS_FILES[1])


def _enforced(info: Any, calls: bool, gpu_memory: bool) -> Enforcement:
    missing = {ability for ability, name in TOLD_BY_ENGINE.items() if not info.get(name)}
    missing |= {Ability.DISK_QUOTA} | (set() if calls else {Ability.CALLS})
    missing |= set() if gpu_memory else {Ability.GPU_MEMORY}
    missing |= set() if os.geteuid() == 0 else {Ability.UNPRIVILEGED}
    why_not = dict.fromkeys(TOLD_BY_ENGINE, "The container engine says that it cannot: its control groups are missing.")
    why_not[Ability.GPU_MEMORY] = "There is no NVIDIA driver that tells it."
    why_not[Ability.UNPRIVILEGED] = "Only an agent started by root can give each task a user of its own."
    return Enforcement(frozenset(Ability) - missing, why_not)
