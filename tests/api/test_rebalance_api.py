"""The spread of the load over HTTP: seeing it, previewing a better one, and moving jobs."""

from __future__ import annotations

from typing import Any

import pytest

from noonday.api.spreading import DistributionShape, RebalanceShape, ShiftShape
from noonday.control.jobs import Jobs
from noonday.control.rebalance import Rebalancing, Suggestion, Wish
from noonday.store import audit
from noonday.store.audit import AuditEntry
from tests.api.caller import Api

PATH = "/api/v2/scheduler/rebalance"


async def crowd(api: Api, count: int = 12, **body: Any) -> list[dict[str, Any]]:
    """Jobs that all start on the hour, of which the one of noon has passed."""
    body = {"interval_minutes": 60} | body
    made = [await api.make(name=f"job-{number}", **body) for number in range(count)]
    api.clock.advance(minutes=1)
    return made


async def trail(api: Api, job_id: str) -> list[AuditEntry]:
    page = await api.db.read(lambda conn: audit.page(conn, subject_id=job_id))
    return list(page.items)


def names(shape: Any) -> set[str]:
    return {field.alias or name for name, field in shape.model_fields.items()}


async def test_it_shows_how_the_load_is_spread(api: Api) -> None:
    await crowd(api, 4)
    for version in ("v1", "v2"):
        seen = await api.get(f"/api/{version}/scheduler/distribution", params={"slot_minutes": 60})
        assert seen.keys() == names(DistributionShape)
        assert (seen["from"], seen["to"]) == ("2027-01-01T12:00:00Z", "2027-01-02T12:00:00Z")
        assert (seen["jobs"], seen["total"], len(seen["slots"])) == (4, 92, 24)
        assert seen["slots"][:2] == [
            {"at": "2027-01-01T12:00:00Z", "starts": 0},
            {"at": "2027-01-01T13:00:00Z", "starts": 4},
        ]
        assert seen["peak"] == {"at": "2027-01-01T13:00:00Z", "starts": 4}
        assert seen["mean"] == pytest.approx(92 / 24, abs=1e-4)
        assert seen["score"] == pytest.approx(1 - seen["deviation"] / seen["mean"], abs=1e-3)


async def test_it_previews_and_changes_nothing(api: Api) -> None:
    made = await crowd(api)
    for path, body in ((f"{PATH}/preview", None), (PATH, {"dry_run": True})):
        answer = await api.call("POST", path, body)
        seen = answer.json()
        assert (answer.status_code, seen.keys()) == (200, names(RebalanceShape))
        assert (seen["dry_run"], seen["score_before"], seen["refused"]) == (True, 0, [])
        assert seen["score_after"] > 0.7
        assert (seen["peak_before"]["starts"], seen["peak_after"]["starts"]) == (12, 3)
        assert all(move.keys() == names(ShiftShape) for move in seen["moves"])
        assert {move["job_id"] for move in seen["moves"]} <= {job["id"] for job in made}
    for job in made:
        assert (await api.stored(job["id"])).revision == 1


async def test_it_moves_what_it_previewed(api: Api) -> None:
    made = await crowd(api)
    expected = (await api.call("POST", f"{PATH}/preview")).json()
    seen = (await api.call("POST", PATH)).json()
    assert (seen["dry_run"], seen["moves"], seen["refused"]) == (False, expected["moves"], [])
    assert seen["score_after"] == pytest.approx(expected["score_after"], abs=0.1)
    assert (await api.get("/api/v2/scheduler/distribution"))["score"] == seen["score_after"]
    for move in seen["moves"]:
        job = await api.get(f"/api/v2/jobs/{move['job_id']}")
        assert job["next_run_at"] == move["next_run_after"] != move["next_run_before"]
        assert (job["interval_minutes"], job["revision"]) == (60, 2)
        assert job["schedule_words"] == move["schedule_after"] != move["schedule_before"]
        entries = {entry.action: entry for entry in await trail(api, job["id"])}
        assert entries.keys() == {"create", "rebalance"}
        entry = entries["rebalance"]
        assert (entry.actor, entry.at, entry.revision) == ("anonymous", api.clock.now(), 2)
        assert entry.before is not None
        assert entry.before.keys() == {"timing", "revision"}
    moved = {move["job_id"] for move in seen["moves"]}
    left = [job["id"] for job in made if job["id"] not in moved]
    assert left
    assert {(await api.stored(job)).revision for job in left} == {1}


async def test_it_lets_moved_jobs_rest_for_an_hour(sqlite_api: Api) -> None:
    api = sqlite_api
    await crowd(api, interval_minutes=360)
    first = (await api.call("POST", PATH)).json()
    count = len(first["moves"])
    assert count
    for minutes in (0, 59):
        api.clock.advance(minutes=minutes)
        again = (await api.call("POST", f"{PATH}/preview")).json()
        assert again["held"]["it was moved a short while ago"] == count
        assert not {move["job_id"] for move in again["moves"]} & {move["job_id"] for move in first["moves"]}
    api.clock.advance(minutes=1, seconds=1)
    later = (await api.call("POST", f"{PATH}/preview")).json()
    assert "it was moved a short while ago" not in later["held"]


async def test_it_loses_and_doubles_no_fire(sqlite_api: Api) -> None:
    """The next time of a moved job comes between half a period and one and a half after the last."""
    api = sqlite_api
    await crowd(api)
    for move in (await api.call("POST", PATH)).json()["moves"]:
        runs = (await api.get(f"/api/v2/jobs/{move['job_id']}/upcoming", params={"count": 3}))["next_runs"]
        assert runs[0] == move["next_run_after"]
        assert "2027-01-01T12:30" <= runs[0] <= "2027-01-01T13:30:00Z"
        history = await api.get(f"/api/v2/jobs/{move['job_id']}/executions")
        assert history["executions"] == []  # nothing was due, so nothing was skipped


class _Interrupted(Rebalancing):
    """Somebody changes the first job in the moment between the look and the change."""

    def __init__(self, api: Api) -> None:
        super().__init__(api.db, api.clock, Jobs(api.db, api.clock))
        self._api = api
        self.seen: list[str] = []

    async def preview(self, wish: Wish) -> Suggestion:
        found = await super().preview(wish)
        self.seen = [move.job.id for move in found.proposal.moves]
        await self._api.call("PUT", f"/api/v2/jobs/{self.seen[0]}", {"description": "mine"})
        return found


async def test_it_leaves_a_job_alone_that_somebody_else_changed(sqlite_api: Api) -> None:
    api = sqlite_api
    await crowd(api)
    rebalancing = _Interrupted(api)
    done = await rebalancing.apply(Wish())
    first, *others = rebalancing.seen
    assert [(one.move.job.id, "was changed" in one.why) for one in done.refused] == [(first, True)]
    assert [move.job.id for move in done.moved] == others
    assert {entry.action for entry in await trail(api, first)} == {"create", "update"}


async def test_it_keeps_those_in_place_that_others_need(sqlite_api: Api) -> None:
    api = sqlite_api
    made = await crowd(api)
    await api.make(name="child", schedule_type="manual", depends_on=["job-3"])
    await api.make(name="next", schedule_type="manual", on_success_of=["job-4"])
    seen = (await api.call("POST", PATH)).json()
    assert seen["held"] == {"other jobs wait for it, or it for them": 2}
    assert not {made[3]["id"], made[4]["id"]} & {move["job_id"] for move in seen["moves"]}


async def test_it_moves_chosen_jobs_and_fixed_minutes_if_told(api: Api) -> None:
    await crowd(api, cron_expression="0 * * * *", interval_minutes=None, schedule_type="cron")
    seen = (await api.call("POST", f"{PATH}/preview")).json()
    assert (seen["moves"], seen["held"]) == ([], {"its schedule names its times": 12})
    body = {"fixed_minutes": True, "jobs": ["job-3", "job-5"], "slot_minutes": 30, "max_moves": 1}
    moved = (await api.call("POST", "/api/v1/scheduler/rebalance", body)).json()
    (move,) = moved["moves"]
    assert move["job_name"] in ("job-3", "job-5")
    job = await api.get(f"/api/v2/jobs/{move['job_id']}")
    minute, rest = job["cron_expression"].split(" ", 1)
    assert (rest, int(minute)) == ("* * * *", move["shift_minutes"])
    assert job["next_run_at"] == move["next_run_after"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"slot_minutes": 7}, "slot_minutes"),
        ({"max_moves": 0}, "max_moves"),
        ({"max_moves": 1001}, "max_moves"),
        ({"jobs": ["nobody"]}, "jobs[0]"),
        ({"jobs": "all"}, "jobs"),
        ({"what": 1}, "what"),
        ({"fixed_minutes": "yes"}, "fixed_minutes"),
    ],
)
async def test_it_refuses_what_it_cannot_do(sqlite_api: Api, body: dict[str, Any], field: str) -> None:
    for path in (PATH, f"{PATH}/preview"):
        answer = await sqlite_api.call("POST", path, body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"] == field
