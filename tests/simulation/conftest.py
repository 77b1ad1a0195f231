"""How many worlds, and which: `--seed 17` lives one of them again, `--seeds 10000` is for a night."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.simulation.store import SharedStore, sqlite_store

CHUNK = 10
USUAL = 400


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("simulation")
    group.addoption("--seed", type=int, help="live this one world, and print what happened in it")
    group.addoption("--seeds", type=int, help=f"how many worlds; {USUAL} unless told otherwise")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seeds" in metafunc.fixturenames:
        chosen = asked(metafunc.config, "seed")
        count = asked(metafunc.config, "seeds") or USUAL
        chunks = [range(first, min(first + CHUNK, count)) for first in range(0, count, CHUNK)]
        if chosen is not None:
            chunks = [range(chosen, chosen + 1)]
        metafunc.parametrize("seeds", chunks, ids=[f"{one.start}-{one.stop - 1}" for one in chunks])


def asked(config: pytest.Config, name: str) -> int | None:
    """From the command line, or from NOONDAY_SEED and NOONDAY_SEEDS."""
    told: int | None = config.getoption(f"--{name}", default=None)
    by_environment = os.environ.get(f"NOONDAY_{name.upper()}")
    return int(by_environment) if told is None and by_environment else told


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedStore]:
    with sqlite_store(tmp_path_factory.mktemp("simulation")) as made:
        yield made
