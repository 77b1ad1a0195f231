"""The grammar of searches: every kind of value, and words for whatever is wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.errors import Invalid
from noonday.domain.search_fields import AUDIT, BREAKERS, EXECUTIONS, JOBS
from noonday.domain.search_values import Between, Compared, Is, Kind, Like, Missing, Test
from noonday.domain.searching import FREE, LONGEST, Searchable, Term, parse
from tests.factories import NOON, at

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LISTS = {"jobs": JOBS, "executions": EXECUTIONS, "audit": AUDIT, "breakers": BREAKERS}


def one(text: str, searchable: Searchable = JOBS) -> Term:
    (term,) = parse(text, searchable, NOON)
    return term


@pytest.mark.parametrize(
    ("text", "field", "tests"),
    [
        ("status:failed", "status", [Is("failed")]),
        ("STATUS:Failed,paused", "status", [Is("failed"), Is("paused")]),
        ("tag:nightly", "tag", [Like(("nightly",))]),
        ("name:digest*", "name", [Like(("digest", ""))]),
        ("name:*a*b", "name", [Like(("", "a", "b"))]),
        ('name:"a*b, c"', "name", [Like(("a*b, c",))]),
        ('name:"say \\"no\\" \\\\"', "name", [Like(('say "no" \\',))]),
        ('tag:"a b",c', "tag", [Like(("a b",)), Like(("c",))]),
        ("priority:1", "priority", [Is(1)]),
        ("priority:high,3", "priority", [Is(1), Is(3)]),
        ("priority:<=2", "priority", [Compared("<=", 2)]),
        ("priority:<low", "priority", [Compared("<", 3)]),
        ("enabled:yes", "enabled", [Is(True)]),
        ("paused:FALSE", "paused", [Is(False)]),
        ("service:none", "service", [Missing()]),
        ('service:"none"', "service", [Like(("none",))]),
        ("last:none", "last", [Missing()]),
        ("next:<1h", "next", [Compared("<", NOON + HOUR)]),
        ("next:>=1h30m", "next", [Compared(">=", NOON + 1.5 * HOUR)]),
        ("last:>2d", "last", [Compared("<", NOON - 2 * DAY)]),
        ("last:<=1w", "last", [Compared(">=", NOON - 7 * DAY)]),
        ("created:2027-01-31", "created", [Between(at("2027-01-31"), at("2027-02-01"))]),
        ("created:>2027-01-31", "created", [Compared(">=", at("2027-02-01"))]),
        ("created:>=2027-01-31", "created", [Compared(">=", at("2027-01-31"))]),
        ("created:<=2027-01-31", "created", [Compared("<", at("2027-02-01"))]),
        ("created:<2027-01-31", "created", [Compared("<", at("2027-01-31"))]),
        ("next:<2027-01-31T02:00+01:00", "next", [Compared("<", at("2027-01-31T01:00"))]),
        ("next:>2027-01-31T02:00", "next", [Compared(">", at("2027-01-31T02:00"))]),
        ("schedule_type:cron", "type", [Is("cron")]),
        ("digest", FREE, [Like(("", "digest", ""))]),
        ('"two words"', FREE, [Like(("", "two words", ""))]),
        ('"a:b"', FREE, [Like(("", "a:b", ""))]),
        ("a,b", FREE, [Like(("", "a", "")), Like(("", "b", ""))]),
        ("100%_real", FREE, [Like(("", "100%_real", ""))]),
    ],
)
def test_it_reads_a_term(text: str, field: str, tests: list[Test]) -> None:
    assert one(text) == Term(field=field, tests=tuple(tests))
    assert one("-" + text) == Term(field=field, tests=tuple(tests), negated=True)


def test_it_reads_spans_of_executions() -> None:
    assert one("took:>1m30s", EXECUTIONS).tests == (Compared(">", timedelta(seconds=90)),)
    assert one("late:<500ms", EXECUTIONS).tests == (Compared("<", timedelta(milliseconds=500)),)


def test_it_reads_several_terms_in_their_order() -> None:
    terms = parse(' status:failed  tag:nightly\t-tag:old "free words"\n', JOBS, NOON)
    assert [(term.field, term.negated) for term in terms] == [
        ("status", False),
        ("tag", False),
        ("tag", True),
        (FREE, False),
    ]
    assert parse("", JOBS, NOON) == parse("  \n", JOBS, NOON) == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tag:a stauts:failed", ("'stauts:failed' at character 7", "did you mean status?", "quotes")),
        ("http://x", ("'http://x' at character 1", "names no field", "quotes")),
        (":x", ("':x' at character 1", "names no field")),
        ("a status:odd,failed", ("'status:odd,failed' at character 3", "'odd'", "scheduled, running")),
        ("last_status:odd", ("completed", "none")),
        ("status:", ("'status:' at character 1 has no value",)),
        ("status:failed,", ("'status:failed,' at character 1 has no value",)),
        ('name:""', ("has no value",)),
        ("x -", ("'-' at character 3 has no value",)),
        ("-", ("has no value",)),
        (",", ("has no value",)),
        ('x "never closed', ("'\"never closed' at character 3 opens a quote that is never closed",)),
        ('name:a"b"', ("quote in the middle",)),
        ('"a"b', ("goes on after the closing quote",)),
        ("priority:urgent", ("is no number", "high, normal, low")),
        ("priority:-1", ("is no number",)),
        ("priority:" + "9" * 16, ("is no number",)),
        ("enabled:perhaps", ("neither yes nor no",)),
        ("next:1h", ("write <1h or >1h",)),
        ("next:<soon", ("is no time",)),
        ("next:<", ("is no time",)),
        ("created:2027-02-30", ("is no time",)),
        ("created:2027-01-31T02:00Z", ("write <2027-01-31T02:00Z or >2027-01-31T02:00Z",)),
        ("next:>999999999w", ("is too far away",)),
        ("last:<999999999d", ("is too far away",)),
        ("created:>9999-12-31", ("is too far away",)),
        ("created:>9999-12-31T23:59-10:00", ("is too far away",)),
        ("name:" + "a*" * 11, ("more than 10 stars",)),
        ("name:" + ",".join("a" * 51), ("more than 50 values",)),
        ("a " * 51, ("'a' at character 101 is one word too many",)),
        ("x" * (LONGEST + 1), (f"more than {LONGEST} characters",)),
        ("name:a\x00b", ("at character 7", "cannot be seen")),
        ("name:\ud800", ("cannot be seen",)),
        ("took:>1h", ("names no field",)),  # of executions, not of jobs
    ],
)
def test_it_names_the_word_and_its_place(text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        parse(text, JOBS, NOON, "filter")
    (problem,) = caught.value.problems
    assert problem.field == "filter"
    for word in words:
        assert word in problem.message


@pytest.mark.parametrize("text", ["took:90", "took:1m", "took:>99999999999w", "took:>999999999w"])
def test_it_refuses_a_span_that_is_none(text: str) -> None:
    with pytest.raises(Invalid):
        parse(text, EXECUTIONS, NOON)


@pytest.mark.parametrize("searchable", LISTS.values(), ids=LISTS)
def test_it_keeps_its_tables_in_order(searchable: Searchable) -> None:
    assert set(searchable.aliases.values()) <= searchable.fields.keys()
    assert not searchable.aliases.keys() & searchable.fields.keys()
    for name, field in searchable.fields.items():
        assert name == name.lower()
        assert (field.kind is Kind.CHOICE) == bool(field.choices)


_LETTERS = st.text(st.sampled_from('ab*:,"\\-<>= 1hd\tstaus'), max_size=40)
_FIELDS = st.sampled_from(
    ["", "-", *(f"{name}:" for name in JOBS.fields), *(f"{n}:" for n in EXECUTIONS.fields)]
)


@given(
    st.sampled_from(sorted(LISTS)),
    st.one_of(
        st.text(max_size=60),
        _LETTERS,
        st.lists(st.tuples(_FIELDS, _LETTERS).map("".join), max_size=4).map(" ".join),
    ),
)
def test_it_understands_or_refuses_any_text(which: str, text: str) -> None:
    searchable = LISTS[which]
    try:
        terms = parse(text, searchable, NOON)
    except Invalid:
        return
    assert all(term.tests and (term.field in searchable.fields or term.field == FREE) for term in terms)


_VISIBLE = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1, max_size=30)


@given(_VISIBLE.filter(str.strip))
def test_it_takes_everything_in_quotes_as_it_is(text: str) -> None:
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    assert one(f"name:{quoted}").tests == (Like((text,)),)
    assert one(quoted) == Term(field=FREE, tests=(Like(("", text, "")),))
