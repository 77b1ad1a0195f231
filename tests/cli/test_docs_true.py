"""What the docs tell people to type works, and what they link to is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?\)")


def commands(start: str) -> list[str]:
    """Lines in the code blocks of README and docs that begin with this command."""
    found = []
    for page in PAGES:
        for block in re.findall(r"```\w*\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            lines = [line.removeprefix(".venv/bin/") for line in block.splitlines()]
            found += [line.partition(" | ")[0] for line in lines if line.startswith(start)]
    assert found, f"no page shows {start}"
    return found


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_it_links_only_to_what_is_there(page: Path) -> None:
    for path, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), anchor


@pytest.mark.parametrize("line", commands("noonday next"))
def test_it_explains_every_schedule_that_the_docs_show(cli: Terminal, line: str) -> None:
    answer = cli(*shlex.split(line)[1:])
    assert answer.code == 0, answer.err
    assert answer.out


@pytest.mark.parametrize("line", [line for line in commands("noonday jobs add") if " -f " not in line])
def test_it_accepts_every_job_that_the_docs_show(cli: Terminal, line: str) -> None:
    words = shlex.split(line)[1:]
    answer = cli(*words[:2], "--dry-run", *words[2:])
    assert answer.code == 0, answer.err


def test_it_reads_every_schedule_that_the_docs_name(cli: Terminal) -> None:
    text = (ROOT / "docs" / "schedules.md").read_text(encoding="utf-8")
    expressions = re.findall(r"`((?:[\d*HL/,()#\w-]+ ){4,5}[\w*#/,-]+)`", text)
    assert len(expressions) >= 3
    for expression in expressions:
        answer = cli("next", expression)
        assert (answer.code == 0) != (expression == "0 0 30 2 *"), expression
