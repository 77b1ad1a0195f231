"""Hundreds of small worlds in which everything goes wrong, and in which nothing may be lost or done twice.

Real actors, a virtual clock, a database in memory, a road in memory; one seed is one world. A broken one says
its seed and what happened; `pytest tests/simulation --seed 17` lives it again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.conftest import asked
from tests.simulation.life import live
from tests.simulation.store import SharedStore, postgres_store

ROOT = Path(__file__).parents[2]
# Worlds that were broken before the fix, with what was wrong; each has a test of its own as well.
FOUND = {
    2: "an edit while a run was open began a second chain of a fixed delay",
    145: "an attempt began on a lease that had died before its claim came back",
}


def tell(seed: int, broken: list[str], trace: list[str]) -> str:
    said = "\n".join(trace)
    again = f"pytest tests/simulation --seed {seed}"
    return f"seed {seed}: " + "; ".join(broken[:5]) + f"\nlived again by: {again}\n{said}"


@pytest.mark.timeout(900)
def test_nothing_is_lost_doubled_stuck_or_untrue(
    seeds: range, store: SharedStore, request: pytest.FixtureRequest
) -> None:
    for seed in seeds:
        world = live(seed, store)
        if asked(request.config, "seed") is not None:
            print("\n".join(world.trace))
        assert not world.broken, tell(seed, world.broken, world.trace)


@pytest.mark.parametrize("seed", FOUND, ids=FOUND.get)
def test_what_was_found_once_stays_away(seed: int, store: SharedStore) -> None:
    world = live(seed, store)
    assert not world.broken, tell(seed, world.broken, world.trace)


@pytest.mark.parametrize("seed", [3, 8, 21])
def test_the_same_seed_is_the_same_world_to_the_last_event(seed: int, store: SharedStore) -> None:
    """In this process and in another one, where sets and dictionaries of texts have another order."""
    first, second = live(seed, store), live(seed, store)
    assert first.trace == second.trace
    program = (
        "import sys, tempfile; from pathlib import Path\n"
        "from tests.simulation.life import live; from tests.simulation.store import sqlite_store\n"
        "with tempfile.TemporaryDirectory() as folder, sqlite_store(Path(folder)) as store:\n"
        "    print('\\n'.join(live(int(sys.argv[1]), store).trace))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        [sys.executable, "-c", program, str(seed)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.splitlines() == "\n".join(first.trace).splitlines()


@pytest.mark.timeout(300)
def test_it_holds_on_postgresql_too(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres_store(postgres_url, monkeypatch) as store:
        for seed in range(5):
            world = live(seed, store)
            assert not world.broken, tell(seed, world.broken, world.trace)
