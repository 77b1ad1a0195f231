"""`/docs`: the OpenAPI document as one page that needs no script, no network and no login."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from noonday.api.html import Markup, inline, paragraphs, tag
from noonday.api.schema_words import anchor, fields_table, type_words

__all__ = ["page"]

Json = Mapping[str, Any]
_METHODS = ("get", "post", "put", "patch", "delete")


def page(document: Json) -> str:
    info = document["info"]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{info['title']} API"),
        tag("link", rel="icon", href="data:,"),
        tag("link", rel="stylesheet", href="docs/reference.css"),
        tag("script", src="docs/reference.js", defer=True),
    )
    main = tag(
        "main",
        _opening(info),
        (_section(document, one) for one in document["tags"]),
        _schemas(document["components"]["schemas"]),
        id="content",
    )
    skip = tag("a", "To the content", href="#content", class_="skip")
    body = tag("body", skip, _contents(document), main)
    return f"<!doctype html>{tag('html', head, body, lang='en')}"


def _opening(info: Json) -> Markup:
    return tag(
        "header",
        tag("h1", info["title"], " ", tag("small", f"API {info['version']}")),
        paragraphs(info.get("summary", "")),
        paragraphs(info.get("description", "")),
        tag("p", "For programs: ", tag("a", "openapi.json", href="openapi.json"), "."),
    )


def _contents(document: Json) -> Markup:
    search = tag(
        "p",
        tag("label", "Search ", tag("kbd", "/"), for_="search"),
        tag("input", type="search", id="search", autocomplete="off"),
        tag("output", id="found", for_="search"),
        id="searching",
        hidden=True,  # until the script is there
    )
    lists = [
        tag("li", tag("a", one["name"], href=f"#tag-{one['name']}"), tag("ul", _links(document, one["name"])))
        for one in document["tags"]
    ]
    return tag("nav", search, tag("ul", lists), aria_label="Contents")


def _links(document: Json, name: str) -> Iterator[Markup]:
    for path, method, operation in _operations(document, name):
        text = operation["summary"]
        yield tag(
            "li",
            tag("a", text, href=f"#{operation['operationId']}", title=f"{method.upper()} {path}"),
            data_words=_words(path, method, operation),
        )


def _operations(document: Json, name: str) -> Iterator[tuple[str, str, Json]]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if name in item.get(method, {}).get("tags", ()):
                yield path, method, item[method]


def _words(path: str, method: str, operation: Json) -> str:
    words = (method, path, operation["operationId"], operation["summary"], *operation["tags"])
    return " ".join(words).lower()


def _section(document: Json, one: Json) -> Markup:
    return tag(
        "section",
        tag("h2", one["name"]),
        paragraphs(one["description"]),
        (_operation(document, *found) for found in _operations(document, one["name"])),
        id=f"tag-{one['name']}",
    )


def _operation(document: Json, path: str, method: str, operation: Json) -> Markup:
    line = tag(
        "summary",
        tag("code", method.upper(), class_=f"method {method}"),
        tag("code", path, class_="path"),
        tag("span", inline(operation["summary"])),
        tag("em", "deprecated") if operation.get("deprecated") else None,
    )
    inside = tag(
        "div",
        paragraphs(operation.get("description", "")),
        _parameters(operation),
        _body(operation),
        _answers(document, operation),
        tag("h3", "With curl"),
        tag("pre", tag("code", _curl(path, method, operation)), tabindex="0"),
        id=operation["operationId"],  # inside: a link to it opens what is closed
    )
    return tag("details", line, inside, class_="operation", data_words=_words(path, method, operation))


def _parameters(operation: Json) -> Markup | None:
    fields = {
        parameter["name"]: {
            **parameter["schema"],
            "description": f"({parameter['in']}) {parameter.get('description', '')}".strip(),
        }
        for parameter in operation.get("parameters", ())
    }
    needed = [parameter["name"] for parameter in operation.get("parameters", ()) if parameter.get("required")]
    table = fields_table({"properties": fields, "required": needed})
    return table and Markup(tag("h3", "Parameters") + table)


def _body(operation: Json) -> Markup | None:
    if "requestBody" not in operation:
        return None
    parts: list[Markup] = []
    for media, content in operation["requestBody"].get("content", {}).items():
        words = Markup(f"{tag('code', media)}: {type_words(content.get('schema', {}))}")
        parts.append(tag("p", words))
        for name, example in content.get("examples", {}).items():
            text = json.dumps(example["value"], indent=2, ensure_ascii=False)
            code = tag("pre", tag("code", text), tabindex="0")
            parts.append(tag("figure", tag("figcaption", name), code))
    needed = "" if operation["requestBody"].get("required") else " (may be left out)"
    return Markup(tag("h3", f"Body{needed}") + "".join(parts))


def _answers(document: Json, operation: Json) -> Markup:
    rows = [_answer(status, _resolved(document, one)) for status, one in operation["responses"].items()]
    return Markup(tag("h3", "Answers") + tag("dl", rows))


def _answer(status: str, answer: Json) -> list[Markup]:
    shapes = [type_words(content["schema"]) for content in answer.get("content", {}).values() if content]
    words = inline(answer["description"])
    shown = Markup(f"{words}: {' or '.join(shapes)}") if shapes else words
    return [tag("dt", tag("code", status)), tag("dd", shown)]


def _resolved(document: Json, node: Json) -> Json:
    if "$ref" not in node:
        return node
    found: Any = document
    for step in node["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    resolved: Json = found
    return resolved


def _curl(path: str, method: str, operation: Json) -> str:
    words = ["curl", "-X", method.upper(), f"http://localhost:8060{path}"]
    if operation.get("security") != []:
        words += ["-H", "Authorization: Bearer …"]
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    for example in list(content.get("examples", {}).values())[:1]:
        text = json.dumps(example["value"], ensure_ascii=False)
        words += ["-H", "Content-Type: application/json", "-d", text]
    return " ".join(shlex.quote(word) for word in words)


def _schemas(schemas: Json) -> Markup:
    shown = [
        tag(
            "details",
            tag("summary", tag("code", name)),
            tag(
                "div",
                paragraphs(schema.get("description", "")),
                fields_table(schema) or tag("p", type_words(schema)),
                id=anchor(name),
            ),
            class_="schema",
        )
        for name, schema in schemas.items()
    ]
    return tag("section", tag("h2", "Shapes"), shown, id="shapes")
