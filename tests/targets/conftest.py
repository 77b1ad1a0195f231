"""Every test of the targets runs on both event loops that the scheduler may run on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import uvloop

from noonday.targets import Targets, TargetsConfig
from tests.targets.hands import WebServer, a_config


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def config() -> TargetsConfig:
    return a_config()


@pytest.fixture
async def targets(config: TargetsConfig) -> AsyncIterator[Targets]:
    made = Targets(config)
    yield made
    await made.close()


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with WebServer() as made:
        yield made
