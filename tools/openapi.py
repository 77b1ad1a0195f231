"""Writes docs/openapi.json anew. Refuses what would break callers, unless the major version has grown."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from fastapi import FastAPI

from noonday.api.app import ApiServices, create_app
from tools.openapi_diff import differences, may_break

SNAPSHOT = Path(__file__).parents[1] / "docs" / "openapi.json"


def application() -> FastAPI:
    """One that can describe itself and do nothing else: no database is opened for it."""
    nothing = cast(Any, None)
    return create_app(ApiServices(db=nothing, clock=nothing, status=nothing))


def written(described: Mapping[str, Any]) -> str:
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accept-breaking", action="store_true", help="before the first release")
    accepted = parser.parse_args().accept_breaking
    new = application().openapi()
    if SNAPSHOT.exists():
        old = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
        found = differences(old, new)
        for difference in found:
            print(difference)
        if any(one.breaking for one in found) and not (accepted or may_break(old, new)):
            print("not written: this breaks callers, and the major version is the same", file=sys.stderr)
            return 1
    SNAPSHOT.write_text(written(new), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
