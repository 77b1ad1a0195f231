"""docs/access.md: its tables are those of the code."""

from __future__ import annotations

from noonday.domain.access import RIGHTS, Right, Role
from noonday.domain.claims import LEEWAY
from noonday.store.keys import MOST
from tests.cli.test_docs_tables import DOCS, rows


def test_it_documents_what_each_role_may() -> None:
    documented = {
        role.strip("`"): set(rights.split(", ")) for role, rights in rows("access.md", "## Roles").items()
    }
    assert documented == {role.value: {right.value for right in RIGHTS[role]} for role in Role}


def test_it_documents_every_right_and_the_bounds() -> None:
    text = (DOCS / "access.md").read_text(encoding="utf-8")
    assert [right for right in Right if f"\n| {right} | " not in text] == []
    assert f"differ by {LEEWAY:.0f} seconds" in text
    assert f"{MOST:,} keys" in text
