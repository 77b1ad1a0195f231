"""The schedule explained while it is written: words, times, clocks, calendars, and who else starts."""

from __future__ import annotations

import re

import pytest

from tests.web.site import Site


async def explained(site: Site, **form: str) -> str:
    sent = {"schedule_type": "cron", "timezone": "UTC", **form}
    answer = await site.send("/ui/preview", sent)
    assert answer.status_code == 200, answer.text
    assert "<html" not in answer.text
    return re.sub(r"\s+", " ", answer.text)


def times(part: str) -> list[str]:
    return re.findall(r'<time datetime="[^"]*" data-tz="[^"]*">([^<]*)</time>', part)


async def test_it_says_the_schedule_and_its_next_ten_times(site: Site) -> None:
    part = await explained(site, cron_expression="30 2 * * *", timezone="Europe/Berlin")
    assert "02:30" in part.split('class="words"')[1].split("</p>")[0]
    found = times(part)
    assert len(found) == 10
    assert found[0].endswith("02:30:00 CET") or found[0].endswith("02:30:00 CEST")


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ("2027-03-27T12:00:00", "the clocks go forward"),
        ("2027-10-30T12:00:00", "this time of day comes twice"),
    ],
)
async def test_it_notes_when_the_clocks_change(now: str, words: str, site: Site) -> None:
    site.clock.at = site.clock.at.fromisoformat(f"{now}+00:00")
    part = await explained(site, cron_expression="30 2 * * *", timezone="Europe/Berlin")
    first = part.split("<tbody>")[1].split("</tr>")[0]
    assert words in first


async def test_it_shows_what_a_holiday_takes_away(site: Site) -> None:
    site.clock.at = site.clock.at.fromisoformat("2027-12-23T12:00:00+00:00")
    part = await explained(site, cron_expression="0 9 * * *", timezone="Europe/Berlin", holidays="DE")
    left = part.split("Left out")[1]
    assert "2027-12-25" in left
    assert "2027-12-25" not in part.split("Left out")[0]


async def test_it_counts_who_starts_in_the_same_minute(site: Site) -> None:
    for name in ("one", "two"):
        await site.make(name=name, cron_expression="15 4 * * *")
    await site.make(name="other", cron_expression="16 4 * * *")
    part = await explained(site, cron_expression="15 4 * * *")
    assert "2 other jobs start in the same minute" in part
    assert "other," not in part
    own = await site.get("/api/v2/jobs/one")
    assert "1 other job starts" in await explained(site, cron_expression="15 4 * * *", job=own["id"])
    assert "No other job starts" in await explained(site, cron_expression="17 4 * * *")


async def test_it_marks_the_field_that_is_wrong(site: Site) -> None:
    part = await explained(site, cron_expression="0 25 * * *")
    assert 'data-problem="cron_expression"' in part
    assert "hour" in part
    assert 'data-problem="timezone"' in await explained(site, cron_expression="0 5 * * *", timezone="Mars/X")


@pytest.mark.parametrize(
    ("expression", "marked"),
    [
        ("30 66 * * FOO", {"hour": "66", "day of week": "FOO"}),
        ("*/10 0 25 * * *", {"hour": "25"}),
        ("30 6 *", {"month": "?", "day of week": "?"}),
        ("1 2 3 4 5 6 7", {"too many": "7"}),
        ("30 6 * * 1-5", {}),
        ("@daily", {}),
    ],
)
async def test_it_marks_each_part_of_a_cron_text_that_is_wrong(
    expression: str, marked: dict[str, str], site: Site
) -> None:
    part = await explained(site, cron_expression=expression)
    found = re.findall(r'<li class="bad"><code>([^<]+)</code> <span>([^<]+)</span>', part)
    assert {name: text for text, name in found} == marked


async def test_it_says_what_is_moved_to_an_opening(site: Site) -> None:
    part = await explained(
        site, cron_expression="0 7 * * *", windows="mon-fri 09:00-17:00", outside="move", timezone="UTC"
    )
    first = part.split("<tbody>")[1].split("</tr>")[0]
    assert "2027-01-04 09:00:00 UTC" in first
    assert "moved: Monday 07:00 is outside the windows" in first


@pytest.mark.parametrize("mode", ["event", "manual"])
async def test_it_says_that_there_is_no_time(mode: str, site: Site) -> None:
    assert "no time of its own" in await explained(site, schedule_type=mode, trigger_webhook="/x")


async def test_a_wrong_schedule_is_marked_without_a_script(site: Site) -> None:
    sent = {"schedule_type": "cron", "cron_expression": "0 25 * * *", "timezone": "UTC", "do": "preview"}
    answer = await site.send("/ui/new", {**sent, "kind": "http"})
    assert answer.status_code == 200
    assert "outside 0-23" in answer.text.split('id="e-cron_expression"')[1].split("</p>")[0]
    assert '<li class="bad"><code>25</code> <span>hour</span>' in answer.text


async def test_it_does_the_same_without_a_script(site: Site) -> None:
    sent = {"schedule_type": "interval", "interval_minutes": "7", "interval_type": "hours", "do": "preview"}
    answer = await site.send("/ui/new", {**sent, "kind": "http", "name": "kept", "timezone": "UTC"})
    assert answer.status_code == 200
    assert 'value="kept"' in answer.text
    assert "7 hours" in answer.text.split('class="words"')[1].split("</p>")[0]
