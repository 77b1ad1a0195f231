"""What `make bench` makes of its figures: medians, ratios, tables, goals and the picture."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import drain, past, plot, report
from bench.__main__ import choice_of
from bench.choice import QUICK, SECTIONS, Choice
from bench.figures import MEASURES, Figure, Role, Subject, Values, alternately, find, ratio
from bench.goals import goals
from bench.peers import field, harness, marks
from bench.peers.stage import NoResult

_SVG = "{http://www.w3.org/2000/svg}"


def a_figure(name: str, role: Role = "peer", section: str = "drain", **values: float) -> Figure:
    case = drain.WAITING if section == "drain" else "10 a second, 1,000 stored"
    return Figure(section=section, case=case, name=name, role=role, rounds=(values,), keeps="rows")


def a_subject(name: str, take: Callable[[], Values]) -> Subject:
    return Subject(section="drain", case=drain.WAITING, name=name, role="peer", take=take)


def a_run(*figures: Figure) -> report.Run:
    return report.Run(at="2027-01-31 12:00 UTC", machine={"machine": "2 cores"}, rounds=1, figures=figures)


FIGURES = (
    a_figure("noonday, PostgreSQL", "ours", per_second=6000.0, cpu_us=80.0, memory_mb=90.0),
    a_figure("pgqueuer", per_second=12000.0),
    a_figure("huey", per_second=1500.0),
    Figure(section="drain", case=drain.WAITING, name="rq", role="peer", trouble="it | broke"),
    a_figure("limit, PostgreSQL by 1,000", "limit", per_second=24000.0),
    a_figure("noonday, PostgreSQL", "ours", "fires", p50_ms=2.0, p99_ms=8.0, fired=1.0, early=0.0),
    a_figure("celery beat", "peer", "fires", p50_ms=20.0, p99_ms=800.0, fired=0.5, early=0.0),
)


def test_it_takes_turns_and_the_median() -> None:
    turns: list[str] = []
    values = iter([3.0, 100.0, 1.0])

    def ours() -> Values:
        turns.append("ours")
        return {"per_second": next(values)}

    def theirs() -> Values:
        turns.append("theirs")
        return {"per_second": 1.0}

    first, second = alternately([a_subject("a", ours), a_subject("b", theirs)], 3, lambda _: None)
    assert turns == ["ours", "theirs"] * 3
    assert first.values == {"per_second": 3.0}
    assert len(second.rounds) == 3


@pytest.mark.parametrize("error", [NoResult("nothing ran"), ValueError("a defect")])
def test_it_goes_on_when_one_cannot_be_measured(error: Exception) -> None:
    said: list[str] = []

    def fail() -> Values:
        raise error

    failed, fine = alternately(
        [a_subject("a", fail), a_subject("b", lambda: {"per_second": 1.0})], 2, said.append
    )
    assert str(error) in (failed.trouble or "")
    assert not failed.values
    assert len(fine.rounds) == 2
    assert sum("a" in line.split() for line in said) == 1  # it is not tried again


def test_it_compares_so_that_more_is_always_better() -> None:
    ours, pgqueuer = FIGURES[0], FIGURES[1]
    assert ratio(ours, pgqueuer) == pytest.approx(0.5)
    assert ratio(FIGURES[5], FIGURES[6]) == pytest.approx(100.0)
    assert ratio(ours, FIGURES[3]) is None
    assert find(FIGURES, "drain", "rq") is None
    assert set(SECTIONS) == set(MEASURES) == set(report.TITLES)


def test_it_writes_a_table_with_ratios_and_troubles() -> None:
    text = report.markdown(a_run(*FIGURES), "plot.svg")
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert "12,000" in rows["pgqueuer"]
    assert "0.50 times (PostgreSQL)" in rows["pgqueuer"]
    assert "4.00 times (PostgreSQL)" in rows["huey"]
    assert "0.25 times (PostgreSQL)" in rows["limit, PostgreSQL by 1,000"]
    assert "it / broke" in rows["rq"]
    assert "50.0%" in rows["celery beat"]
    assert "![The figures as bars](plot.svg)" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in table)


def test_it_says_which_goals_are_met() -> None:
    met = {one.words: one.met for one in goals(FIGURES)}
    assert met["drain beside pgqueuer"] is False
    assert met["drain beside huey"] is True
    assert met["drain beside the limit of PostgreSQL"] is False
    fires = "noonday, PostgreSQL, 10 a second, 1,000 stored"
    assert met[f"{fires}: fired"] is True
    assert met[f"{fires}: early"] is True
    assert goals([]) == []


def test_it_holds_punctuality_against_the_bounds_of_its_rate() -> None:
    values = {"p50_ms": 2.0, "p99_ms": 12.0, "fired": 1.0, "early": 0.0}
    cases = [
        Figure(section="fires", case=case, name="noonday, SQLite", role="ours", rounds=(values,))
        for case in ("1,000 a second, 1,000 stored", "5,000 a second, 5,000 stored")
    ]
    met = {one.words: one.met for one in goals(cases) if "in ms" in one.words}
    assert list(met.values()) == [True, False, True]


def test_it_wants_many_stored_schedules_to_change_nothing() -> None:
    cases = [
        Figure(
            section="burst",
            case=f"10 at one moment, {stored} stored",
            name="noonday, SQLite",
            role="ours",
            rounds=({"last_started_s": seconds},),
        )
        for stored, seconds in (("1,000", 0.5), ("1,000,000", 0.8))
    ]
    [goal] = goals(cases)
    assert goal.words == "noonday, SQLite, 10 at one moment: 1,000,000 stored beside the fewest"
    assert (goal.found, goal.met) == ("1.60", False)


def test_it_wants_a_long_history_to_change_nothing() -> None:
    cases = [
        Figure(
            section="drain", case=case, name="noonday, SQLite", role="ours", rounds=({"per_second": pace},)
        )
        for case, pace in ((drain.WAITING, 1000.0), (past.case_of(drain.WAITING, 10_000_000), 800.0))
    ]
    [goal] = goals(cases)
    assert goal.words == f"noonday, SQLite, {drain.WAITING}: 10,000,000 past beside none"
    assert (goal.found, goal.met) == ("1.25", True)


def bars(drawn: str) -> Iterator[tuple[str, float]]:
    for bar in ElementTree.fromstring(drawn).iter(f"{_SVG}rect"):
        title = bar.find(f"{_SVG}title")
        if title is not None:
            yield str(title.text), float(bar.attrib["width"])


def test_it_draws_bars_in_proportion() -> None:
    drawn = plot.plot(FIGURES)
    assert drawn is not None
    width = dict(bars(drawn))
    assert width["pgqueuer: 12,000"] == pytest.approx(width["noonday, PostgreSQL: 6,000"] * 2, rel=0.01)
    assert width["celery beat: 800.0 ms, 50% fired"] > width["noonday, PostgreSQL: 8.0 ms"]
    assert "rq" not in " ".join(width)
    assert "prefers-color-scheme: dark" in drawn


def test_it_draws_names_as_they_are_and_nothing_from_nothing() -> None:
    drawn = plot.plot([a_figure("<script>&", per_second=1.0), a_figure("none", per_second=0.0)])
    assert drawn is not None
    assert [name for name, _ in bars(drawn)] == ["<script>&: 1", "none: 0"]
    assert plot.plot([]) is None


def test_it_writes_all_three_files(tmp_path: Path) -> None:
    paths = report.write(a_run(*FIGURES), tmp_path / "results", "2027-01-31")
    assert [path.name for path in paths] == ["2027-01-31.md", "2027-01-31.json", "2027-01-31.svg"]
    data = json.loads(paths[1].read_text())
    by_name = {one["name"]: one for one in data["figures"] if one["section"] == "drain"}
    assert by_name["pgqueuer"]["ours_beside_it"] == pytest.approx(0.5)
    assert by_name["rq"]["trouble"] == "it | broke"
    assert data["goals"]


def test_it_chooses_what_is_asked_for() -> None:
    whole, _ = choice_of([])
    assert whole == Choice()
    quick, _ = choice_of(["--quick", "--only", "fires,drain", "--peers", "celery,PgQueuer", "--rates", "7,8"])
    assert quick.sections == ("drain", "fires")
    assert quick.families == {"celery", "pgqueuer"}
    assert (quick.rates, quick.count) == ((7, 8), QUICK.count)
    assert choice_of(["--peers", "none", "--rounds", "1"])[0].families == frozenset()
    names = {one.name for one in field.chosen(field.QUEUES + field.CLOCKS, quick.families)}
    assert names == {"pgqueuer", "celery", "celery, results", "celery beat"}


@pytest.mark.parametrize(
    "words", [["--only", "speed"], ["--peers", "cron"], ["--rates", "many"], ["--environment", "nowhere"]]
)
def test_it_refuses_what_it_does_not_know(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        choice_of(words)
    assert words[1] in capsys.readouterr().err


def test_it_reads_the_marks_of_all_processes_in_order(tmp_path: Path) -> None:
    record = marks.Mark(1, 5.0, 7.0)
    (tmp_path / "1.marks").write_bytes(marks._RECORD.pack(*record) + b"half")
    (tmp_path / "2.marks").write_bytes(marks._RECORD.pack(2, 5.0, 6.0))
    assert marks.read(tmp_path) == [marks.Mark(2, 5.0, 6.0), record]
    assert marks.count(tmp_path) == 2
    marks.clear(tmp_path)
    assert marks.read(tmp_path) == []


def test_threads_write_their_marks_at_once_and_a_page_is_turned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "FOLDER", tmp_path)
    monkeypatch.setattr(marks, "_books", {})
    each = marks._ON_A_PAGE // 2 + 7

    def write(key: int) -> None:
        for n in range(each):
            marks.mark(key, float(n + 1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))
    assert marks.count(tmp_path) == 4 * each
    found = marks.read(tmp_path)
    assert Counter(one.key for one in found) == dict.fromkeys(range(4), each)
    assert {one.due for one in found} == {float(n + 1) for n in range(each)}


def test_it_counts_lateness_from_the_grid_or_from_the_fire_before() -> None:
    on_grid, chained = field.CLOCKS[0], field.CLOCKS[2]
    seen = [marks.Mark(1, 10.0, 10.5), marks.Mark(1, 10.0, 10.6), marks.Mark(1, 11.0, 11.1)]
    late = list(harness._lateness(on_grid, seen, 10.0, 20.0, 1.0))
    assert sorted(late) == [pytest.approx(0.1), pytest.approx(0.5)]
    late = list(harness._lateness(chained, seen[::2], 10.0, 20.0, 1.0))
    assert late == [pytest.approx(-0.4)]
