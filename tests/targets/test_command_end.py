"""The end of a command: nothing of it stays behind, whoever ends first."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from noonday.domain.outcome import Completed, Failed
from noonday.domain.target import CommandTarget
from noonday.targets import Targets
from noonday.targets.processes import Processes
from tests.targets.hands import a_config, a_run, alive, ended_by_cancel

PYTHON = sys.executable


def sh(script: str, *args: str, **changes: Any) -> CommandTarget:
    return CommandTarget(argv=("sh", "-c", script, "sh", *args), **changes)


async def finished(targets: Targets, target: CommandTarget, **changes: Any) -> Completed | Failed:
    outcome = await targets.run(a_run(target, **changes))
    assert isinstance(outcome, Completed | Failed)
    return outcome


def fifo_in(folder: Path) -> Path:
    path = folder / "fifo"
    os.mkfifo(path)
    return path


async def _started(targets: Targets, script: str, fifo: Path, **changes: Any) -> tuple[Any, Any, list[int]]:
    """Run a script that writes process ids to the fifo; return when it has."""
    run = a_run(sh(script, str(fifo)), **changes)
    running = asyncio.ensure_future(targets.run(run))
    pids = [int(pid) for pid in (await asyncio.to_thread(fifo.read_text)).split()]
    assert pids
    assert all(map(alive, pids))
    return run, running, pids


FAMILY = 'echo begun; sleep 1000 & child=$!; sh -c "sleep 1000 & wait" & echo $$ $child $! > "$1"; wait'


async def test_cancelling_ends_the_whole_family_and_keeps_the_output(
    targets: Targets, tmp_path: Path
) -> None:
    run, running, pids = await _started(targets, FAMILY, fifo_in(tmp_path))
    await ended_by_cancel(running)
    assert not any(map(alive, pids))
    assert run.partial.output_tail == "begun\n"
    assert run.partial.exit_code == -signal.SIGTERM
    assert run.partial.usage.cpu_time_ms is not None


async def test_a_command_may_clean_up_when_it_is_asked_to_end(targets: Targets, tmp_path: Path) -> None:
    script = 'trap "echo cleaned; exit 7" TERM; echo $$ > "$1"; while true; do sleep 0.01; done'
    run, running, pids = await _started(targets, script, fifo_in(tmp_path))
    await ended_by_cancel(running)
    assert not any(map(alive, pids))
    assert run.partial.output_tail.endswith("cleaned\n")
    assert run.partial.exit_code == 7


async def test_one_that_does_not_hear_is_killed_after_the_grace(targets: Targets, tmp_path: Path) -> None:
    script = 'trap "" TERM; sleep 1000 & echo $$ $! > "$1"; while true; do wait; done'
    run, running, pids = await _started(targets, script, fifo_in(tmp_path), grace=timedelta(seconds=0.2))
    await ended_by_cancel(running)
    assert not any(map(alive, pids))
    assert run.partial.exit_code == -signal.SIGKILL


async def test_one_that_is_stopped_still_ends(targets: Targets, tmp_path: Path) -> None:
    _, running, pids = await _started(targets, 'echo $$ > "$1"; kill -STOP $$; sleep 1000', fifo_in(tmp_path))
    await ended_by_cancel(running)
    assert not any(map(alive, pids))


async def test_process_groups_of_its_own_are_ended_too(targets: Targets, tmp_path: Path) -> None:
    script = 'timeout 1000 sleep 1000 & echo $$ $! > "$1"; wait'  # timeout makes a group for itself
    _, running, pids = await _started(targets, script, fifo_in(tmp_path))
    while os.getpgid(pids[1]) == pids[0]:
        await asyncio.sleep(0)
    await ended_by_cancel(running)
    assert not any(map(alive, pids))


async def test_what_a_command_leaves_behind_is_ended_with_it(targets: Targets, tmp_path: Path) -> None:
    fifo = fifo_in(tmp_path)
    script = 'sleep 1000 & echo $! > "$1"; echo done'
    reading = asyncio.ensure_future(asyncio.to_thread(fifo.read_text))
    outcome = await finished(targets, sh(script, str(fifo)))
    assert isinstance(outcome, Completed)
    assert outcome.result.output_tail == "done\n"
    assert not alive(int(await reading))


async def test_a_second_cancel_kills_at_once(targets: Targets, tmp_path: Path) -> None:
    script = 'trap "" TERM; echo $$ > "$1"; while true; do sleep 0.01; done'
    _, running, pids = await _started(targets, script, fifo_in(tmp_path), grace=timedelta(hours=1))
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await targets.close()  # returns when the keeper has buried everything
    assert not any(map(alive, pids))


async def test_closing_ends_what_still_runs(tmp_path: Path) -> None:
    targets = Targets(a_config())
    _, running, pids = await _started(targets, FAMILY, fifo_in(tmp_path))
    await targets.close()
    assert not any(map(alive, pids))
    outcome = await running
    assert isinstance(outcome, Failed)


async def test_many_commands_at_once_do_not_mix(targets: Targets) -> None:
    outcomes = await asyncio.gather(*(finished(targets, sh(f"echo {n}; exit {n}")) for n in range(20)))
    assert [o.result.output_tail for o in outcomes] == [f"{n}\n" for n in range(20)]
    assert [o.result.exit_code for o in outcomes] == list(range(20))


async def test_nothing_is_left_open(targets: Targets) -> None:
    async def once() -> None:
        await finished(targets, CommandTarget(argv=("true",)))
        await finished(targets, CommandTarget(argv=("no-such-program",)))
        running = asyncio.ensure_future(targets.run(a_run(CommandTarget(argv=("sleep", "1000")))))
        await asyncio.sleep(0)  # cancelled somewhere in its start
        await ended_by_cancel(running)

    await once()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await once()
    assert len(os.listdir("/proc/self/fd")) <= before


async def test_a_dead_keeper_takes_its_own_with_it_and_another_follows(tmp_path: Path) -> None:
    targets = Targets(a_config())
    _, running, pids = await _started(targets, FAMILY, fifo_in(tmp_path))
    keeper = _keeper_of(targets)
    keeper.kill()
    outcome = await running
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert "keeper" in outcome.error
    while any(map(alive, pids)):
        await asyncio.sleep(0.01)
    assert isinstance(await finished(targets, CommandTarget(argv=("true",))), Completed)
    assert _keeper_of(targets).pid != keeper.pid
    keeper.wait()
    await targets.close()


def _keeper_of(targets: Targets) -> subprocess.Popen[bytes]:
    processes = targets._processes
    assert isinstance(processes, Processes)
    assert processes._keeper is not None
    return processes._keeper


ORPHAN = """
import asyncio, sys
from noonday.domain.target import CommandTarget
from noonday.targets import Targets
from tests.targets.hands import a_config, a_run

async def main():
    script = 'sleep 1000 & echo $$ $! > "$1"; wait'
    target = CommandTarget(argv=("sh", "-c", script, "sh", sys.argv[1]))
    await Targets(a_config()).run(a_run(target))

asyncio.run(main())
"""


@pytest.mark.crash
async def test_no_command_outlives_a_killed_scheduler(tmp_path: Path) -> None:
    fifo = fifo_in(tmp_path)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
    scheduler = await asyncio.create_subprocess_exec(PYTHON, "-c", ORPHAN, str(fifo), env=env)
    pids = [int(pid) for pid in (await asyncio.to_thread(fifo.read_text)).split()]
    assert all(map(alive, pids))
    scheduler.kill()
    await scheduler.wait()
    while any(map(alive, pids)):
        await asyncio.sleep(0.01)
