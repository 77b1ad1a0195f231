"""Every page there is, found by asking the application, with something to show on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import quote

from fastapi import FastAPI

from noonday.api import problems
from noonday.api.callers import api_routes
from noonday.web import routes
from tests.cluster.node import eventually
from tests.web.live import LiveSite

_NO_PAGES: Final = ("/ui/static/",)
_LEADS_ON: Final = ("/ui", "/ui/queues", "/ui/api", "/admin/scheduler")  # to another page
_CLOSED: Final = "/ui/login"  # where nobody need sign in, it leads on: test_door_browser.py looks at it
JOB: Final = "import-orders"  # with runs of every kind, changes and a history
RUNNING: Final = "in-progress"
_WRITES: Final = (
    "for i in 1 2 3 4 5 6 7 8 9; do printf 'part %s of 12: \\033[32mdone\\033[0m\\n' $i; done; exec sleep 600"
)


def paths() -> list[str]:
    """As the routes are written, without what is no page."""
    app = FastAPI(openapi_url=None)
    problems.install(app)
    routes.install(app)
    found = {route.path for route in api_routes(app.routes) if "GET" in (route.methods or ())}
    return sorted(path for path in found if path not in (*_LEADS_ON, _CLOSED) and _is_page(path))


def cases() -> list[tuple[str, int]]:
    """All of them, those of a run for one that failed, one that goes on and one that wrote; and refusals."""
    found = [(path.replace("{execution}", run), 200) for path in paths() for run in _runs_of(path)]
    return [*found, ("/ui/nowhere", 404), ("/ui/jobs/nobody", 404), ("/ui/load/hour?at=never", 422)]


def _runs_of(path: str) -> tuple[str, ...]:
    return tuple(_EXAMPLES) if "{execution}" in path else ("",)


def _is_page(path: str) -> bool:
    return not path.startswith(_NO_PAGES) and "." not in path


def address_of(path: str, site: LiveSite) -> str:
    for name, find in _EXAMPLES.items():
        if name in path:
            return path.replace(name, find(site))
    return path.replace("{job}", quote(JOB))


def _newest(site: LiveSite, job: str, state: str) -> str:
    return str(
        site.ask("GET", f"/api/v2/executions?q=job:{job}+status:{state}&limit=1")["executions"][0]["id"]
    )


def _running(site: LiveSite) -> str:
    """Of a job of its own, and with something written."""
    if not site.ask("GET", f"/api/v2/jobs?q=name:{RUNNING}")["jobs"]:
        target = {"type": "command", "argv": ["sh", "-c", _WRITES]}
        site.make(RUNNING, schedule_type="manual", target=target, description="Runs for ten minutes")
        run = site.ask("POST", f"/api/v2/jobs/{RUNNING}/force-run")["execution_id"]
        output = f"/api/v2/executions/{run}/output"
        eventually(lambda: site.ask("GET", output)["pieces"], what="nothing was written")
    return _newest(site, RUNNING, "running")


_EXAMPLES: Final[Mapping[str, Callable[[LiveSite], str]]] = {
    "{failed}": partial(_newest, job="import-northwind", state="failed"),
    "{running}": _running,
    "{written}": partial(_newest, job="backup", state="completed"),
}
