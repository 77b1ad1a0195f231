"""The calendar as a page: a month with counts, holidays, excluded dates and windows."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from tests.factories import NOON
from tests.web.past import a_run
from tests.web.site import Site


def day_of(page: str, day: str) -> str:
    """The words of a day's field."""
    found = re.search(rf'<a class="(day[^"]*)" href="[^"]*day={day}#day"[^>]*>(.*?)</a>', page, re.DOTALL)
    assert found, day
    return " ".join([found[1], *re.sub(r"<[^>]*>", " ", found[2]).split()])


async def test_days_show_what_ran_and_what_will(any_site: Site) -> None:
    job = await any_site.make(name="feed", cron_expression="0 0,12 * * *")
    await a_run(any_site, job, NOON - timedelta(hours=3))
    await a_run(any_site, job, NOON - timedelta(hours=2), state="failed")
    page = await any_site.page("/ui/calendar")
    assert day_of(page, "2027-01-01") == "day today 1 January 2 ran ✕ 1 failed"
    assert day_of(page, "2027-01-02") == "day 2 January ○ 2 planned"
    assert day_of(page, "2026-12-31").startswith("day other 31 December")
    assert len(re.findall(r'<a class="day', page)) == 35


async def test_holidays_and_excluded_dates_close_days(site: Site) -> None:
    await site.make(name="german", calendar={"holidays": "DE"})
    await site.make(name="both", calendar={"holidays": "US", "excluded_dates": ["2027-01-06"]})
    page = await site.page("/ui/calendar?month=2027-01&day=2027-01-06")
    assert "New Year's Day: DE, US" in re.sub("&#39;", "'", day_of(page, "2027-01-01"))
    assert "▲ 2 closed" in day_of(page, "2027-01-01")
    assert "closed ▲ 1 closed" in day_of(page, "2027-01-06").replace(
        "day closed picked 6 January ○ 24 planned", "closed"
    )
    assert "2027-01-06 is an excluded date" in page
    assert "not on public holidays of US, not on 2027-01-06" in page
    assert 'href="/ui/calendar?month=2026-12"' in page
    assert 'href="/ui/calendar?month=2027-02"' in page


async def test_windows_are_told_in_words_and_whether_they_are_open(site: Site) -> None:
    await site.make(name="night", windows=[{"days": [1, 2, 3, 4, 5], "start": "01:00", "end": "05:00"}])
    page = await site.page("/ui/calendar")
    assert "only Mon\N{EN DASH}Fri 01:00\N{EN DASH}05:00" in page
    assert "Friday 12:00 is outside the windows" in page


async def test_a_calendar_without_limits_says_how_to_make_one(site: Site) -> None:
    page = await site.page("/ui/calendar")
    assert "No job has windows, holidays or excluded dates yet" in page


@pytest.mark.parametrize("query", ["month=2027-13", "month=soon", "month=1900-01", "day=never"])
async def test_a_month_that_is_none_is_refused(site: Site, query: str) -> None:
    await site.page(f"/ui/calendar?{query}", 422)


async def test_days_are_those_of_the_readers_zone(site: Site) -> None:
    await site.make(name="late", cron_expression="0 20 * * *")
    site.client.cookies.set("noonday_zone", "Asia/Tokyo")
    page = await site.page("/ui/calendar")
    assert day_of(page, "2027-01-01") == "day today 1 January"
    assert day_of(page, "2027-01-02").endswith("1 planned")
