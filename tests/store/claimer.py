"""A process of its own that claims and settles until nothing is left, and prints what it got."""

from __future__ import annotations

import sys

from noonday.domain.outcome import Completed
from noonday.store import executions
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Ending
from tests.factories import LEASE, NOON


def main(url: str, name: str) -> None:
    db = Database(url)
    order = ClaimOrder(instance_id=name, limit=25, now=NOON, lease=LEASE)
    while True:
        claims = db.write_now(lambda conn: executions.claim(conn, order))
        for claimed in claims:
            print(claimed.execution.id, flush=True)
        endings = [
            Ending(execution_id=c.execution.id, token=c.execution.lease_token or "", outcome=Completed())
            for c in claims
        ]
        db.write_now(lambda conn, endings=endings: executions.settle(conn, endings, NOON))  # type: ignore[misc]
        # Rows that another claimer holds are left out, so an empty hand alone does not mean the end.
        if not claims and db.read_now(executions.next_available_at) is None:
            break
    db.close_now()


if __name__ == "__main__":
    main(*sys.argv[1:])
