"""What a job runs: a URL, a task, a service or a command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from noonday.cli.adding.texts import SOME, WHAT, Wire, headers, json_or_text, json_value, pair
from noonday.domain.errors import Invalid, Problem, invalid

__all__ = ["TargetFlags"]


@Parameter(name="*", group=WHAT)
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFlags:
    """What the job runs: one of --url, --task, --service, or a command after --."""

    url: str | None = None
    "Fetch this URL; with --method, --body or --expect it is called as an HTTP job."
    method: str | None = None
    "GET, POST, PUT, PATCH, DELETE, HEAD or OPTIONS."
    header: Annotated[tuple[str, ...], SOME] = ()
    'Send this header: "Accept: text/csv". May be repeated.'
    body: str | None = None
    "What to send: JSON, or @file."
    expect: Annotated[tuple[int, ...], SOME] = ()
    "A status that counts as success, instead of any 2xx. May be repeated."
    task: str | None = None
    "A Python task: its registered name, or package.module:function."
    args: str | None = None
    "The task's arguments: a JSON list, or a JSON object for arguments by name."
    service: str | None = None
    "Name of a service, whose address is in NAME_SERVICE_URL."
    endpoint: str | None = None
    "With --service: the path to call, /jobs/digest."
    command: str | None = None
    "A command line, split like a shell would but run without one. Better: everything after -- at the end."
    cwd: str | None = None
    "The folder in which the command runs."
    env: Annotated[tuple[str, ...], SOME] = ()
    "NAME=value in the command's environment. May be repeated."

    def wire(self) -> Wire:
        kinds = {"--url": self.url, "--task": self.task, "--service": self.service, "--command": self.command}
        given = [flag for flag, value in kinds.items() if value is not None]
        if len(given) > 1:
            raise Invalid(Problem(" ".join(given), "say one of them: a job has one target"))
        if not given:
            return {}
        makers = (self._url, self._task, self._service, self._command)
        return {"target": makers[list(kinds).index(given[0])]()}

    def _url(self) -> Wire:
        sent = {"headers": headers(self.header)} if self.header else {}
        if not (self.method or self.body or self.expect):
            return {"type": "fetch", "url": self.url, **sent}
        target: Wire = {"type": "http", "url": self.url, **sent}
        target |= {"method": self.method.upper()} if self.method else {}
        target |= {"body": json_or_text("--body", self.body)} if self.body else {}
        return target | ({"expected_status": list(self.expect)} if self.expect else {})

    def _task(self) -> Wire:
        given = json_value("--args", self.args) if self.args else []
        if isinstance(given, dict):
            return {"type": "python", "task": self.task, "kwargs": given}
        if isinstance(given, list):
            return {"type": "python", "task": self.task, "args": given}
        raise invalid("--args", self.args, "must be a JSON list or object")

    def _service(self) -> Wire:
        if not self.endpoint:
            raise Invalid(
                Problem("--endpoint", "is missing: the path of the service to call, such as /jobs/digest")
            )
        sent = {"headers": headers(self.header)} if self.header else {}
        return {"type": "service", "service": self.service, "endpoint": self.endpoint, **sent}

    def _command(self) -> Wire:
        try:
            argv = shlex.split(self.command or "")
        except ValueError as exc:
            raise invalid("--command", self.command, f"cannot be split: {exc}") from exc
        target: Wire = {"type": "command", "argv": argv}
        target |= {"cwd": self.cwd} if self.cwd else {}
        return target | ({"env": dict(pair("--env", text, "=") for text in self.env)} if self.env else {})
