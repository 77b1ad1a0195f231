"""Many worker processes under one parent: it starts them, passes signals on, and replaces those that die."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from noonday.clock import Clock, SystemClock
from noonday.instance.parts import made_up_id
from noonday.settings import Settings
from noonday.telemetry import logs

__all__ = ["Fleet", "end_with_parent", "run_processes"]

log = structlog.get_logger(__name__)

PARENT = "NOONDAY_PARENT_PID"  # in the environment of a child: with whom it ends

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_LIVED_WELL = 60.0  # seconds after which a death is no longer taken for a failed start
_DEAF = 5.0  # seconds after the second signal until what is left is killed
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux' prctl


def run_processes(settings: Settings, command: Sequence[str], count: int, *, hopeless: int) -> int:
    """Run `command` in so many processes. `hopeless` is the exit code of a start that cannot succeed."""
    logs.configure(level=settings.log_level, form=settings.log_format)
    own = settings.instance_id or made_up_id()
    names = [f"{own}-{n}" for n in range(1, count + 1)]
    fleet = Fleet(
        commands={name: (*command, f"--instance-id={name}") for name in names},
        environments=metrics_ports(names, settings.metrics_port),
        hopeless=hopeless,
    )
    return asyncio.run(fleet.run())


def metrics_ports(names: Sequence[str], first: int | None) -> dict[str, dict[str, str]]:
    """A port for each: the first takes the one that was given, the second the next, and so on."""
    if not first:  # none, or each takes a free one
        return {}
    return {name: {"METRICS_PORT": str(first + n)} for n, name in enumerate(names)}


@dataclass(slots=True, kw_only=True)
class Fleet:
    """`run` returns when all have ended: 0 if each did so in order after the first signal."""

    commands: Mapping[str, Sequence[str]]  # by the instance's id
    hopeless: int
    environments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # beside our own
    clock: Clock = field(default_factory=SystemClock)
    _living: dict[str, Process] = field(default_factory=dict)
    _signals: list[signal.Signals] = field(default_factory=list)
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _code: int = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._told, number)
        log.info("starting %d processes", len(self.commands), action="fleet", pid=os.getpid())
        async with asyncio.TaskGroup() as group:
            for name, command in self.commands.items():
                group.create_task(self._keep(name, command), name=name)
        log.info("all processes have ended", action="fleet", code=self._code)
        return 128 + self._signals[-1] if len(self._signals) > 1 else self._code

    def _told(self, number: signal.Signals) -> None:
        """The first lets each of them finish, the next ends them at once."""
        self._signals.append(number)
        self._stop.set()
        self._pass_on(signal.SIGTERM)
        if len(self._signals) > 1:
            log.warning("told twice to stop: ending at once", action="stop", signal=number.name)
            asyncio.get_running_loop().call_later(_DEAF, self._pass_on, signal.SIGKILL)

    def _pass_on(self, number: signal.Signals) -> None:
        for process in self._living.values():
            if process.returncode is None:
                process.send_signal(number)

    async def _keep(self, name: str, command: Sequence[str]) -> None:
        """One of them, from its first start to the end of all."""
        pause = _FIRST_PAUSE
        while not self._stop.is_set():
            began = self.clock.monotonic()
            code = await self._live(name, command)
            if self._stop.is_set():
                in_order = code in (0, -signal.SIGTERM)  # the second: it had not even begun to listen
                self._code = self._code or (0 if in_order else abs(code))
                return
            if code == self.hopeless:
                log.error("a process cannot be started: ending all", action="fleet", instance=name)
                self._code = code
                self._stop.set()
                self._pass_on(signal.SIGTERM)
                return
            if self.clock.monotonic() - began > _LIVED_WELL:
                pause = _FIRST_PAUSE
            words = "a process has ended by itself: starting it anew"
            log.error(words, action="fleet", instance=name, code=code, pause_seconds=pause)
            await _pause(pause, self._stop)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _live(self, name: str, command: Sequence[str]) -> int:
        try:
            # In a session of its own, so that Ctrl-C in the terminal reaches it once, through the parent.
            process = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, **self.environments.get(name, {}), PARENT: str(os.getpid())},
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as exc:  # no memory, no process left
            log.warning("a process could not be started", action="fleet", instance=name, error=str(exc))
            return 1
        self._living[name] = process
        if self._stop.is_set():  # told while it was being started
            process.send_signal(signal.SIGTERM)
        log.info("a process was started", action="fleet", instance=name, pid=process.pid)
        try:
            return await process.wait()
        finally:
            del self._living[name]


async def _pause(seconds: float, stop: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass


def end_with_parent(stop: Callable[[], None]) -> None:
    """In a child, from its loop: stop in order when the parent is gone, however it went."""
    parent = int(os.environ.pop(PARENT, "0"))
    if not parent:
        return
    loop = asyncio.get_running_loop()
    if not _told_by_the_kernel(loop, stop):
        watch = threading.Thread(target=_watch, args=(parent, loop, stop), name="noonday-parent", daemon=True)
        watch.start()
    elif os.getppid() != parent:  # it went before the kernel was asked
        stop()


def _told_by_the_kernel(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    # A signal of its own: the kernel sends it for each thread of the parent, and two SIGTERM mean haste.
    loop.add_signal_handler(signal.SIGHUP, stop)
    try:
        return bool(ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, int(signal.SIGHUP)) == 0)
    except (OSError, AttributeError):
        return False


def _watch(parent: int, loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    never = threading.Event()
    while os.getppid() == parent:
        never.wait(1.0)
    with suppress(RuntimeError):  # it has ended by itself meanwhile
        loop.call_soon_threadsafe(stop)
