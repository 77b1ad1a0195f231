"""Keeps the processes that jobs start: one small process per instance, their parent, started by file path.

It exists because the scheduler itself is a poor parent. Small and single-threaded, the keeper can set limits
between fork and exec without a race. A child's peak of memory is its own, not the scheduler's, which Linux
would count from before the exec. And when the scheduler dies, even by kill -9, all that it had started dies
with it, so that no orphan runs beside its own retry.

Standard input is a socket: each byte on it brings, as descriptors, a socket for one run, the run's standard
input and output, and further ones to inherit. On the run's socket one JSON object per line:

    to the keeper     {"argv", "env", "cwd", "limits", "report"} once, then {"signal": n} at will
    from the keeper   {"pid"} or {"error", "errno"}; at last {"exit": code or -signal, "cpu_ms", "memory_kb"}

A run's socket that closes kills the run; standard input that closes kills all and ends the keeper. A run is
over when its first process has ended and nothing of its session is left: leftovers get SIGTERM, then SIGKILL.

Imports the standard library only: it must start fast and stay small.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import Any

LINGER_SECONDS = 2.0
GIVE_UP_SECONDS = 5.0  # a process in uninterruptible sleep does not even die of SIGKILL
POLL_SECONDS = 0.02
MAX_FDS = 8
HAS_PROC = os.path.isdir("/proc/self")
LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

now = time.monotonic  # noqa: TID251 - stands alone, without the package and its clock


class Run:
    def __init__(self, sock: socket.socket, fds: list[int]) -> None:
        self.sock: socket.socket | None = sock
        self.fds = fds
        self.buffer = bytearray()
        self.process: subprocess.Popen[bytes] | None = None
        self.exit: dict[str, int] | None = None
        self.kill_at: float | None = None  # None = the client decides
        self.asked = False  # the client wants it ended
        self.told: set[int] = set()  # those that have heard of it

    @property
    def session(self) -> int:
        assert self.process is not None
        return self.process.pid


def members(session: int) -> list[int]:
    """All that lives in a session, also in process groups of its own (`timeout`, shells with job control)."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] not in (b"Z", b"X"):
                found.append(int(name))
    return found


def tell(run: Run, number: int) -> bool:
    """Signal what is left of a run's session; False if nothing is.

    SIGTERM is told once to each: again and again would interrupt a process in its cleaning up. But one that
    was forked while we looked has not heard it yet, and hears it the next time.
    """
    if not HAS_PROC:
        return tell_group(run, number)
    found = members(run.session)
    for pid in found:
        if number != signal.SIGTERM or pid not in run.told:
            send(pid, number)
    if number == signal.SIGTERM:
        run.told.update(found)
    return bool(found)


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
        if number == signal.SIGTERM:
            os.kill(pid, signal.SIGCONT)  # a stopped process hears nothing else
    except (ProcessLookupError, PermissionError):
        return  # gone already, or run by somebody else through sudo


def tell_group(run: Run, number: int) -> bool:
    """Where /proc cannot be asked: the process group alone."""
    if number == signal.SIGTERM:
        number = 0 if run.told else number
        run.told.add(run.session)
    try:
        os.killpg(run.session, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def prepare(limits: dict[str, int]) -> None:
    """Between fork and exec."""
    if LIBC is not None:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.get("cpu_seconds"):
        seconds = limits["cpu_seconds"]
        bound(resource.RLIMIT_CPU, seconds, seconds + 1)  # SIGXCPU first, SIGKILL a second later
    if limits.get("memory_mb"):
        size = limits["memory_mb"] * 1024 * 1024
        bound(resource.RLIMIT_AS, size, size)


def bound(what: int, soft: int, hard: int) -> None:
    ceiling = resource.getrlimit(what)[1]
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(what, (soft, hard))


class Keeper:
    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.runs: set[Run] = set()
        self.stopping = False
        self.selector = selectors.DefaultSelector()
        self.selector.register(control, selectors.EVENT_READ, None)
        self.wake, bell = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(bell, False)
        signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
        self.selector.register(self.wake, selectors.EVENT_READ, None)

    def serve(self) -> None:
        while not (self.stopping and not self.runs):
            ending = self.stopping or any(run.asked or run.exit is not None for run in self.runs)
            for key, _ in self.selector.select(POLL_SECONDS if ending else None):
                if key.fileobj is self.control:
                    self.welcome()
                elif isinstance(key.data, Run):
                    self.listen(key.data)
                else:
                    os.read(self.wake, 4096)
            self.reap()
            for run in list(self.runs):
                self.tend(run)

    def welcome(self) -> None:
        data, fds, _, _ = socket.recv_fds(self.control, 1, MAX_FDS)
        if not data:
            self.stopping = True
            self.selector.unregister(self.control)
            for run in list(self.runs):
                self.abandon(run)
            return
        sock = socket.socket(fileno=fds[0])
        sock.setblocking(False)
        run = Run(sock, fds[1:])
        self.runs.add(run)
        self.selector.register(sock, selectors.EVENT_READ, run)

    def listen(self, run: Run) -> None:
        if run.sock is None:
            return
        try:
            data = run.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.abandon(run)
            return
        run.buffer += data
        *lines, rest = run.buffer.split(b"\n")
        run.buffer = rest
        for line in lines:
            try:
                self.obey(run, json.loads(line))
            except (ValueError, KeyError, TypeError):
                self.abandon(run)  # a bad order harms its own run alone
                return

    def obey(self, run: Run, order: dict[str, Any]) -> None:
        if run.process is None and "argv" in order:
            self.start(run, order)
        elif run.process is not None and "signal" in order:
            run.asked = True
            run.kill_at = now() if order["signal"] == signal.SIGKILL else None
            tell(run, order["signal"])

    def start(self, run: Run, order: dict[str, Any]) -> None:
        stdin, stdout, *further = run.fds
        env = dict(order["env"])
        if order.get("report"):
            env[order["report"]] = str(further[0])
        try:
            run.process = subprocess.Popen(  # noqa: S603 - the job's own command, as an argument list
                order["argv"],
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=order["cwd"],
                pass_fds=further,
                start_new_session=True,
                preexec_fn=lambda: prepare(order["limits"]),  # noqa: PLW1509 - this process has one thread
            )
        except (OSError, ValueError, subprocess.SubprocessError) as exc:
            place = getattr(exc, "filename", None)
            text = f"{getattr(exc, 'strerror', None) or exc}" + (f": {place}" if place else "")
            self.say(run, {"error": text, "errno": getattr(exc, "errno", None)})
            self.forget(run)
        else:
            self.say(run, {"pid": run.process.pid})
        finally:
            for fd in run.fds:
                os.close(fd)
            run.fds = []

    def reap(self) -> None:
        by_pid = {run.session: run for run in self.runs if run.process is not None and run.exit is None}
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            run = by_pid.get(pid)
            if run is None or run.process is None:
                continue  # an orphan of some command, ours to bury
            run.process.returncode = os.waitstatus_to_exitcode(status)
            kilobytes = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
            cpu = round((usage.ru_utime + usage.ru_stime) * 1000)
            run.exit = {"exit": run.process.returncode, "cpu_ms": cpu, "memory_kb": kilobytes}
            if not run.asked:
                run.kill_at = now() + LINGER_SECONDS

    def tend(self, run: Run) -> None:
        """End what is to end; report a run once its first process and everything it left are gone."""
        if run.process is None or not (run.asked or run.exit):
            return
        overdue = run.kill_at is not None and now() >= run.kill_at
        alive = tell(run, signal.SIGKILL if overdue else signal.SIGTERM)
        hopeless = run.kill_at is not None and now() >= run.kill_at + GIVE_UP_SECONDS
        if run.exit is not None and (hopeless or not alive):
            self.say(run, run.exit)
            self.forget(run)

    def abandon(self, run: Run) -> None:
        """Nobody listens any more: the run has lost its right to go on."""
        self.hang_up(run)
        if run.process is None:
            self.forget(run)
            return
        run.asked, run.kill_at = True, now()
        tell(run, signal.SIGKILL)

    def say(self, run: Run, message: dict[str, Any]) -> None:
        if run.sock is not None:
            try:
                run.sock.sendall(json.dumps(message).encode() + b"\n")
            except OSError:
                self.abandon(run)

    def hang_up(self, run: Run) -> None:
        if run.sock is not None:
            self.selector.unregister(run.sock)
            run.sock.close()
            run.sock = None

    def forget(self, run: Run) -> None:
        self.hang_up(run)
        for fd in run.fds:
            os.close(fd)
        run.fds = []
        self.runs.discard(run)


def main() -> None:
    if LIBC is not None:
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # a handler, not SIG_IGN: commands must not inherit deafness
    Keeper(socket.socket(fileno=os.dup(0))).serve()


if __name__ == "__main__":
    main()
