"""Searches changed by clicks: each stays a search that means what it shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain import search_fields, searching
from noonday.domain.search_values import Like
from noonday.web import searches
from tests.factories import NOON


@pytest.mark.parametrize(
    ("q", "after"),
    [
        ("", "tag:nightly"),
        ("crawl", "crawl tag:nightly"),
        ("tag:nightly", ""),
        ("tag:old", "tag:old,nightly"),
        ("tag:old,nightly crawl", "crawl tag:old"),
        ('tag:"nightly" "two words"', '"two words"'),
        ("-tag:nightly", "-tag:nightly tag:nightly"),
        ("TAG:old tag:older", "tag:old,older,nightly"),
    ],
)
def test_a_value_is_chosen_or_let_go(q: str, after: str) -> None:
    assert searches.toggled(q, "tag", "nightly") == after


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=30))
def test_any_tag_can_be_chosen_and_let_go_again(tag: str) -> None:
    q = searches.toggled('status:failed "a b"', "tag", tag)
    (term,) = [term for term in searching.parse(q, search_fields.JOBS, NOON) if term.field == "tag"]
    assert term.tests == (Like((tag,)),)
    assert searches.chosen(q, "tag") == {tag}
    assert searches.toggled(q, "tag", tag) == 'status:failed "a b"'


def test_each_word_can_be_left_out() -> None:
    assert searches.without_each('a tag:"b c"') == [("a", 'tag:"b c"'), ('tag:"b c"', "a")]
