"""`python -m bench`: Noonday, its peers and the machine's own limits, side by side in one run.

Everybody works on the same servers, which keep what they are told as PostgreSQL does by default (fsync and
synchronous_commit on). Redis is a cache here: nobody's figures include its disk. Wall-clock figures of a busy
machine say little; the ratios of medians that were taken alternately say more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import redis

from bench import adding, burst, drain, fires, http_runs, idling, limits, pages, starting
from bench.choice import QUICK, SECTIONS, Choice
from bench.figures import Figure, Subject, alternately
from bench.peers import environment, field
from bench.peers.stage import Stage
from bench.report import Run, as_json, markdown, write
from noonday.clock import wall_clock
from tests.servers import Server, start_postgres, start_redis  # the tests' own launcher of real servers

RESULTS = Path(__file__).parent / "results"
_MADE = {
    "drain": drain.subjects,
    "burst": burst.subjects,
    "fires": fires.subjects,
    "adding": adding.subjects,
    "http": http_runs.subjects,
    "start": starting.subjects,
    "idle": idling.subjects,
}


def subjects(stage: Stage, choice: Choice) -> Iterator[Subject]:
    for section in choice.sections:
        if section == "limits":
            yield from limits.subjects(stage, choice.count, choice.calls)
        elif section in _MADE:
            yield from _MADE[section](stage, choice)


def measure(choice: Choice, python: str) -> Run:
    with tempfile.TemporaryDirectory(prefix="noonday-bench-") as folder, ExitStack() as exits:
        stage = Stage(
            postgres=_served(exits, start_postgres(durable=True)),
            redis=_served(exits, start_redis()),
            folder=Path(folder),
            python=python,
        )
        machine = _machine(stage)
        found: list[Figure] = []
        try:
            for section in choice.sections:  # a round of all of them would take an hour
                found += _section(stage, replace(choice, sections=(section,)))
        except KeyboardInterrupt:
            _say("interrupted: only the sections before are told")
    at = f"{wall_clock():%Y-%m-%d %H:%M} UTC"
    return Run(at=at, machine=machine, rounds=choice.rounds, figures=found)


def _section(stage: Stage, choice: Choice) -> list[Figure]:
    if choice.sections == ("pages",):
        _say("pages")
        return [figure for jobs, rows in choice.pages for figure in pages.figures(jobs, rows)]
    return alternately(list(subjects(stage, choice)), choice.rounds, _say)


def _served(exits: ExitStack, server: Server) -> str:
    exits.callback(server.stop)
    return server.url


def _machine(stage: Stage) -> dict[str, str]:
    """What a figure depends on."""
    with psycopg.connect(stage.postgres) as connection:
        settings = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers")
        told = {name: connection.execute(f"show {name}").fetchone() for name in settings}
    with redis.Redis.from_url(stage.redis) as client:
        about = client.info("server")
        kept = client.config_get("appendonly").get("appendonly", "?")
    postgres = ", ".join(f"{name} {row[0]}" for name, row in told.items() if row)
    name = "Valkey" if "valkey_version" in about else "Redis"
    version = about.get("valkey_version") or about.get("redis_version")
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f} before",
        "Python": platform.python_version(),
        "PostgreSQL": postgres,
        "SQLite": "journal_mode wal, synchronous full",
        name: f"{version}, appendonly {kept}, no snapshots",
        "processes": "one worker process each; ours with 10 slots, and all runs of history kept",
    }


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def choice_of(words: Sequence[str] | None = None) -> tuple[Choice, argparse.Namespace]:
    parser = _parser()
    told = parser.parse_args(words)
    if told.environment and not environment.is_one(told.environment):
        parser.error(f"--environment: there is no environment in {told.environment}")
    base = QUICK if told.quick else Choice()
    sections = _among(parser, "--only", told.only, SECTIONS) if told.only else base.sections
    families = frozenset(
        () if told.peers == "none" else _among(parser, "--peers", told.peers, field.FAMILIES)
    )
    given = {
        name: getattr(told, name)
        for name in ("rounds", "count", "workers", "burst", "seconds", "rates", "stored", "past", "calls")
        if getattr(told, name) is not None
    }
    return replace(base, sections=sections, families=families, **given), told


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small numbers, one round: does it work?")
    parser.add_argument("--only", metavar="SECTIONS", help=", ".join(SECTIONS))
    parser.add_argument(
        "--peers",
        default=",".join(field.FAMILIES),
        metavar="NAMES",
        help=f"none, or some of {', '.join(field.FAMILIES)} [all]",
    )
    parser.add_argument("--rounds", type=int, help="of which the medians are taken [3]")
    parser.add_argument("--count", type=int, help="tasks of a drain [20000]")
    parser.add_argument("--workers", type=int, help="processes of a drain [1]")
    parser.add_argument("--burst", type=int, help="runs due at one moment [10000]")
    parser.add_argument("--rates", type=_numbers, help="fires a second [50,1000,5000]")
    parser.add_argument("--seconds", type=int, help="of each rate [10]")
    parser.add_argument("--stored", type=_numbers, help="schedules in the database [1000], e.g. 1000,1000000")
    parser.add_argument(
        "--past", type=int, help="drain and fire once more with so many rows of history behind it [0]"
    )
    parser.add_argument("--calls", type=int, help="of HTTP targets [5000]")
    parser.add_argument(
        "--environment",
        type=Path,
        metavar="FOLDER",
        help="where the peers are installed; without it they are installed into .bench/peers",
    )
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="[bench/results]")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, not as tables")
    return parser


def _among(parser: argparse.ArgumentParser, flag: str, words: str, known: Sequence[str]) -> tuple[str, ...]:
    wanted = [word.strip().lower() for word in words.split(",") if word.strip()]
    if unknown := [word for word in wanted if word not in known]:
        parser.error(f"{flag}: {', '.join(unknown)} is none of {', '.join(known)}")
    return tuple(word for word in known if word in wanted)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def main() -> None:
    choice, told = choice_of()
    for ending in (signal.SIGINT, signal.SIGTERM):  # what it has started ends too, behind nohup as well
        signal.signal(ending, signal.default_int_handler)
    python = sys.executable
    if choice.families and set(choice.sections) - {"limits", "pages", "http"}:
        python = environment.python_in(told.environment) if told.environment else environment.own_python()
    run = measure(choice, python)
    print(json.dumps(as_json(run), indent=2, ensure_ascii=False) if told.json else markdown(run))
    for path in write(run, told.results, f"{wall_clock():%Y-%m-%d-%H%M}"):
        _say(f"written to {path}")


if __name__ == "__main__":
    main()
