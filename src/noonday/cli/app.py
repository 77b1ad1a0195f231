"""The tree of commands. Each is named here and imported only when it is called, so that all start fast."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version as version_of
from typing import Any

from cyclopts import App, CycloptsError, Group, Parameter

from noonday.cli.errors import FAULT, INTERRUPTED, USAGE, report
from noonday.cli.output import say
from noonday.domain.errors import NoondayError

__all__ = ["build", "main"]

_HELP = "A job scheduler that fires on time, loses nothing and says why."
_EPILOGUE = (
    "Exit codes: 0 done, 2 wrong use or value, 3 not found, 4 does not fit the present state, 5 not allowed, "
    "6 the database or something else needed is not there, 70 a defect, 130 interrupted."
)
_COMMANDS = (
    # title, command, where it lives, what the list says about it
    (
        "Run it",
        "serve",
        "serve:serve",
        "Run the scheduler: API, planner and workers in one process, or some of them.",
    ),
    (
        "Run it",
        "demo",
        "demo.command:demo",
        "Try everything out: a fleet of jobs with a past, and the services they call.",
    ),
    ("Run it", "worker", "worker:worker", "Run workers alone, in one process or in many."),
    ("Run it", "scheduler", "worker:scheduler", "Run the planner alone."),
    ("Run it", "migrate", "migrate:app", "Bring the database to the schema of this version, or back."),
    ("Run it", "config", "config:config", "Print every setting in force and where it comes from."),
    ("Run it", "bench", "bench:bench", "Measure how fast and how punctual it is here, on your servers."),
    ("Jobs", "jobs", "jobs:app", "Add, list, show, pause, resume, run, cancel and remove jobs."),
    ("Jobs", "history", "history:history", "What ran, what was skipped and why, newest first."),
    ("Jobs", "triggers", "triggers:app", "Which webhooks and channels start jobs; try a path, or call it."),
    ("Jobs", "services", "services:app", "Where the services live that jobs call; set and remove them."),
    ("Jobs", "breakers", "breakers:app", "Which domains are held back and why; let them through again."),
    (
        "Jobs",
        "next",
        "next:next_times",
        "Explain a schedule in words, with its next times; needs no database.",
    ),
    ("Operate", "instances", "instances:instances", "Which processes run, who leads, how busy they are."),
    ("Operate", "drain", "instances:drain", "Let workers finish what they run and take nothing new."),
    ("Operate", "resume", "instances:resume", "Let drained workers take work again."),
    (
        "Operate",
        "engine",
        "engine:app",
        "Compare version 1 and 2, move jobs from one to the other.",
    ),
    ("Access", "audit", "audit:app", "Who changed what; give a job the definition that it had before."),
    ("Access", "key", "keys:app", "API keys: make, list and revoke them."),
    ("Access", "token", "token:token", "Sign a token with JWT_SECRET."),
    ("About", "version", "about:version", "Print the version."),
)


def build() -> App:
    app = App(
        name="noonday",
        help=_HELP,
        help_epilogue=_EPILOGUE,
        version=lambda: version_of("noonday"),
        default_parameter=Parameter(negative=(), show_default=False),
    )
    groups: dict[str, Group] = {}
    for place, (title, name, where, words) in enumerate(_COMMANDS):
        group = groups.setdefault(title, Group(title, sort_key=len(groups)))
        # Only functions take settings here; the trees of `jobs` and `migrate` carry their own.
        more = {} if where.endswith(":app") else {"help_epilogue": ""}
        app.command(f"noonday.cli.{where}", name=name, help=words, group=group, sort_key=place, **more)
    app["--help"].group = app["--version"].group = groups["About"]
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing but a defect raises."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without UTF-8 shows ? instead of ending the command
            stream.reconfigure(errors="replace")
    tokens = _folded(list(sys.argv[1:] if argv is None else argv))
    try:
        answer = build()(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        say(f"noonday: {error}", f"hint: noonday {_path(tokens)}--help")
        return USAGE
    except NoondayError as error:
        return report(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _closed_pipe()
    except Exception:
        traceback.print_exc()
        say("noonday: this is a defect of Noonday; please report it with the lines above")
        return FAULT
    return _code(answer)


def _folded(tokens: list[str]) -> list[str]:
    """`jobs add … -- prog arg` as `--command`: what follows -- is a program's, not a name of ours."""
    if tokens[:2] != ["jobs", "add"] or "--" not in tokens:
        return tokens
    at = tokens.index("--")
    return [*tokens[:at], f"--command={shlex.join(tokens[at + 1 :])}"]


def _path(tokens: Sequence[str]) -> str:
    words = []
    for token in tokens[:2]:
        if not token.replace("-", "").isalpha() or token.startswith("-"):
            break
        words.append(token + " ")
    return "".join(words)


def _code(answer: Any) -> int:
    return answer if isinstance(answer, int) else 0


def _closed_pipe() -> int:
    """The reader went away (`noonday history | head`): no error, and no complaint at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
