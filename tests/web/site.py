"""The pages over a real store: called without a socket, or by a browser at a real server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import unquote

from httpx2 import ASGITransport, AsyncClient, Response

from noonday.api.app import create_app
from noonday.api.door.form_tokens import FORM_COOKIE, FORM_HEADER, bound_to, form_token
from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.store.database import Database
from noonday.web import routes
from noonday.web.pages import NOTE_COOKIE
from tests.api.caller import Api, StillClock, check_token
from tests.factories import NOON

HOME = "http://localhost:8060"


class Site(Api):
    """The API's short words, and some for pages. It keeps cookies, and follows nobody by itself."""

    async def page(self, path: str, status: int = 200, **more: Any) -> str:
        """The text of a page."""
        answer = await self.client.get(path, headers={"Accept": "text/html"}, **more)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"].startswith("text/html"), answer.headers["content-type"]
        return answer.text

    async def send(self, path: str, form: Mapping[str, Any] | None = None, **more: Any) -> Response:
        """A form as a browser posts it from a page of ours; a list is a field that occurs several times."""
        return await self.client.post(path, data=dict(form or {}), headers=self.of_our_page(), **more)

    def of_our_page(self) -> dict[str, str]:
        """What a browser and our page say of themselves with whatever they send."""
        if not bound_to(dict(self.client.cookies)):
            self.client.cookies.set(FORM_COOKIE, "b" * 64)
        told = {"Accept": "text/html", "Origin": HOME, "Sec-Fetch-Site": "same-origin"}
        return told | {FORM_HEADER: form_token(bound_to(dict(self.client.cookies)))}

    async def obeyed(self, path: str, form: Mapping[str, Any] | None = None, **more: Any) -> tuple[str, str]:
        """Where a form leads that was obeyed, and the note it leaves."""
        answer = await self.send(path, form, **more)
        assert answer.status_code == 303, f"{answer.status_code}: {answer.text}"
        return answer.headers["location"], unquote(answer.cookies.get(NOTE_COOKIE) or "")


def services_of(db: Database, clock: StillClock) -> ApiServices:
    status = LocalStatus(instance_id="instance-1", started_at=NOON - timedelta(minutes=1), slots=10)
    return ApiServices(db=db, clock=clock, status=lambda: status, check_token=check_token)


def browser_of(services: ApiServices) -> AsyncClient:
    """Somebody with the pages, who keeps cookies."""
    app = create_app(services)
    routes.install(app)
    return AsyncClient(transport=ASGITransport(app=app), base_url=HOME)


def written(page: str) -> dict[str, str]:
    """What a browser would send of the form as it is."""
    form = page.partition('<form method="post" class="job"')[2].partition("</form>")[0]
    sent = {}
    for tag in re.findall(r"<input[^>]*>", form):
        name, value, kind = (re.search(rf' {a}="([^"]*)"', tag) for a in ("name", "value", "type"))
        if name and not (kind and kind[1] in ("radio", "checkbox") and " checked" not in tag):
            sent[name[1]] = unescape(value[1] if value else "")
    for name, text in re.findall(r'<textarea id="[^"]*" name="([^"]*)"[^>]*>([^<]*)</textarea>', form):
        sent[name] = unescape(text)
    for name, options in re.findall(
        r'<select id="[^"]*" name="([^"]*)"[^>]*>(.*?)</select>', form, re.DOTALL
    ):
        chosen = re.search(r'value="([^"]*)" selected', options) or re.search(r'value="([^"]*)"', options)
        sent[name] = chosen[1] if chosen else ""
    return sent
