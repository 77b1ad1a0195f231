"""JSON schemas in words, for people who read the API's page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from noonday.api.html import Markup, inline, tag

__all__ = ["anchor", "fields_table", "type_words"]

Json = Mapping[str, Any]
_REF = "#/components/schemas/"
_BOUNDS = {
    "minimum": "from {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "up to {}",
    "exclusiveMaximum": "less than {}",
    "maxLength": "at most {} characters",
    "maxItems": "at most {} of them",
    "pattern": "matching {}",
}


def anchor(name: str) -> str:
    return f"schema-{name}"


def type_words(schema: Json) -> Markup:
    """What may stand here: `text`, `number, from 1, up to 3`, `list of Job`, `one of "a", "b"`, or null."""
    return Markup(", ".join([_kind(schema), *_bounds(schema)]))


def _kind(schema: Json) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        return tag("a", name, href=f"#{anchor(name)}")
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(type_words(one) for one in schema[several])
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(tag("code", json.dumps(value)) for value in values)
    return _plain(schema)


def _plain(schema: Json) -> str:
    kind = schema.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {type_words(schema.get('items', {}))}"
    if kind == "object":
        more = schema.get("additionalProperties")
        return f"object of {type_words(more)}" if isinstance(more, Mapping) and more else "object"
    return {"date-time": "time", "date": "date"}.get(schema.get("format", ""), str(kind))


def _bounds(schema: Json) -> Iterator[str]:
    for key, words in _BOUNDS.items():
        if key in schema:
            yield words.format(tag("code", str(schema[key])) if key == "pattern" else schema[key])


def fields_table(schema: Json) -> Markup | None:
    """The fields of an object, one row each; nothing for what has no fields."""
    if not schema.get("properties"):
        return None
    needed = schema.get("required", ())
    head = tag("tr", (tag("th", words, scope="col") for words in ("field", "what it is", "meaning")))
    rows = [
        tag(
            "tr",
            tag("th", tag("code", name), " needed" if name in needed else None, scope="row"),
            tag("td", type_words(field), _default(field)),
            tag("td", inline(field.get("description", ""))),
        )
        for name, field in schema["properties"].items()
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="wide")


def _default(field: Json) -> Markup | None:
    value = field.get("default")
    return None if value is None else Markup(f"; default {tag('code', json.dumps(value))}")
