"""Tables in the docs are compared with the code they describe."""

from __future__ import annotations

import re
from pathlib import Path

from noonday.cli.errors import EXIT_CODES
from noonday.domain.events import SKIP_WORDS
from noonday.domain.execution import ExecutionState
from noonday.domain.job import JobState
from noonday.domain.lifecycle import EXECUTION_MOVES, MAX_LOSSES, MOVES

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, heading: str) -> dict[str, str]:
    """The first table below a heading, as first cell -> second cell."""
    text = (DOCS / page).read_text(encoding="utf-8").split(f"\n{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert table is not None
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table[0].strip().split("\n")[2:]
    ]
    return {line[0]: line[1] for line in lines}


def moves(table: dict[str, str]) -> dict[str, set[str]]:
    return {start: set(ends.split(", ")) - {"nothing"} for start, ends in table.items()}


def test_it_documents_every_move_of_a_job() -> None:
    assert moves(rows("lifecycle.md", "## Jobs")) == {str(s): {str(e) for e in MOVES[s]} for s in JobState}


def test_it_documents_every_move_of_an_execution() -> None:
    expected = {str(s): {str(e) for e in EXECUTION_MOVES[s]} for s in ExecutionState}
    assert moves(rows("lifecycle.md", "## Executions")) == expected


def test_it_documents_every_skip_reason_in_the_words_that_people_see() -> None:
    expected = {str(reason): words for reason, words in SKIP_WORDS.items()}
    assert rows("lifecycle.md", "### Why an execution is skipped") == expected


def test_it_documents_after_how_many_losses_a_run_is_given_up() -> None:
    assert f"failed after {MAX_LOSSES} losses" in (DOCS / "lifecycle.md").read_text(encoding="utf-8")


def test_it_documents_every_exit_code() -> None:
    documented = {int(code) for code in rows("cli.md", "## Exit codes")}
    assert documented >= {0, *EXIT_CODES.values()}
