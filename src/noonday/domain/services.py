"""Services that jobs call, and the names under which they are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from noonday.domain.errors import invalid

__all__ = ["check_base", "check_name", "find_url", "variable_of"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MAX_URL = 2048


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise invalid("name", name, "is not the name of a service: letters, digits and . _ - only")
    return name


def check_base(url: str) -> str:
    """The URL without a slash at its end; raises Invalid for one that endpoints cannot be added to."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or len(url) > _MAX_URL:
        raise invalid("url", url, "is not a URL that begins with http:// or https://")
    if "?" in url or "#" in url:
        raise invalid("url", url, "must not hold ? or #, for the endpoints of jobs are added to it")
    return url.rstrip("/")


def variable_of(service: str) -> str:
    """`email-service`, `email` and `EMAIL_SERVICE_URL` all mean the variable EMAIL_SERVICE_URL."""
    words = re.sub(r"[^A-Z0-9]+", "_", service.upper()).strip("_")
    words = words.removesuffix("_URL").removesuffix("_SERVICE")
    return f"{words}_SERVICE_URL"


def find_url(urls: Mapping[str, str], service: str) -> str | None:
    """The base URL under this name, else under another name of the same service."""
    if service in urls:
        return urls[service]
    wanted = variable_of(service)
    return next((url for name, url in sorted(urls.items()) if variable_of(name) == wanted), None)
