"""The templates of the pages: what they know, and what none of them can forget."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, timedelta
from functools import lru_cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from jinja2.ext import Extension

from noonday.api.door.form_tokens import FORM_FIELD
from noonday.web import assets, strips, words

__all__ = ["templates"]

_POSTS: Final = re.compile(r'<form\b(?=[^>]*\bmethod="post")[^>]*>')
_TOKEN: Final = f'<input type="hidden" name="{FORM_FIELD}" value="{{{{ form_token }}}}">'


class _FormTokens(Extension):
    """Every form that posts carries the token of its page."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return _POSTS.sub(lambda form: form[0] + _TOKEN, source)


@lru_cache
def templates() -> Environment:
    made = Environment(
        loader=PackageLoader("noonday.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_FormTokens],
    )
    filters: dict[str, Callable[..., Any]] = {
        "span": words.span,
        "count": words.count,
        "state": words.state,
        "strip": strips.strip,
    }
    made.filters.update(filters)
    made.globals.update(asset=assets.address_of, UTC=UTC, timedelta=timedelta, demo=False)
    return made
