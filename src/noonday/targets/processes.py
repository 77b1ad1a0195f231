"""Starts, signals and awaits processes through the keeper; none outlives its handle."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

from noonday.domain.outcome import Usage
from noonday.targets import keeper
from noonday.targets.output import HeadAndTail, Output

_KEEPER = Path(keeper.__file__)
_LAST_WORDS_SECONDS = 1.0
_KEEPER_SECONDS = 10.0
_LONGEST_LINE = 1024 * 1024
_ROUNDS = 10
# What a second try may find repaired: too many processes or files, no memory, a program being written.
_PASSING = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY})


class CouldNotStart(Exception):
    """The process could not be started; `passing` if that may change by itself."""

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


class KeeperDied(Exception):
    """The process that kept this one has died, and this one with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn:
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None = None
    stdin: bytes = b""
    limits: Mapping[str, int | None] = field(default_factory=dict)
    report: str | None = None  # the variable that tells the process the number of its report pipe

    def order(self) -> dict[str, object]:
        return {
            "argv": list(self.argv),
            "env": dict(self.env),
            "cwd": self.cwd or _here(),
            "limits": dict(self.limits),
            "report": self.report,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    code: int  # negative: the signal that ended it
    usage: Usage


class Process:
    """A process and its whole session."""

    def __init__(
        self,
        link: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        output: Output,
        report: asyncio.StreamReader | None,
    ) -> None:
        self._reader, self._writer = link
        self._output = output
        self._exit: Exit | None = None
        self._cancelled = False
        self.report = report
        self.pid = 0
        self._born: str | None = None

    async def begin(self, order: Mapping[str, object]) -> None:
        """Send the order and hear whether it was carried out.

        A process may be there before we hear of it, so a cancellation in between waits for it to be known; it
        is raised by the next `wait`, where the caller is ready to end the process properly.
        """
        beginning = asyncio.ensure_future(self._begin(order))
        try:
            await asyncio.shield(beginning)
        except asyncio.CancelledError:
            await asyncio.wait([beginning])
            if beginning.exception() is not None:
                raise
            self._cancelled = True

    async def _begin(self, order: Mapping[str, object]) -> None:
        self._say(order)
        message = await self._hear()
        if "error" in message:
            raise CouldNotStart(str(message["error"]), passing=message.get("errno") in _PASSING)
        self.pid = message["pid"]
        self._born = _birth(self.pid)

    async def wait(self) -> Exit:
        """Return when the process and all it left behind are gone and its output is read."""
        if self._cancelled:
            self._cancelled = False
            raise asyncio.CancelledError
        if self._exit is None:
            message = await self._hear()
            usage = Usage(cpu_time_ms=message["cpu_ms"], memory_peak_mb=round(message["memory_kb"] / 1024, 1))
            self._exit = Exit(code=message["exit"], usage=usage)
        # Somebody outside the session may still hold the pipe open; the run does not wait for that.
        await asyncio.wait([self._output.closed], timeout=_LAST_WORDS_SECONDS)
        return self._exit

    async def end(self, grace: timedelta) -> Exit:
        """SIGTERM, the grace, SIGKILL: to everything in the session."""
        self.signal(signal.SIGTERM)
        # Not asyncio.timeout: in early versions of 3.11 it goes wrong in a task that is being cancelled.
        ending = asyncio.ensure_future(self.wait())
        try:
            await asyncio.wait([ending], timeout=grace.total_seconds())
            if not ending.done():
                self.signal(signal.SIGKILL)
            return await ending
        finally:
            ending.cancel()

    def signal(self, number: int) -> None:
        self._say({"signal": number})

    @property
    def output(self) -> HeadAndTail:
        return self._output.kept

    def _say(self, message: Mapping[str, object]) -> None:
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def _hear(self) -> dict[str, Any]:
        try:
            line = await self._reader.readline()
        except OSError:
            line = b""
        if not line:
            if self.pid and _birth(self.pid) in (None, self._born):  # not somebody else's by now
                _end_session(self.pid)
            raise KeeperDied("the keeper of processes has died, and what it kept has died with it")
        message: dict[str, Any] = json.loads(line)
        return message


class Processes:
    """The client of one keeper, which is started when the first process is."""

    def __init__(self) -> None:
        self._keeper: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @asynccontextmanager
    async def started(self, spawn: Spawn, tell: Callable[[str], None]) -> AsyncIterator[Process]:
        """Raises CouldNotStart or KeeperDied. What still lives of the process at the exit is killed.

        `tell` hears what the process writes, as it does.
        """
        with ExitStack() as ours:
            loose = ours.enter_context(_Loose())
            with ExitStack() as theirs:
                here, there = socket.socketpair()
                loose.add(here)
                theirs.enter_context(there)
                stdin = theirs.enter_context(tempfile.TemporaryFile())
                stdin.write(spawn.stdin)
                stdin.seek(0)
                pipes = [_pipe(loose, theirs) for _ in range(2 if spawn.report else 1)]
                self._hand_over([there.fileno(), stdin.fileno(), *(write for _, write in pipes)])
            link = await asyncio.open_connection(sock=here)
            ours.callback(link[1].transport.abort)
            loose.discard(here)
            output = Output(tell)
            await _read(pipes[0][0], output, loose, ours)
            report = None
            if spawn.report:
                report = asyncio.StreamReader(limit=_LONGEST_LINE)
                await _read(pipes[1][0], asyncio.StreamReaderProtocol(report), loose, ours)
            process = Process(link, output, report)
            await process.begin(spawn.order())
            yield process

    def _hand_over(self, fds: list[int]) -> None:
        for _ in range(2):
            try:
                socket.send_fds(self._connected(), [b"r"], fds)
            except BlockingIOError:
                break
            except OSError:  # the keeper has died since: start another
                self._hang_up()
            else:
                return
        raise CouldNotStart("the keeper of processes does not answer", passing=True)

    def _connected(self) -> socket.socket:
        if self._control is None:
            here, there = socket.socketpair()
            with there, _Loose({here}) as loose:
                self._keeper = subprocess.Popen(  # noqa: S603 - our own program
                    [sys.executable, "-I", "-S", str(_KEEPER)],
                    stdin=there.fileno(),
                    stdout=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,  # Ctrl-C in a terminal is for the scheduler to act on
                )
                loose.discard(here)
            here.setblocking(False)
            self._control = here
        return self._control

    def _hang_up(self) -> subprocess.Popen[bytes] | None:
        old, self._keeper = self._keeper, None
        control, self._control = self._control, None
        if control is not None:
            control.close()
        if old is not None:
            old.poll()
        return old

    async def close(self) -> None:
        old = self._hang_up()
        if old is not None:
            await asyncio.to_thread(_bury, old)


def _birth(pid: int) -> str | None:
    """Tells a process from a later one with the same number; None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return stat.rpartition(b")")[2].split()[19].decode()


def _end_session(session: int) -> None:
    """What a keeper that was killed leaves behind: its own children died with it, but not theirs."""
    for _ in range(_ROUNDS):  # whoever was forked while we looked is found the next time
        if not (left := keeper.members(session) if keeper.HAS_PROC else []):
            return
        for pid in left:
            keeper.send(pid, signal.SIGKILL)


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was deleted under us
        return "/"


def _bury(old: subprocess.Popen[bytes]) -> None:
    try:
        old.wait(_KEEPER_SECONDS)
    except subprocess.TimeoutExpired:
        old.kill()
        old.wait()


class _Loose(set[Any]):
    """What nobody has taken over yet; closed when its time is up."""

    def __enter__(self) -> _Loose:
        return self

    def __exit__(self, *_: object) -> None:
        for thing in self:
            thing.close()


def _pipe(loose: _Loose, theirs: ExitStack) -> tuple[BinaryIO, int]:
    read, write = os.pipe()
    theirs.callback(os.close, write)
    file = os.fdopen(read, "rb", 0)
    loose.add(file)
    return file, write


async def _read(pipe: BinaryIO, protocol: asyncio.Protocol, loose: _Loose, ours: ExitStack) -> None:
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    ours.callback(transport.close)
    loose.discard(pipe)
