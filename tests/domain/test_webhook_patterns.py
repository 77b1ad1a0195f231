"""Webhook paths and patterns: what is accepted, and the tree against a matcher that anybody can check."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from noonday.domain.errors import Invalid
from noonday.domain.webhooks import MOST_CHARS, MOST_SEGMENTS, Patterns, path_of, pattern_of


def fits(pattern: str, path: str) -> bool:
    """The naive way: try everything."""

    def tried(left: list[str], right: list[str]) -> bool:
        if not left:
            return not right
        head, *rest = left
        if head == "**":
            return any(tried(rest, right[skipped:]) for skipped in range(len(right) + 1))
        return bool(right) and head in ("*", right[0]) and tried(rest, right[1:])

    return tried([s for s in pattern.split("/") if s], [s for s in path.split("/") if s])


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/sources/*/crawl", "/sources/42/crawl", True),
        ("/sources/*/crawl", "/sources/crawl", False),
        ("/sources/*/crawl", "/sources/4/2/crawl", False),
        ("/sources/*/crawl", "/sources/42/crawl/now", False),
        ("/sources/**", "/sources/4/2/crawl", True),
        ("/sources/**", "/sources", True),
        ("/sources/**", "/source", False),
        ("/**/crawl", "/crawl", True),
        ("/**/crawl", "/a/b/crawl", True),
        ("/**/crawl", "/a/b/crawled", False),
        ("/a/**/b/**/c", "/a/b/b/c/c", True),
        ("/a/**/b/**/c", "/a/c/b", False),
        ("/**", "/", True),
        ("/*", "/", False),
        ("/", "/", True),
        ("/", "/a", False),
        ("/Sources", "/sources", False),
        ("/sources/*/crawl", "/sources/*/crawl", True),
        ("/**/**", "/a", True),
        ("/**/*", "/", False),
    ],
)
def test_a_star_is_one_segment_and_two_are_any_number(pattern: str, path: str, expected: bool) -> None:
    assert bool(Patterns([(pattern, 1)]).match(path)) is expected
    assert fits(pattern, path) is expected


segments = st.sampled_from(["a", "b", "c", "*", "**"])
patterns = st.lists(segments, max_size=7).map(lambda parts: "/" + "/".join(parts))
paths = st.lists(st.sampled_from(["a", "b", "c", "*", "x"]), max_size=9).map(lambda p: "/" + "/".join(p))


@given(st.lists(patterns, max_size=12), paths)
@example(["/**/a/**/a/**", "/*/**/*", "/a/**", "/**"], "/a/a/a")
def test_it_finds_what_the_naive_matcher_finds_each_once(known: list[str], path: str) -> None:
    found = Patterns((pattern, number) for number, pattern in enumerate(known)).match(path)
    assert sorted(found) == [number for number, pattern in enumerate(known) if fits(pattern, path)]


def test_it_agrees_on_every_short_pattern_and_path() -> None:
    known = ["/" + "/".join(parts) for size in range(5) for parts in product(("a", "*", "**"), repeat=size)]
    tree = Patterns((pattern, pattern) for pattern in known)
    for size in range(5):
        for parts in product(("a", "b"), repeat=size):
            path = "/" + "/".join(parts)
            assert sorted(tree.match(path)) == sorted(p for p in known if fits(p, path)), path


def test_patterns_made_to_be_tried_again_and_again_cost_nothing() -> None:
    """With backtracking, each of these takes longer than anybody waits."""
    evil = "/" + "/".join(["**", "a"] * (MOST_SEGMENTS // 2))
    tree = Patterns([(evil, 1)])
    assert tree.match("/" + "/".join(["a"] * (MOST_SEGMENTS - 1) + ["b"])) == []
    assert tree.match("/" + "/".join(["a"] * MOST_SEGMENTS)) == [1]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("sources/42/crawl", "/sources/42/crawl"),
        ("/sources//42/crawl/", "/sources/42/crawl"),
        ("///", "/"),
        ("", "/"),
        ("  /a  ", "/a"),
        ("/a b/ü", "/a b/ü"),
        ("/u\u0308", "/\u00fc"),
        ("/a%2fb", "/a%2fb"),
        ("/...", "/..."),
    ],
)
def test_there_is_one_way_to_write_a_path(text: str, plain: str) -> None:
    assert path_of(text) == plain
    assert path_of(plain) == plain
    assert pattern_of(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        *("/a\nb", "/a\x00", "/a/../b", "..", "/./a", "/\u202ea", "/\ud800"),
        *("/" + "a" * MOST_CHARS, "/a" * (MOST_SEGMENTS + 1)),
    ],
    ids=repr,
)
def test_what_is_no_path_is_refused_by_name(text: str) -> None:
    for check in (path_of, pattern_of):
        with pytest.raises(Invalid, match="where: "):
            check(text, "where")


@pytest.mark.parametrize("text", ["/a*", "/*a/b", "/***", "/a/b**", "/a*b"])
def test_a_star_within_a_segment_is_refused_in_patterns_alone(text: str) -> None:
    with pytest.raises(Invalid, match="whole segments"):
        pattern_of(text)
    assert path_of(text) == text


@given(st.text(max_size=MOST_CHARS + 10))
def test_any_text_is_normalised_or_refused(text: str) -> None:
    try:
        plain = path_of(text)
    except Invalid:
        return
    assert path_of(plain) == plain
    assert Patterns([(plain, 1)]).match(text) == ([1] if fits(plain, plain) else [])
