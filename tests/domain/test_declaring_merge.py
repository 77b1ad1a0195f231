"""Three-way merge of declarations: the service's word goes, except where a person has changed the job."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.declaring import Merge, as_declared, declared, fields_of, merge, ordered
from noonday.domain.job import Job, JobId, JobState, Lane, RetryPolicy
from noonday.domain.schedule import Cron, Interval, IntervalUnit
from noonday.domain.target import HttpTarget, ServiceTarget
from tests.factories import a_job, a_timing

ALWAYS = {"cronExpression", "service", "endpoint"}
BARE = a_job(
    name="digest",
    schedule=Cron(expression="0 9 * * 1"),
    target=ServiceTarget(service="email-service", endpoint="/jobs/digest"),
)
USUAL = {name: value for name, value in fields_of(BARE).items() if name not in ALWAYS}


def cron(job: Job, text: str) -> Job:
    return replace(job, timing=a_timing(Cron(expression=text)))


def merged(last: Job | None, new: Job, now: Job, *named: str, override: Any = False) -> Merge:
    """All three as jobs; `named` are the fields that both declarations name, beside those that all do."""
    names = {*ALWAYS, *named}
    return merge(
        last=None if last is None else declared(last, names),
        new=declared(new, names),
        usual=USUAL,
        job=now,
        override=override,
    )


def test_nothing_is_taken_or_kept_where_all_agree() -> None:
    assert merged(BARE, BARE, BARE) == Merge()
    assert merged(None, BARE, BARE) == Merge()


def test_a_new_declaration_is_taken_where_nobody_changed_the_job() -> None:
    assert merged(BARE, cron(BARE, "0 8 * * *"), BARE) == Merge(taken=("cronExpression",))


def test_what_a_person_changed_is_kept_and_named() -> None:
    found = merged(BARE, cron(BARE, "0 8 * * *"), cron(BARE, "0 7 * * *"))
    assert found.taken == ()
    (kept,) = found.kept
    assert (kept.field, kept.declared, kept.kept) == ("cronExpression", "0 8 * * *", "0 7 * * *")
    assert "changed here" in kept.reason


def test_what_a_person_changed_is_kept_also_if_the_service_says_the_same_again() -> None:
    off = replace(BARE, enabled=False)
    found = merged(BARE, BARE, off, "enabled")
    assert [(kept.field, kept.declared, kept.kept) for kept in found.kept] == [("enabled", True, False)]


@pytest.mark.parametrize("override", [True, frozenset({"cronExpression"})])
def test_the_service_can_insist(override: Any) -> None:
    found = merged(BARE, BARE, cron(BARE, "0 7 * * *"), override=override)
    assert found == Merge(taken=("cronExpression",))


def test_it_insists_only_where_it_says_so() -> None:
    now = replace(cron(BARE, "0 7 * * *"), enabled=False)
    found = merged(BARE, BARE, now, "enabled", override=frozenset({"cronExpression"}))
    assert (found.taken, [kept.field for kept in found.kept]) == (("cronExpression",), ["enabled"])


def test_config_is_merged_key_by_key() -> None:
    last = replace(BARE, config={"batch": 100, "users": 10, "old": 1})
    new = replace(BARE, config={"batch": 200, "users": 20, "fresh": True})
    now = replace(BARE, config={"batch": 100, "users": 15, "old": 1, "own": "x"})
    found = merged(last, new, now, "config")
    assert found.taken == ("config.batch", "config.fresh", "config.old")
    assert [(kept.field, kept.declared, kept.kept) for kept in found.kept] == [("config.users", 20, 15)]
    after = as_declared(now, new, found.taken)
    assert after.config == {"batch": 200, "users": 15, "own": "x", "fresh": True}


def test_a_key_that_a_person_took_away_stays_away() -> None:
    last = replace(BARE, config={"batch": 100})
    found = merged(last, last, BARE, "config")
    assert [(kept.field, kept.declared, kept.kept) for kept in found.kept] == [("config.batch", 100, None)]
    assert merged(last, last, BARE, "config", override=frozenset({"config"})).taken == ("config.batch",)
    assert merged(last, last, BARE, "config", override=frozenset({"config.batch"})).kept == ()


def test_true_is_not_one() -> None:
    one, true = (replace(BARE, config={"a": value, "b": [value]}) for value in (1, True))
    assert merged(one, true, one, "config").taken == ("config.a", "config.b")


def test_a_field_that_is_declared_for_the_first_time_is_taken_if_it_is_as_usual() -> None:
    new = replace(BARE, timeout=timedelta(minutes=5), lane=Lane.HIGH)
    now = replace(BARE, lane=Lane.LOW)
    names = {*ALWAYS, "timeoutSeconds", "priority"}
    found = merge(last=declared(BARE, ALWAYS), new=declared(new, names), usual=USUAL, job=now)
    assert found.taken == ("timeoutSeconds",)
    assert [(kept.field, kept.kept) for kept in found.kept] == [("priority", 3)]


def test_a_field_that_is_declared_no_more_is_as_usual_again() -> None:
    last = replace(BARE, description="words", retry=RetryPolicy(max_retries=9))
    names = {*ALWAYS, "description", "maxRetries"}
    new = declared(BARE, ALWAYS)
    found = merge(last=declared(last, names), new=new, usual=USUAL, job=last)
    assert found.taken == ("description", "maxRetries")
    assert as_declared(last, BARE, found.taken) == BARE


def test_a_job_that_was_there_before_keeps_what_is_not_as_usual() -> None:
    here = replace(cron(BARE, "0 7 * * *"), description="by hand")
    new = replace(BARE, metadata={"display_name": "Digest", "job_type": "email", "critical": True})
    found = merged(None, new, here, "displayName", "jobType", "critical", "description")
    assert found.taken == ("critical", "displayName", "jobType")
    assert {kept.field: kept.reason.split()[-1] for kept in found.kept} == {
        "cronExpression": "declared",
        "description": "declared",
    }


def test_another_kind_of_schedule_or_target_is_a_change_too() -> None:
    now = replace(
        BARE,
        timing=a_timing(Interval(count=6, unit=IntervalUnit.HOURS)),
        target=HttpTarget(url="https://example.com/"),
    )
    found = merged(BARE, BARE, now)
    assert {kept.field: kept.kept for kept in found.kept} == {
        "cronExpression": "(interval 6 hours False)",
        "endpoint": "(http)",
        "service": "(http)",
    }
    back = as_declared(now, BARE, merged(BARE, BARE, now, override=True).taken)
    assert (back.target, back.timing.schedule) == (BARE.target, BARE.timing.schedule)


def test_headers_that_a_person_gave_the_target_survive_another_endpoint() -> None:
    now = replace(
        BARE, target=ServiceTarget(service="email-service", endpoint="/jobs/digest", headers={"X-A": "b"})
    )
    new = replace(BARE, target=ServiceTarget(service="email-service", endpoint="/v2/digest"))
    after = as_declared(now, new, merged(BARE, new, now).taken)
    assert after.target == ServiceTarget(service="email-service", endpoint="/v2/digest", headers={"X-A": "b"})


def test_a_cancelled_job_is_left_alone() -> None:
    gone = replace(BARE, state=JobState.CANCELLED)
    found = merged(BARE, cron(BARE, "0 8 * * *"), gone, override=True)
    assert found.taken == ()
    assert [kept.field for kept in found.kept] == ["status"]


def test_pausing_is_no_field_of_a_declaration() -> None:
    assert fields_of(replace(BARE, paused=True, state=JobState.PAUSED)) == fields_of(BARE)


leaves = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from(["", "x", "y"]))
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("k"), inner)
)
configs = st.dictionaries(st.sampled_from(["a", "b.c", "config.a", ""]), values, max_size=3)
crons = st.sampled_from(["0 9 * * 1", "0 8 * * *", "0 7 * * *"])


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    return replace(
        cron(BARE, draw(crons)),
        config=draw(configs),
        metadata=draw(st.dictionaries(st.sampled_from(["display_name", "critical", "own"]), values)),
        enabled=draw(st.booleans()),
        description=draw(st.sampled_from(["", "one", "two"])),
        lane=draw(st.sampled_from(Lane)),
        depends_on=tuple(JobId(name) for name in draw(st.lists(st.sampled_from("pq"), unique=True))),
    )


NAMES = ["config", "displayName", "critical", "metadata", "enabled", "description", "priority", "dependsOn"]
named = st.sets(st.sampled_from(NAMES))
overrides = st.one_of(st.booleans(), st.sets(st.sampled_from(NAMES)).map(frozenset))


@given(jobs(), named, jobs(), named, jobs(), overrides)
def test_it_never_takes_what_a_person_changed_and_never_touches_the_rest(
    last: Job, said: set[str], new: Job, says: set[str], now: Job, override: bool | frozenset[str]
) -> None:
    before, wanted = declared(last, said | ALWAYS), declared(new, says | ALWAYS)
    # As at the edge: where a declaration is silent, its job is as usual.
    blank = BARE
    new = as_declared(blank, new, [name for name in wanted if name not in ALWAYS or name == "cronExpression"])
    found = merge(last=before, new=wanted, usual=USUAL, job=now, override=override)
    after = as_declared(now, new, found.taken)
    old, made = fields_of(now), fields_of(after)
    nothing = object()
    for name in {*old, *made, *before, *wanted}:
        said_of = before.get(name, USUAL.get(name, nothing))
        insisted = override is True or (override and (name in override or name.partition(".")[0] in override))
        if name in found.taken:
            assert made.get(name, nothing) == wanted.get(name, USUAL.get(name, nothing))
            assert insisted or old.get(name, nothing) == said_of
        else:
            assert made.get(name, nothing) == old.get(name, nothing)
    again = merge(last=wanted, new=wanted, usual=USUAL, job=after, override=override)
    assert again.taken == ()
    assert {kept.field for kept in again.kept} == {kept.field for kept in found.kept if kept.field in wanted}


edges = st.dictionaries(
    st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdefxy"), max_size=3), min_size=1
)


@given(edges)
def test_it_puts_each_job_after_those_it_names_unless_they_run_in_a_circle(
    found: dict[str, set[str]],
) -> None:
    made = [
        replace(BARE, name=name, depends_on=tuple(map(JobId, sorted(parents))))
        for name, parents in found.items()
    ]
    order = [job.name for job in ordered(made)]
    assert sorted(order) == sorted(found)
    if not any(name in _above(found, name) for name in found):
        places = {name: place for place, name in enumerate(order)}
        assert all(
            places[parent] < places[name] for name in found for parent in found[name] if parent in places
        )


def _above(edges: dict[str, set[str]], name: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges.get(name, ()))
    while waiting:
        parent = waiting.pop()
        if parent not in seen:
            seen.add(parent)
            waiting += edges.get(parent, ())
    return seen
