"""Reads a curl command as people paste it, and sends what curl would send."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def curl(command: str, base: str, **more: str) -> Answer:
    """As the command says, but at `base`: only the path of its URL counts. `more` are further headers."""
    method, path, data = None, "", None
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    words = iter(shlex.split(command.replace("\\\n", " "))[1:])
    for word in words:
        match word:
            case "-X" | "--request":
                method = next(words)
            case "-d" | "--data":
                data = next(words).encode()
                headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
            case "-H" | "--header":
                name, _, value = next(words).partition(":")
                headers[name] = value.strip()
            case "-s" | "-i" | "-f":
                pass
            case _:
                url = urlsplit(word if "://" in word else f"http://{word}")
                path = url.path + (f"?{url.query}" if url.query else "")
    request = Request(base + path, data, headers, method=method or ("POST" if data else "GET"))
    try:
        with urlopen(request, timeout=20) as answer:
            return Answer(answer.status, _lower(answer.headers), answer.read().decode())
    except HTTPError as refused:
        with refused:
            return Answer(refused.code, _lower(refused.headers), refused.read().decode())


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
