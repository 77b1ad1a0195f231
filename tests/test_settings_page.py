"""docs/settings.md names every setting there is, and none that is not."""

from __future__ import annotations

import re
from pathlib import Path

from noonday.settings import Settings

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"


def names() -> set[str]:
    found: set[str] = set()
    for field in Settings.model_fields.values():
        extra = field.json_schema_extra
        if isinstance(extra, dict):
            found.update(str(name) for name in extra.get("env", []))  # type: ignore[union-attr]  # a list of names
    return found


def test_the_page_names_every_setting() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    told = {name for row in rows for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", row.split("|")[1])}
    assert told - {"EMAIL_SERVICE_URL"} == names()
