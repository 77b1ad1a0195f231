"""Where settings come from: flags over environment over files; and how one is shown without its secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr
from pydantic.fields import FieldInfo

from noonday.domain.errors import Invalid, Problem

HIDDEN = "********"
_SERVICE = re.compile(r"([A-Z0-9_]+)_SERVICE_URL")


@dataclass(frozen=True, slots=True)
class Source:
    """One line of `noonday config`; the value of a secret is hidden."""

    name: str
    value: str
    origin: str  # "default", "flag", "environment", or "file <path>"


def named(default: Any, *names: str, secret: bool = False, **bounds: Any) -> Any:
    """A field with its names in the environment, first choice first."""
    return Field(default, repr=not secret, json_schema_extra={"env": list(names), "secret": secret}, **bounds)


def gathered(fields: Mapping[str, FieldInfo], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags over environment over `*_FILE`, with a note of where each value came from."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, field in fields.items():
        value, origin = _from_environment(env_names(field), os.environ, secret=is_secret(field))
        if value is not None:
            values[name], origins[name] = value, origin
    values["services"] = _services(os.environ)
    given = {name: value for name, value in flags.items() if value is not None}
    origins |= dict.fromkeys(given, "flag")
    return {**values, **given, "origins": origins}


def _from_environment(
    names: list[str], environ: Mapping[str, str], *, secret: bool
) -> tuple[str | None, str]:
    """An empty variable counts as absent; for a secret `NAME_FILE` may name a file that holds it."""
    for name in names:
        if value := environ.get(name, "").strip():
            return value, f"environment {name}"
        if secret and (path := environ.get(f"{name}_FILE", "").strip()):
            try:
                return Path(path).read_text(encoding="utf-8").strip(), f"file {path}"
            except (OSError, UnicodeDecodeError) as error:
                raise Invalid(Problem(f"{name}_FILE", f"{path!r} cannot be read: {error}")) from error
    return None, "default"


def is_blank(name: str) -> bool:
    """Is the variable set, but to nothing?"""
    return not os.environ.get(name, "set").strip()


def _services(environ: Mapping[str, str]) -> dict[str, str]:
    """`EMAIL_SERVICE_URL` is the base URL of `email-service`."""
    found = ((_SERVICE.fullmatch(name), value.strip()) for name, value in environ.items())
    return {
        match[1].lower().replace("_", "-") + "-service": value for match, value in found if match and value
    }


def service_variable(service: str) -> str:
    return service.removesuffix("-service").upper().replace("-", "_") + "_SERVICE_URL"


def env_names(field: FieldInfo) -> list[str]:
    names = field.json_schema_extra.get("env") if isinstance(field.json_schema_extra, dict) else None
    return [str(name) for name in names] if isinstance(names, list) else []


def is_secret(field: FieldInfo) -> bool:
    return isinstance(field.json_schema_extra, dict) and bool(field.json_schema_extra.get("secret"))


def shown(field: FieldInfo, value: object) -> str:
    match value:
        case None:
            return ""
        case SecretStr():
            return HIDDEN
        case timedelta():
            return f"{value.total_seconds():g}s"
        case tuple():
            return ",".join(map(str, value))
        case bool():
            return str(value).lower()
        case _:
            return without_password(str(value)) if is_secret(field) else str(value)


def without_password(url: str) -> str:
    """The URL with any password in it, before the host or among the parameters, hidden."""
    url = re.sub(r"^([^/?#]+://[^/?#@:]*):[^/?#]*@", rf"\1:{HIDDEN}@", url)
    return re.sub(r"([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&#]*", rf"\1{HIDDEN}", url, flags=re.I)
