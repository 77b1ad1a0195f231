"""What the page about locks shows, runs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "locks.md"


@pytest.mark.parametrize("kind", ["redis", "sqlite", "postgres"])
async def test_the_example_runs(request: pytest.FixtureRequest, kind: str) -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, str(PAGE), "exec"), names)
    main = cast(Callable[[str], Awaitable[list[int]]], names["main"])
    first, second = await main(request.getfixturevalue(f"{kind}_url"))
    assert 0 < first < second
