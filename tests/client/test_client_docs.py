"""What docs/client.md tells people to write, works as it stands there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from noonday import client as package
from noonday.client import NoondayClient, Refused

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


async def test_every_example_runs(url: str) -> None:
    """One after the other: they tell one story."""
    assert len(BLOCKS) >= 6
    for block in BLOCKS:
        code = block.replace("http://127.0.0.1:8060", url)
        run = compile(code, "docs/client.md", "exec")
        await asyncio.to_thread(exec, run, {"__name__": "docs"})
    with NoondayClient(url) as client:
        job = client.jobs.read("hello")
    assert (job.priority, job.schedule_type) == (1, "interval")


def test_every_exception_is_in_the_table() -> None:
    public = [getattr(package, name) for name in package.__all__]
    errors = {one for one in public if isinstance(one, type) and issubclass(one, Exception)}
    for error in errors - {Refused, package.ClientError}:
        assert f"`{error.__name__}`" in PAGE
