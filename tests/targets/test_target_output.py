"""What runs write is heard while they run: from processes, tasks of each mode, and services that stream."""

from __future__ import annotations

import asyncio
import sys

import pytest
from aiohttp import web

from noonday.domain.outcome import Completed
from noonday.domain.target import CommandTarget, ServiceTarget
from noonday.targets import Targets, TargetsConfig
from tests.targets import sample_tasks
from tests.targets.hands import WebServer, a_config, a_run, call, using


class Heard:
    """Remembers what was written; a test may wait for a text."""

    def __init__(self) -> None:
        self.text = ""
        self._loop = asyncio.get_running_loop()
        self._grew = asyncio.Event()

    def __call__(self, text: str) -> None:
        self.text += text
        self._loop.call_soon_threadsafe(self._grew.set)

    async def wait_for(self, text: str) -> None:
        async with asyncio.timeout(30):
            while text not in self.text:
                self._grew.clear()
                await self._grew.wait()


async def test_a_command_is_heard_before_it_ends(targets: Targets) -> None:
    heard = Heard()
    target = CommandTarget(argv=("sh", "-c", "echo begun; read _ < /dev/zero"))
    running = asyncio.ensure_future(targets.run(a_run(target, output=heard)))
    await heard.wait_for("begun\n")
    assert not running.done()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_letter_that_comes_in_two_parts_is_one(targets: Targets) -> None:
    heard = Heard()
    script = "import os, time; os.write(1, b'caf\\xc3'); time.sleep(0.2); os.write(1, b'\\xa9\\n\\xff')"
    outcome = await targets.run(a_run(CommandTarget(argv=(sys.executable, "-c", script)), output=heard))
    assert isinstance(outcome, Completed)
    assert heard.text == "café\n\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("mode", ["async", "thread", "process"])
async def test_a_task_writes_lines(mode: str) -> None:
    heard = Heard()
    async with using(a_config(tasks=sample_tasks.tasks)) as targets:
        outcome = await targets.run(a_run(call(f"say-{mode}", "one", "two\n"), output=heard))
    assert isinstance(outcome, Completed)
    assert heard.text == "one\ntwo\n"


class TestServices:
    @pytest.fixture
    def config(self, server: WebServer) -> TargetsConfig:
        return a_config(services={"email": server.url})

    async def test_lines_are_heard_as_they_come(self, server: WebServer, targets: Targets) -> None:
        heard = Heard()
        go_on = asyncio.Event()

        async def stream(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
            await answer.prepare(request)
            await answer.write(b"sent 1\n")
            await go_on.wait()
            await answer.write(b"sent 2\n")
            return answer

        server.handler = stream
        run = a_run(ServiceTarget(service="email", endpoint="/"), output=heard)
        running = asyncio.ensure_future(targets.run(run))
        await heard.wait_for("sent 1\n")
        assert not running.done()
        go_on.set()
        assert isinstance(await running, Completed)
        assert heard.text == "sent 1\nsent 2\n"

    async def test_an_answer_in_json_is_no_output(self, server: WebServer, targets: Targets) -> None:
        heard = Heard()
        server.answers(json={"success": True})
        await targets.run(a_run(ServiceTarget(service="email", endpoint="/"), output=heard))
        assert heard.text == ""
