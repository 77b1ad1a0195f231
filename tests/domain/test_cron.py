"""Cron texts: what is understood, what is refused and how, and what the clocks' changes do to them."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from noonday.domain.cron import CronError, check_cron, cron_after, cron_times, resolve
from tests.domain.timing_oracle import ZONES, brute_force, changes, cron_matcher, stepped

BERLIN = "Europe/Berlin"


def local(text: str, zone: str = BERLIN, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)


def shown(expression: str, zone: str, after: datetime, count: int) -> list[str]:
    """The wall clock at the next times, with the second showing of a doubled time marked."""
    found = islice(cron_times(expression, "", zone, after), count)
    readings = [instant.astimezone(ZoneInfo(zone)) for instant in found]
    return [f"{reading:%d %H:%M:%S}{'+' * reading.fold}" for reading in readings]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("@yearly", "0 0 0 1 1 *"),
        ("@annually", "0 0 0 1 1 *"),
        ("@monthly", "0 0 0 1 * *"),
        ("@weekly", "0 0 0 * * 0"),
        ("@daily", "0 0 0 * * *"),
        ("@MIDNIGHT", "0 0 0 * * *"),
        (" @hourly ", "0 0 * * * *"),
        ("*/5 * * * *", "0 */5 * * * *"),
        ("30 15 10 1 jan mon", "30 15 10 1 1 1"),
        ("0 0 * JAN,mar *", "0 0 0 * 1,3 *"),
        ("0 0 * * MON-FRI", "0 0 0 * * 1-5"),
        ("0 0 * * FRI-MON", "0 0 0 * * 5,6,0,1"),
        ("0 0 * * FRI-TUE/2", "0 0 0 * * 5,0,2"),
        ("0 0 * * SAT-SUN", "0 0 0 * * 6-7"),
        ("0 0 * * MON-SUN", "0 0 0 * * 1-7"),
        ("0 0 * * 7-2", "0 0 0 * * 0-2"),
        ("0 0 * * 7-7", "0 0 0 * * 7"),
        ("0 0 * * 0-0", "0 0 0 * * 0"),
        ("0 0 * NOV-FEB *", "0 0 0 * 11,12,1,2 *"),
        ("0 0 L,15 * *", "0 0 0 L,15 * *"),
        ("0 0 LW * *", "0 0 0 LW * *"),
        ("0 0 * * FRI#2", "0 0 0 * * 5#2"),
        ("0 0 * * FRIL", "0 0 0 * * 5L"),
        ("0 0 * * 5L,MON#1", "0 0 0 * * 5L,1#1"),
        ("5-5/2 * * * *", "0 5 * * * *"),
    ],
)
def test_it_understands(expression: str, expected: str) -> None:
    check_cron(expression)
    assert resolve(expression, "any") == expected


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "5 fields, or 6 with the seconds first, not 0"),
        ("* * * *", "not 4"),
        ("0 0 0 1 1 * 2027", "not 7"),
        ("60 * * * *", "minute '60' is outside 0-59"),
        ("60 * * * * *", "second '60' is outside 0-59"),
        ("0 24 * * *", "hour '24' is outside 0-23"),
        ("0 0 0 * *", "day of month '0' is outside 1-31"),
        ("0 0 32 * *", "day of month '32'"),
        ("0 0 * 13 *", "month '13' is outside 1-12"),
        ("0 0 * * 8", "day of week '8' is outside 0-7"),
        ("0 0 * foo *", "month 'FOO' is not a number from 1 to 12, or a name such as JAN"),
        ("0 MON * * *", "hour 'MON' is not a number"),
        ("*/0 * * * *", "minute step '0'"),
        ("*/x * * * *", "minute '*/X'"),
        ("1,,2 * * * *", "minute ''"),
        ("-1 * * * *", "minute '-1'"),
        ("1.5 * * * *", "minute '1.5'"),
        ("0 22-2 * * *", "hour '22-2' runs backwards; did you mean 22-23,0-2?"),
        ("0 0 ? * MON", "day of month '?'"),
        ("0 0 15W * *", "day of month '15W'"),
        ("0 0 * * 5#6", "day of week '5#6'"),
        ("0 0 * * L", "day of week 'L'"),
        ("0 0 * * FOOL", "day of week 'FOO'"),
        ("0 0 30 2 *", "day of month '30' never comes in month '2'"),
        ("0 0 31 4,JUN,9,11 *", "day of month '31' never comes in month '4,6,9,11'"),
        ("0 0 */15 * MON#2", "never meet"),
        ("0 0 */31 * 5L", "never meet"),
        ("H(0-60) * * * *", "minute '60' is outside"),
        ("H(9-3) * * * *", "minute 'H(9-3)'"),
        ("0 0 H(1-31) * *", "within 1-28"),
        ("H/61 * * * *", "step is larger than the range 0-59"),
        ("H-5 * * * *", "minute 'H'"),
        ("@reboot", "@reboot has no time"),
        ("@fortnightly", "'@fortnightly' is not one of @yearly"),
        ("٣ * * * *", "ASCII"),
        ("1," * 200 + "1 * * * *", "at most 256 characters"),
    ],
)
def test_it_refuses_and_names_the_field(expression: str, message: str) -> None:
    with pytest.raises(CronError) as caught:
        check_cron(expression)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "expression",
    [
        "{} 0 */15 * MON#2",
        "{} 0 30 2 *",
        "{} 0 29 2 */6",
        "{} 0 * 2 MON#5",
        "{} */1 */1 */31 2 5L",
        "{}" + ",*" * 100 + " * * * *",
    ],
)
def test_it_checks_within_a_millisecond(expression: str) -> None:
    def seconds(minute: int) -> float:
        begin = time.perf_counter()
        with suppress(CronError):
            check_cron(expression.format(minute))
        return time.perf_counter() - begin

    assert min(seconds(minute) for minute in range(50)) < 0.001


def test_a_day_that_is_rare_is_not_refused() -> None:
    check_cron("0 0 * 2 MON#5")
    assert cron_after("0 0 * 2 MON#5", "", "UTC", datetime(2027, 1, 1, tzinfo=UTC)) == datetime(
        2044, 2, 29, tzinfo=UTC
    )


def test_a_day_that_only_short_februaries_have_is_not_refused() -> None:
    check_cron("0 0 */21 2 5L")
    assert cron_after("0 0 */21 2 5L", "", "UTC", datetime(2027, 1, 1, tzinfo=UTC)) == datetime(
        2030, 2, 22, tzinfo=UTC
    )


class TestH:
    def test_its_choice_never_changes_between_versions(self) -> None:
        assert resolve("H H H H H H", "job-1") == "49 11 3 14 4 3"
        assert resolve("H/20 H(8-17)/3 * * *", "job-1") == "0 11-59/20 8-17/3 * * *"

    def test_it_is_stable_for_a_key_and_differs_between_keys(self) -> None:
        drawn = {key: resolve("H H H H H", key) for key in map(str, range(200))}
        assert all(resolve("H H H H H", key) == text for key, text in drawn.items())
        assert len(set(drawn.values())) > 190

    def test_it_spreads_evenly_over_its_field(self) -> None:
        minutes = Counter(resolve("H * * * *", f"job-{number}").split()[1] for number in range(6000))
        assert len(minutes) == 60
        assert max(minutes.values()) < 160

    @pytest.mark.parametrize(
        ("field", "index", "low", "high"),
        [
            ("H", 1, 0, 59),
            ("H(10-19)", 1, 10, 19),
            ("H", 2, 0, 23),
            ("H", 3, 1, 28),
            ("H", 4, 1, 12),
            ("H", 5, 0, 6),
        ],
    )
    def test_it_stays_in_its_range(self, field: str, index: int, low: int, high: int) -> None:
        fields = ["0", "0", "0", "*", "*", "*"]
        fields[index] = field
        drawn = {int(resolve(" ".join(fields), str(key)).split()[index]) for key in range(1000)}
        assert drawn == set(range(low, high + 1))

    def test_a_step_starts_somewhere_within_the_first_step(self) -> None:
        drawn = {resolve("H/15 * * * *", str(key)) for key in range(500)}
        assert drawn == {f"0 {start}-59/15 * * * *" for start in range(15)}

    def test_a_step_as_wide_as_its_range_is_due_once(self) -> None:
        for key in map(str, range(100)):
            after = datetime(2027, 1, 1, tzinfo=UTC)
            found = list(islice(cron_times("H(0-29)/30 * * * *", key, "UTC", after), 3))
            assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(hours=1)}

    def test_a_key_without_h_changes_nothing(self) -> None:
        assert resolve("0 0 * MAR THU", "a") == resolve("0 0 * MAR THU", "b") == "0 0 0 * 3 4"

    def test_the_daily_family_is_not_spread(self) -> None:
        assert resolve("@daily", "a") == resolve("@daily", "b")


class TestClockChanges:
    def test_a_missing_time_runs_once_when_the_gap_ends(self) -> None:
        assert shown("30 2 * * *", BERLIN, local("2027-03-27T12:00"), 2) == ["28 03:00:00", "29 02:30:00"]

    def test_a_missing_time_with_seconds_does_so_too(self) -> None:
        assert shown("15 30 2 * * *", BERLIN, local("2027-03-27T12:00"), 2) == ["28 03:00:00", "29 02:30:15"]

    def test_several_missing_times_make_one_run(self) -> None:
        assert shown("0,15,45 2,3 28 3 *", BERLIN, local("2027-03-27T12:00"), 3) == [
            "28 03:00:00",
            "28 03:15:00",
            "28 03:45:00",
        ]

    def test_a_doubled_time_runs_the_first_time_only(self) -> None:
        assert shown("30 2 * * *", BERLIN, local("2027-10-30T12:00"), 2) == ["31 02:30:00", "01 02:30:00"]
        assert shown("0 30 2 * * *", BERLIN, local("2027-10-30T12:00"), 2) == ["31 02:30:00", "01 02:30:00"]

    def test_asked_within_the_second_showing_a_fixed_time_does_not_come_back(self) -> None:
        after = local("2027-10-31T02:10", fold=1)
        assert shown("30 2 * * *", BERLIN, after, 1) == ["01 02:30:00"]

    def test_a_wildcard_follows_the_wall_clock(self) -> None:
        assert shown("*/30 * * * *", BERLIN, local("2027-03-28T01:29"), 3) == [
            "28 01:30:00",
            "28 03:00:00",
            "28 03:30:00",
        ]
        assert shown("*/30 2 * * *", BERLIN, local("2027-10-31T01:00"), 5) == [
            "31 02:00:00",
            "31 02:30:00",
            "31 02:00:00+",
            "31 02:30:00+",
            "01 02:00:00",
        ]

    def test_hourly_runs_in_every_real_hour(self) -> None:
        found = list(islice(cron_times("@hourly", "", BERLIN, local("2027-10-30T12:00")), 24))
        assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(hours=1)}

    def test_half_an_hour_loses_nothing(self) -> None:
        # 2:00 becomes 2:30 on 4 October 2026
        after = local("2026-10-04T01:45", "Australia/Lord_Howe")
        assert shown("*/30 * * * *", "Australia/Lord_Howe", after, 3) == [
            "04 02:30:00",
            "04 03:00:00",
            "04 03:30:00",
        ]

    def test_a_day_that_is_missing_altogether_runs_once_after_it(self) -> None:
        after = local("2011-12-29T13:00", "Pacific/Apia")
        assert shown("0 12 * * *", "Pacific/Apia", after, 2) == ["31 00:00:00", "31 12:00:00"]

    def test_clocks_set_back_over_midnight_do_not_hold_it_up(self) -> None:
        after = datetime(2009, 11, 1, 2, 29, tzinfo=UTC)  # 23:59 on Saturday, two minutes before the change
        assert shown("* * * * SUN", "America/St_Johns", after, 3) == [
            "01 00:00:00",
            "01 00:00:00+",
            "01 00:01:00",
        ]

    @pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"])
    @pytest.mark.parametrize(
        "expression",
        ["*/30 3 29 2 *", "*/30 2 * 10 SUN#1", "30 2 29 2 *", "0 */2 1 */3 *", "*/30 0 L 2,10 *"],
    )
    def test_rare_times_agree_with_the_oracle_over_years_of_changes(self, zone: str, expression: str) -> None:
        start, end = datetime(2014, 1, 1, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC)
        years = stepped(zone, start, timedelta(minutes=30), start, end)
        fixed = not any(field[0] == "*" for field in expression.split()[:2])
        found = takewhile(lambda due: due <= end, cron_times(expression, "", zone, start))
        assert list(found) == brute_force(years, cron_matcher(expression), fixed)

    @pytest.mark.parametrize("zone", ZONES)
    def test_fixed_times_are_those_of_cronsim(self, zone: str) -> None:
        for change in changes(zone):
            start = change - timedelta(days=2)
            for expression in ("30 2 * * *", "0 0 * * *", "15,45 0-4 * * *", "1 0,23 * * *"):
                theirs = CronSim(expression, start.astimezone(ZoneInfo(zone)))
                expected = [next(theirs).astimezone(UTC) for _ in range(8)]
                assert list(islice(cron_times(expression, "", zone, start), 8)) == expected


class TestTheEndOfTime:
    def test_nothing_is_due_from_the_year_9999_on(self) -> None:
        for zone in ("UTC", "Pacific/Kiritimati", "Pacific/Niue", BERLIN):
            for expression in ("0 0 31 12 *", "* * * * *", "*/7 * 31 12 *"):
                times = cron_times(expression, "", zone, datetime(9998, 12, 31, 23, 58, tzinfo=UTC))
                assert all(instant.year < 9999 for instant in times)

    def test_a_fraction_of_a_second_is_not_lost(self) -> None:
        noon = datetime(2027, 1, 1, 12, tzinfo=UTC)
        assert cron_after("0 12 * * *", "", "UTC", noon - timedelta.resolution) == noon
        assert cron_after("0 12 * * *", "", "UTC", noon) == noon + timedelta(days=1)
        assert cron_after("0 12 * * *", "", "UTC", noon + timedelta.resolution) == noon + timedelta(days=1)


@pytest.mark.parametrize("zone", ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("expression", ["30 2 * * *", "*/20 * * * *", "0 0 2 29 2 *", "15 1-3 * 3,10,11 0"])
def test_what_was_found_before_changes_nothing(expression: str, zone: str) -> None:
    begin = datetime(2027, 3, 1, tzinfo=UTC)
    steps = [timedelta(minutes=37) * number for number in range(150)]
    for step in (*steps, *reversed(steps), *(timedelta(days=37) * number for number in range(40))):
        after = begin + step
        assert cron_after(expression, "", zone, after) == next(cron_times(expression, "", zone, after), None)
        due = cron_after(expression, "", zone, after)
        assert due is not None
        assert cron_after(expression, "", zone, due - timedelta.resolution) == due
        assert cron_after(expression, "", zone, due) == next(cron_times(expression, "", zone, due))
