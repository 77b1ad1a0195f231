"""What is done to a cluster. Each fault tells when it happened and how late it may make a fire."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from tests.cluster.cluster import LEADER_TTL, LEASE, SWEEP, Cluster
from tests.cluster.history import Fault
from tests.cluster.node import Node, eventually
from tests.proxy import Proxy

FAILOVER = LEADER_TTL + 5.0  # another one leads and has caught up
ORPHAN = LEASE + SWEEP  # what died with its worker, or was taken by it and not yet begun, starts again
REDIS_BACK = 10.0
REDIS_DOWN = 8.0  # until the fires of version 2 go over the database
POSTGRES_BACK = 15.0
HANDOVER = 2.0

Action = Callable[[Cluster], list[Fault]]


def moment(name: str, at: float, within: float) -> Fault:
    return Fault(name=name, began=at, ended=at, within=within)


def kill_the_leader(cluster: Cluster) -> list[Fault]:
    leader = cluster.leader()
    at = leader.kill()
    cluster.leader(within=FAILOVER, other_than=leader)
    leader.start()
    return [moment("leader killed", at, max(FAILOVER, ORPHAN))]


def pause_the_leader(cluster: Cluster) -> list[Fault]:
    """With work in its hands, for longer than its term and its leases: when it wakes, all of it is over."""
    leader = cluster.leader()
    while True:
        eventually(lambda: _works(cluster, leader), 15, f"{leader.name} has nothing to do")
        at = leader.pause()
        if _works(cluster, leader):
            break
        leader.wake()  # it ended its work in just that moment
    cluster.leader(within=FAILOVER, other_than=leader)
    _pass(at + max(LEADER_TTL, LEASE) + 1.5)
    woken = leader.wake()
    return [moment("leader paused", at, max(FAILOVER, ORPHAN)), moment("leader woken", woken, 3.0)]


def kill_a_worker(cluster: Cluster) -> list[Fault]:
    """With work in its hands."""
    node = cluster.follower()
    eventually(lambda: _works(cluster, node), 15, f"{node.name} has nothing to do")
    at = node.kill()
    # Others must settle what it held: it does not come back before and take its own work again.
    eventually(lambda: not _holds(cluster, node), ORPHAN, f"{node.name} is dead and still holds work")
    node.start()
    return [moment("worker killed", at, ORPHAN)]


def kill_all(cluster: Cluster, away: float = 3.0) -> list[Fault]:
    at = min(node.kill() for node in cluster.nodes)
    _pass(at + away)
    for node in cluster.nodes:
        node.launch()
    for node in cluster.nodes:
        node.wait_until_ready()
    return [Fault(name="all killed", began=at, ended=time.time(), within=max(FAILOVER, ORPHAN))]


def restart_one_by_one(cluster: Cluster) -> list[Fault]:
    """As a rolling update does: the next one only when this one is ready again."""
    faults = []
    for node in cluster.nodes:
        at = node.terminate()
        faults.append(moment("rolling restart", at, HANDOVER))
        code = node.wait()
        assert code == 0, f"{node.name} ended with {code}"
        node.start()
    return faults


def flush_redis(cluster: Cluster) -> list[Fault]:
    with cluster.keys() as keys:
        at = time.time()
        keys.flushall()
    return [moment("FLUSHALL", at, REDIS_BACK)]


def restart_redis(cluster: Cluster) -> list[Fault]:
    at = time.time()
    cluster.redis.restart()
    return [Fault(name="Redis restarted", began=at, ended=time.time(), within=REDIS_BACK)]


def wipe_redis(cluster: Cluster) -> list[Fault]:
    at = time.time()
    cluster.redis.kill()
    cluster.redis.wipe()
    cluster.redis.start()
    return [Fault(name="Redis lost its data", began=at, ended=time.time(), within=REDIS_BACK)]


def redis_away(cluster: Cluster, away: float = 9.0) -> list[Fault]:
    at = time.time()
    cluster.redis.kill()
    _pass(at + away)
    cluster.redis.start()
    return [moment("Redis down", at, REDIS_DOWN), moment("Redis back", time.time(), REDIS_BACK)]


def cut_from_redis(cluster: Cluster) -> list[Fault]:
    """The leader alone does not reach Redis: its connections are reset."""
    way = cluster.member(cluster.leader().name).redis
    return _blocked(way, way.refuse, "leader cut from Redis", REDIS_BACK)


def cut_from_postgres(cluster: Cluster) -> list[Fault]:
    way = cluster.member(cluster.leader().name).postgres
    return _blocked(way, way.refuse, "leader cut from PostgreSQL", POSTGRES_BACK)


def silence_postgres(cluster: Cluster) -> list[Fault]:
    """As a cable that was pulled: no reset, bytes just do not arrive."""
    way = cluster.member(cluster.leader().name).postgres
    return _blocked(way, way.hold, "leader hears nothing of PostgreSQL", POSTGRES_BACK)


def silence_redis(cluster: Cluster) -> list[Fault]:
    way = cluster.member(cluster.leader().name).redis
    return _blocked(way, way.hold, "leader hears nothing of Redis", REDIS_BACK)


def _blocked(
    way: Proxy, block: Callable[[], object], name: str, back: float, away: float = 6.0
) -> list[Fault]:
    at = time.time()
    block()
    _pass(at + away)
    way.resume()
    return [moment(name, at, max(FAILOVER, ORPHAN)), moment(f"{name}, and back", time.time(), back)]


def crash_postgres(cluster: Cluster, away: float = 3.0) -> list[Fault]:
    at = time.time()
    cluster.postgres.kill()
    _pass(at + away)
    cluster.postgres.start()
    return [Fault(name="PostgreSQL crashed", began=at, ended=time.time(), within=POSTGRES_BACK)]


_HELD: Final = "SELECT count(*) FROM executions WHERE state = 'running' AND instance_id = %s"
# Neither about to start nor about to end, nor short: a commit that is on its way arrives all the same.
_IN_THE_MIDDLE: Final = (
    "AND job_id IN (SELECT id FROM jobs WHERE name LIKE '%%-long-%%') "
    "AND started_at BETWEEN clock_timestamp() - interval '1.4 s' AND clock_timestamp() - interval '0.2 s'"
)


def _holds(cluster: Cluster, node: Node) -> bool:
    return _any(cluster, _HELD, node)


def _works(cluster: Cluster, node: Node) -> bool:
    """Is it in the middle of a run that takes longer?"""
    return _any(cluster, f"{_HELD} {_IN_THE_MIDDLE}", node)


def _any(cluster: Cluster, query: str, node: Node) -> bool:
    with cluster.sql() as conn:
        found = conn.execute(query, (node.name,)).fetchone()
    return bool(found and found[0])


def _pass(until: float) -> None:
    """The fault lasts: there is nothing to wait for but the time itself."""
    time.sleep(max(0.0, until - time.time()))
