"""`make cluster`: three instances on real servers in one terminal, to see fail-over with your own eyes."""

from __future__ import annotations

import argparse
import json
import select
import signal
import sys
import time
from contextlib import closing
from types import FrameType

from redis import Redis

from demo.narrator import Narrator
from demo.scene import BEATS, LEASE, NOTE, TERM, Scene, scene
from tests.servers import Server

BEAT = 0.25  # seconds between two looks


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.cluster", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["run", "flush"], default="run")
    parser.add_argument(
        "--restart",
        nargs="?",
        type=float,
        const=10.0,
        metavar="SECONDS",
        help="start again by itself what died, after so long (10)",
    )
    parser.add_argument("--seconds", type=float, default=None, help="end after so long")
    chosen = parser.parse_args()
    return flush() if chosen.what == "flush" else run(chosen.restart, chosen.seconds)


def flush() -> int:
    """FLUSHALL on the Redis of the cluster that runs in another terminal."""
    try:
        url = json.loads(NOTE.read_text())["redis"]
    except FileNotFoundError:
        print("no cluster runs in this folder: make cluster", file=sys.stderr)
        return 1
    with closing(Redis.from_url(url)) as redis:
        redis.flushall()
    print("flushed: streams, consumer groups and the leader's key are gone")
    return 0


def run(restart: float | None, seconds: float | None) -> int:
    if NOTE.exists() and _answers():
        print("a cluster runs in this folder already", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, _interrupt)
    print("starting PostgreSQL, Valkey and three instances…", flush=True)
    try:
        with scene() as made:
            made.add_jobs()
            introduce(made, restart)
            narrator = Narrator(made)
            try:
                watch(made, narrator, restart, seconds)
            except KeyboardInterrupt:
                print()
            finally:
                narrator.close()
                for line in narrator.sum_up():
                    print(line)
                print("ending everything…", flush=True)
    except KeyboardInterrupt:
        return 130
    return 0


def watch(made: Scene, narrator: Narrator, restart: float | None, seconds: float | None) -> None:
    until = None if seconds is None else time.monotonic() + seconds
    died: float | None = None
    while until is None or time.monotonic() < until:
        narrator.look()
        dead = made.dead()
        now = time.monotonic()
        died = (died or now) if dead else None
        asked = _enter(BEAT)
        if died is not None and (asked or (restart is not None and now - died >= restart)):
            print(f"          starting {', '.join(dead)} again", flush=True)
            made.revive()
            died = None


def introduce(made: Scene, restart: float | None) -> None:
    leader = next((node for node in made.nodes if (node.health() or {}).get("is_leader")), made.nodes[0])
    again = f"by itself after {restart:g} s" if restart is not None else "when you press Enter here"
    lines = [
        "",
        f"Three instances. Without a sign of life a leader's term ends in {TERM} s, a lease in {LEASE} s.",
        "",
        *(f"  {node.name}  {node.url}  pid {node.pid}" for node in made.nodes),
        "",
        *(f"  {beat.name:5}  every {beat.every} s over {beat.road}" for beat in BEATS),
        "",
        "Try in another terminal, in this folder:",
        "",
        f"  kill -9 {leader.pid}    # the leader dies; its pid is told with each change",
        f"  kill -STOP {leader.pid}; sleep {TERM + 3}; kill -CONT {leader.pid}    # or it only sleeps",
        "  .venv/bin/python -m demo.cluster flush    # Redis forgets everything",
        f"  kill -9 {_pid(made.redis)}    # Redis dies",
        f"  kill -9 {_pid(made.postgres)}    # PostgreSQL dies",
        f"  export DATABASE_URL={made.postgres.url}",
        "  .venv/bin/noonday instances",
        "  .venv/bin/noonday history beat",
        f"  curl -s {made.nodes[0].url}/api/v2/scheduler/health",
        "",
        f"What died is started again {again}. Ctrl-C ends everything.",
        "",
    ]
    print("\n".join(lines), flush=True)


def _pid(server: Server) -> int:
    assert server.process is not None
    return server.process.pid


def _enter(patience: float) -> bool:
    """Was Enter pressed? Waits for it a moment; where nobody sits at a terminal it only waits."""
    if not sys.stdin.isatty():
        time.sleep(patience)
        return False
    ready, _, _ = select.select([sys.stdin], [], [], patience)
    return bool(ready and sys.stdin.readline())


def _answers() -> bool:
    try:
        with closing(Redis.from_url(json.loads(NOTE.read_text())["redis"], socket_timeout=1)) as redis:
            return bool(redis.ping())
    except Exception:
        return False


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
