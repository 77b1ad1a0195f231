"""Every test of the client runs on both event loops that the scheduler may run on."""

from __future__ import annotations

from tests.targets.conftest import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
