"""Commands: what they get, what is kept, and the limits on them."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from noonday.domain.outcome import Completed, Failed
from noonday.domain.target import CommandTarget
from noonday.targets import Targets
from tests.targets.hands import a_config, a_run

PYTHON = sys.executable


def sh(script: str, *args: str, **changes: Any) -> CommandTarget:
    return CommandTarget(argv=("sh", "-c", script, "sh", *args), **changes)


async def finished(targets: Targets, target: CommandTarget, **changes: Any) -> Completed | Failed:
    outcome = await targets.run(a_run(target, **changes))
    assert isinstance(outcome, Completed | Failed)
    return outcome


async def test_output_exit_code_and_usage_are_kept(targets: Targets) -> None:
    outcome = await finished(targets, sh("echo out; echo err >&2"))
    assert isinstance(outcome, Completed)
    result = outcome.result
    assert (result.output_tail, result.exit_code, result.bytes_received) == ("out\nerr\n", 0, 8)
    assert result.usage.cpu_time_ms is not None
    assert result.usage.memory_peak_mb is not None


async def test_an_exit_status_is_a_failure_with_the_last_line(targets: Targets) -> None:
    outcome = await finished(targets, sh("echo first; echo it went wrong; exit 3"))
    assert isinstance(outcome, Failed)
    assert outcome.error == "ended with exit status 3: it went wrong"
    assert outcome.retryable
    assert outcome.result.exit_code == 3


async def test_a_signal_is_named(targets: Targets) -> None:
    outcome = await finished(targets, sh("kill -SEGV $$"))
    assert isinstance(outcome, Failed)
    assert "SIGSEGV" in outcome.error
    assert (outcome.result.exit_code, outcome.result.metadata["signal"]) == (-signal.SIGSEGV, "SIGSEGV")


async def test_no_shell_reads_the_arguments(targets: Targets) -> None:
    nasty = "$(echo x) `echo y`; echo z | cat > /nowhere *"
    outcome = await finished(targets, CommandTarget(argv=("printf", "%s", nasty)))
    assert outcome.result.output_tail == nasty


@pytest.mark.parametrize(
    "target",
    [
        CommandTarget(argv=()),
        CommandTarget(argv=("",)),
        CommandTarget(argv=("no-such-program",)),
        CommandTarget(argv=("/etc/passwd",)),
        CommandTarget(argv=("true",), cwd="/no/such/folder"),
        CommandTarget(argv=("true\x00",)),
        CommandTarget(argv=("true",), env={"A=B": "c"}),
        CommandTarget(argv=("true",), env={"A": "\x00"}),
    ],
)
async def test_what_cannot_start_fails_at_once(target: CommandTarget, targets: Targets) -> None:
    outcome = await finished(targets, target)
    assert isinstance(outcome, Failed)
    assert not outcome.retryable
    assert outcome.error.startswith("not started: ")
    assert isinstance(
        await finished(targets, CommandTarget(argv=("true",))), Completed
    )  # and harms nobody else


async def test_a_program_still_being_written_is_worth_a_retry(targets: Targets, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o755)
    with program.open("ab"):
        outcome = await finished(targets, CommandTarget(argv=(str(program),)))
    assert isinstance(outcome, Failed)
    assert outcome.retryable
    assert isinstance(await finished(targets, CommandTarget(argv=(str(program),))), Completed)


async def test_the_environment_is_clean(targets: Targets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://user:secret@host/db")
    own = Targets(a_config())
    target = CommandTarget(
        argv=("env",), env={"MINE": "1", "PATH": os.environ["PATH"], "NOONDAY_ATTEMPT": "99"}
    )
    run = a_run(target, job={"name": "report", "config": {"year": 2027}}, execution={"attempt": 2})
    outcome = await own.run(run)
    await own.close()
    assert isinstance(outcome, Completed)
    found = dict(line.split("=", 1) for line in (outcome.result.output_tail or "").splitlines())
    assert "secret" not in (outcome.result.output_tail or "")
    assert set(found) <= {
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "TZ",
        "USER",
        "MINE",
        "TRACEPARENT",
        "NOONDAY_JOB_ID",
        "NOONDAY_JOB_NAME",
        "NOONDAY_EXECUTION_ID",
        "NOONDAY_ATTEMPT",
        "NOONDAY_SCHEDULED_FOR",
        "NOONDAY_CONFIG",
    }
    assert (found["MINE"], found["NOONDAY_ATTEMPT"], found["NOONDAY_JOB_NAME"]) == ("1", "2", "report")
    assert found["NOONDAY_EXECUTION_ID"] == run.claim.execution.id
    assert json.loads(found["NOONDAY_CONFIG"]) == {"year": 2027}


async def test_folder_and_standard_input(targets: Targets, tmp_path: Path) -> None:
    outcome = await finished(targets, sh("pwd; cat", cwd=str(tmp_path), stdin="hellö\n"))
    assert outcome.result.output_tail == f"{tmp_path}\nhellö\n"
    outcome = await finished(targets, sh("pwd; cat"))
    assert outcome.result.output_tail == f"{Path.cwd()}\n"


async def test_large_input_and_output_do_not_block_each_other(targets: Targets) -> None:
    text = "0123456789abcdef" * 20_000
    outcome = await finished(targets, CommandTarget(argv=("cat",), stdin=text))
    kept = outcome.result.output_tail or ""
    assert outcome.result.bytes_received == len(text)
    assert len(kept.encode()) < 65536 + 100
    assert kept.startswith(text[:16384])
    assert kept.endswith(text[-49152:])
    assert f"{len(text) - 65536} bytes left out" in kept


async def test_a_flood_of_output_is_bounded(targets: Targets) -> None:
    outcome = await finished(targets, sh("yes | head -c 30000000"))
    assert isinstance(outcome, Completed)
    assert outcome.result.bytes_received == 30_000_000
    assert len(outcome.result.output_tail or "") < 66_000


async def test_odd_bytes_are_made_harmless(targets: Targets) -> None:
    outcome = await finished(targets, sh(r"printf 'a\000b\377c'"))
    assert outcome.result.output_tail == "a␀b\N{REPLACEMENT CHARACTER}c"


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_the_cpu_limit_ends_it(targets: Targets) -> None:
    outcome = await finished(targets, CommandTarget(argv=(PYTHON, "-c", "while True: pass"), cpu_seconds=1))
    assert isinstance(outcome, Failed)
    assert outcome.error == "used more than its 1 s of CPU time and was ended by SIGXCPU"
    assert (outcome.result.usage.cpu_time_ms or 0) >= 500


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_the_cpu_limit_ends_one_that_ignores_the_warning(targets: Targets) -> None:
    script = "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    outcome = await finished(targets, CommandTarget(argv=(PYTHON, "-c", script), cpu_seconds=1))
    assert isinstance(outcome, Failed)
    assert "1 s of CPU time and was ended by SIGKILL" in outcome.error


async def test_the_memory_limit_is_set_before_the_program_starts(targets: Targets) -> None:
    ask = "import resource as r; print(r.getrlimit(r.RLIMIT_AS), r.getrlimit(r.RLIMIT_CORE))"
    outcome = await finished(targets, CommandTarget(argv=(PYTHON, "-c", ask), memory_mb=200))
    size = 200 * 1024 * 1024
    assert outcome.result.output_tail == f"({size}, {size}) (0, 0)\n"
    outcome = await finished(
        targets, CommandTarget(argv=(PYTHON, "-c", "bytearray(300 << 20)"), memory_mb=200)
    )
    assert isinstance(outcome, Failed)
    assert "MemoryError" in outcome.error


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_the_peak_of_memory_is_the_commands_own(targets: Targets) -> None:
    ballast = bytearray(150 << 20)  # Linux would count the parent's memory from before the exec
    small = await finished(targets, CommandTarget(argv=("true",)))
    large = await finished(targets, CommandTarget(argv=(PYTHON, "-c", "bytearray(100 << 20)")))
    assert len(ballast) == 150 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 150 * 1024
    assert (small.result.usage.memory_peak_mb or 999) < 40
    assert 100 <= (large.result.usage.memory_peak_mb or 0) < 140


async def test_a_command_hears_the_usual_signals(targets: Targets) -> None:
    ask = "import signal as s; print([s.getsignal(n) is s.SIG_DFL for n in (s.SIGTERM, s.SIGHUP, s.SIGCHLD)])"
    outcome = await finished(targets, CommandTarget(argv=(PYTHON, "-I", "-c", ask)))
    assert outcome.result.output_tail == "[True, True, True]\n"


async def test_no_descriptor_is_inherited(targets: Targets) -> None:
    await finished(targets, CommandTarget(argv=("true",)))
    outcome = await finished(targets, CommandTarget(argv=("ls", "/proc/self/fd")))
    assert (outcome.result.output_tail or "").split() == ["0", "1", "2", "3"]  # 3 is ls reading the folder
