"""The page about searching names the fields that there are, and its examples are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from noonday.control.bulk import Action
from noonday.domain import search_fields
from noonday.domain.errors import Invalid
from noonday.domain.searching import Searchable, parse
from tests.cli.test_docs_tables import rows
from tests.factories import NOON

PAGE = Path(__file__).parents[2] / "docs" / "searching.md"
LISTS = {
    "### Jobs": search_fields.JOBS,
    "### Executions": search_fields.EXECUTIONS,
    "### The audit trail": search_fields.AUDIT,
    "### Breakers": search_fields.BREAKERS,
}


@pytest.mark.parametrize(("heading", "searchable"), LISTS.items(), ids=LISTS)
def test_it_documents_every_field_in_the_words_of_the_table(heading: str, searchable: Searchable) -> None:
    expected = {f"`{name}`": field.about for name, field in searchable.fields.items()}
    assert rows("searching.md", heading) == expected


def test_it_understands_every_search_that_the_page_shows() -> None:
    text = PAGE.read_text(encoding="utf-8")
    grammar = re.findall(r"```\n(status:.*)\n```", text)
    assert len(grammar) == 1
    lists = {
        "/jobs ": search_fields.JOBS,
        "executions": search_fields.EXECUTIONS,
        "breakers": search_fields.BREAKERS,
    }
    asked = [(line, match[1]) for line in text.splitlines() if (match := re.search(r"'q=([^']+)'", line))]
    assert len(asked) == 4
    for line, search in asked:
        (searchable,) = [one for name, one in lists.items() if name in line]
        assert parse(search, searchable, NOON)
    shell = [shlex.split(line) for line in text.splitlines() if line.startswith("noonday") and " -q " in line]
    assert len(shell) == 4
    for words in shell:
        searchable = search_fields.EXECUTIONS if "history" in words else search_fields.JOBS
        assert parse(words[words.index("-q") + 1], searchable, NOON)
    for search in [*grammar, *re.findall(r'"filter": "([^"]+)"', text)]:
        assert parse(search, search_fields.JOBS, NOON)
    for word in re.findall(r"^\| (.*?) \|", text.partition("### Jobs")[0], re.MULTILINE)[8:]:
        for search in re.findall(r"`([^`]+)`", word):
            in_one_of_them = (_understood(search, searchable) for searchable in LISTS.values())
            assert any(in_one_of_them), search


def _understood(search: str, searchable: Searchable) -> bool:
    try:
        return bool(parse(search, searchable, NOON))
    except Invalid:
        return False


def test_it_documents_every_action() -> None:
    told = rows("searching.md", "## Changing many: bulk")["`action`"]
    assert set(re.findall(r"`(\w+)`", told)) == {action.value for action in Action}
