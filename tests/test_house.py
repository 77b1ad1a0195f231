"""The rules of the house that no linter knows: sizes, docstrings, public names, banned words."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "noonday"
MODULES = sorted(SOURCE.rglob("*.py"))
FOLDERS = ("tests", "bench", "demo", "tools")
TESTS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
LONGEST = 400
LONG_BY_NATURE = {
    "tables.py"
}  # and the migrations: lists of columns are read by looking up, not from top to bottom

# A path of one machine, or a marker of unfinished work.
BANNED = re.compile(
    r"/home/\w|/Users/\w|C:\\Users|\bTODO\b|\bFIXME\b|\bXXX\b|<<<<<<<",
    re.IGNORECASE,
)
TEXT = {
    ".py",
    ".md",
    ".toml",
    ".lock",
    ".yaml",
    ".yml",
    ".svg",
    ".txt",
    ".sql",
    ".mako",
    ".html",
    ".css",
    ".js",
    "",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def repository_files() -> list[Path]:
    """Tracked and new files; outside a git checkout everything that is not installed or cached."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        found = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    else:
        hidden = {".git", ".venv", ".noonday"}
        found = [p for p in ROOT.rglob("*") if not hidden & set(p.parts) and not p.name.endswith(".pyc")]
    return sorted(path for path in found if path.is_file() and path.suffix in TEXT)


@pytest.mark.parametrize("path", MODULES + TESTS, ids=name_of)
def test_it_keeps_modules_short_enough_to_hold_in_the_head(path: Path) -> None:
    if path.name in LONG_BY_NATURE or "versions" in path.parts:
        return
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{lines} lines; are there two ideas in one module?"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_it_says_in_one_line_where_each_module_stands(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, "a module opens with its place in the road"
    assert len(docstring.splitlines()[0]) >= 15


@pytest.mark.parametrize("path", [p for p in MODULES if p.name == "__init__.py"], ids=name_of)
def test_it_lists_the_public_names_of_each_package_in_order(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bound = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    }
    exported = next(
        (
            [ast.literal_eval(item) for item in node.value.elts]
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.List | ast.Tuple)
            and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
        ),
        None,
    )
    if exported is None:
        assert not bound, f"{sorted(bound)} are imported but no __all__ says which of them are public"
        return
    assert exported == sorted(exported, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert len(exported) == len(set(exported))


@pytest.mark.parametrize("path", repository_files(), ids=name_of)
def test_it_names_no_machine_and_leaves_no_loose_end(path: Path) -> None:
    if path == Path(__file__) or path.name == "LICENSE":
        return
    found = [
        f"{number}: {line.strip()[:100]}"
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if BANNED.search(line)
    ]
    assert not found


def test_it_locks_every_dependency_with_hashes_and_names_no_host() -> None:
    locks = sorted((ROOT / "requirements").glob("*.lock"))
    assert {lock.name for lock in locks} == {"build.lock", "dev.lock", "run.lock"}
    for lock in locks:
        text = lock.read_text(encoding="utf-8")
        assert "://" not in text
        for entry in re.split(r"\n(?=\S)", text.strip()):
            assert "==" in entry, entry
            assert "--hash=sha256:" in entry, entry


def test_it_reads_the_clock_and_chance_in_one_place_only() -> None:
    """ruff's TID251 says the same; this also holds where a noqa would silence it."""
    asking = re.compile(
        r"datetime\.(?:now|utcnow|today)\(|\btime\.(?:time|monotonic)\(|^import random|^from random",
        re.MULTILINE,
    )
    assert [
        name_of(p) for p in MODULES if p.name != "clock.py" and asking.search(p.read_text(encoding="utf-8"))
    ] == []
