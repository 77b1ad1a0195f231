"""`/ui/new`: a job from a form, with each mistake told where it was made."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.web.site import Site, written

FORM = {
    "name": "report",
    "kind": "http",
    "method": "POST",
    "url": "https://example.com/report",
    "schedule_type": "cron",
    "cron_expression": "30 6 * * 1-5",
    "timezone": "Europe/Berlin",
    "priority": "2",
    "timeout_seconds": "60",
    "max_retries": "2",
    "overlap": "skip",
    "catch_up": "none",
    "schedule_enabled": "on",
    "do": "save",
}


def form(**changes: str | None) -> dict[str, str]:
    return {name: value for name, value in {**FORM, **changes}.items() if value is not None}


async def test_it_makes_the_job_that_was_written(any_site: Site) -> None:
    sent = form(
        headers="X-Team: billing\nX-Run: 1",
        body='{"full": true}',
        tags="nightly, billing",
        config='{"batch": 5}',
        windows="mon-fri 08:00-18:00\n22:00-23:00",
        holidays="de-be",
        excluded_dates="2027-12-24, 2027-12-31",
        outside="move",
        coalesce="on",
    )
    where, note = await any_site.obeyed("/ui/new", sent)
    assert (where, note) == ("/ui/jobs/report", "report was made.")
    made = await any_site.get("/api/v2/jobs/report")
    assert made["cron_expression"] == "30 6 * * 1-5"
    assert made["timezone"] == "Europe/Berlin"
    assert made["target"]["headers"] == {"X-Team": "billing", "X-Run": "1"}
    assert made["target"]["body"] == {"full": True}
    assert (made["tags"], made["config"]) == (["nightly", "billing"], {"batch": 5})
    assert len(made["windows"]) == 2
    assert made["windows"][0]["days"] == ["monday", "tuesday", "wednesday", "thursday", "friday"]
    assert made["calendar"] == {"holidays": "DE-BE", "excluded_dates": ["2027-12-24", "2027-12-31"]}
    assert (made["outside"], made["max_retries"], made["coalesce"]) == ("move", 2, True)


@pytest.mark.parametrize(
    ("sent", "wire"),
    [
        (
            {"schedule_type": "interval", "interval_minutes": "90", "interval_type": "seconds"},
            {"interval_minutes": 90, "interval_type": "seconds", "after_completion": False},
        ),
        (
            {"schedule_type": "calendar", "frequency": "weekly", "time": "08:30", "day": "friday"},
            {"frequency": "weekly", "time_config": {"hour": 8, "minute": 30, "day": "friday"}},
        ),
        ({"schedule_type": "once", "run_at": "2031-07-01T08:00"}, {"run_at": "2031-07-01T06:00:00Z"}),
        ({"schedule_type": "event", "trigger_webhook": "/in/*"}, {"trigger_webhook": "/in/*"}),
        ({"schedule_type": "manual"}, {"next_run_at": None}),
        ({"kind": "fetch"}, {"url": "https://example.com/report"}),
    ],
)
async def test_it_knows_every_kind_of_schedule(
    sent: dict[str, str], wire: dict[str, Any], site: Site
) -> None:
    await site.obeyed("/ui/new", form(**sent))
    made = await site.get("/api/v2/jobs/report")
    assert {name: made[name] for name in wire} == wire
    assert made["schedule_type"] == sent.get("schedule_type", "cron")


@pytest.mark.parametrize(
    ("sent", "wire"),
    [
        ({"basic": "minutes", "interval_minutes": "7"}, {"interval_minutes": 7, "interval_type": "minutes"}),
        ({"basic": "day"}, {"frequency": "daily", "time_config": {"hour": 8, "minute": 30}}),
        ({"basic": "weekday"}, {"cron_expression": "30 8 * * 1-5"}),
        (
            {"basic": "week", "day": "friday"},
            {"frequency": "weekly", "time_config": {"day": "friday", "hour": 8, "minute": 30}},
        ),
        (
            {"basic": "month", "day_of_month": "31"},
            {"frequency": "monthly", "time_config": {"day_of_month": 31, "hour": 8, "minute": 30}},
        ),
    ],
)
async def test_the_basic_way_makes_the_schedule_that_says_it(
    sent: dict[str, str], wire: dict[str, Any], site: Site
) -> None:
    await site.obeyed("/ui/new", form(schedule_type="basic", time="08:30", **sent))
    made = await site.get("/api/v2/jobs/report")
    assert {name: made[name] for name in wire} == wire
    page = written(await site.page("/ui/jobs/report/edit"))
    assert page["basic"] == (sent["basic"] if sent["basic"] != "weekday" else "day")


@pytest.mark.parametrize(
    ("sent", "target"),
    [
        (
            {"kind": "command", "argv": "tar -c 'my files'", "env": "A=1\nB=x=y", "cwd": "/srv"},
            {"argv": ["tar", "-c", "my files"], "env": {"A": "1", "B": "x=y"}, "cwd": "/srv"},
        ),
        ({"kind": "service", "service": "mailer", "endpoint": "/digest"}, {"service": "mailer"}),
        ({"kind": "python", "task": "tasks:run", "kwargs": '{"n": 3}'}, {"kwargs": {"n": 3}, "args": []}),
    ],
)
async def test_it_knows_every_kind_of_target(
    sent: dict[str, str], target: dict[str, Any], site: Site
) -> None:
    await site.obeyed("/ui/new", form(**sent))
    made = (await site.get("/api/v2/jobs/report"))["target"]
    assert {name: made[name] for name in target} == target


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("cron_expression", "61 * * * *", "minute"),
        ("cron_expression", "", "is needed"),
        ("url", "ftp://example.com", "http://"),
        ("timezone", "Europe/Atlantis", "Europe/Atlantis"),
        ("timeout_seconds", "soon", "valid number"),
        ("max_retries", "-1", "greater than or equal to 0"),
        ("config", "{", "is not JSON"),
        ("headers", "no colon", "has no :"),
        ("windows", "all day", "is not a window"),
        ("excluded_dates", "tomorrow", "is not a date"),
        ("holidays", "Atlantis", "country"),
        ("kind", "", "choose what"),
        ("name", "a/b", "address"),
        ("depends_on", "nobody", "nobody"),
        ("schedule_type", "sometimes", "should be"),
    ],
)
async def test_it_tells_each_mistake_at_its_field(name: str, value: str, words: str, site: Site) -> None:
    answer = await site.send("/ui/new", form(**{name: value}))
    assert answer.status_code == 422
    found = answer.text.split(f'id="e-{name}"')[1].split("</p>")[0]
    assert " hidden" not in found
    assert words in found
    assert 'value="report"' in answer.text or name == "name"  # what was right is still there
    assert (await site.get("/api/v2/jobs"))["total"] == 0


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ({"basic": "day", "time": "25:00"}, "time"),
        ({"basic": "weekday", "time": ""}, "time"),
        ({"basic": "month", "day_of_month": "40"}, "day_of_month"),
        ({"basic": "minutes", "interval_minutes": "soon"}, "interval_minutes"),
        ({"basic": "fortnight"}, "basic"),
    ],
)
async def test_a_mistake_in_the_basic_way_is_at_its_field(
    sent: dict[str, str], name: str, site: Site
) -> None:
    answer = await site.send("/ui/new", form(**{"schedule_type": "basic", "time": "08:00", **sent}))
    assert answer.status_code == 422
    assert " hidden" not in answer.text.split(f'id="e-{name}"')[1].split("</p>")[0]
    marked = answer.text.split(f'id="f-{name}"')[1].split(">")[0]
    assert 'aria-invalid="true" autofocus' in marked


async def test_it_tells_several_mistakes_at_once_and_keeps_them(site: Site) -> None:
    wrong = {"config": "{", "windows": "never", "timeout_seconds": "x", "argv": "'", "kind": "command"}
    answer = await site.send("/ui/new", form(**wrong))
    told = set(re.findall(r'href="#f-(\w+)"', answer.text))
    assert told == {"config", "windows", "timeout_seconds", "argv"}
    kept = written(answer.text)
    assert {name: kept[name].strip() for name in wrong} == wrong


async def test_it_makes_the_job_of_the_first_steps(site: Site) -> None:
    assert 'action="/ui/new/example"' in await site.page("/")
    where, _ = await site.obeyed("/ui/new/example")
    assert where == "/ui/jobs/hello"
    made = await site.get("/api/v2/jobs/hello")
    assert (made["interval_minutes"], made["interval_type"]) == (10, "seconds")
    assert made["target"]["argv"] == ["echo", "on the dot"]


async def test_it_refuses_a_name_that_is_taken(site: Site) -> None:
    await site.make(name="report")
    answer = await site.send("/ui/new", form())
    assert answer.status_code == 409
    assert "is taken by another job" in answer.text.split('id="e-name"')[1].split("</p>")[0]


async def test_it_shows_what_would_be_made_and_makes_nothing(site: Site) -> None:
    answer = await site.send("/ui/new", form(do="review"))
    assert answer.status_code == 200
    assert "Create report?" in answer.text
    assert 'name="cron_expression" value="30 6 * * 1-5"' in answer.text
    assert (await site.get("/api/v2/jobs"))["total"] == 0


async def test_it_begins_with_the_job_to_be_copied(site: Site) -> None:
    await site.make(name="old", cron_expression="7 3 * * *", tags=["x"], depends_on=[])
    page = await site.page("/ui/new?from=old")
    assert 'value="old-copy"' in page
    assert 'value="7 3 * * *"' in page
    await site.page("/ui/new?from=nobody", status=404)
