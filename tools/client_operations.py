"""From operations of the OpenAPI document to methods of the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.client_types import Json, Types, docstring, safe

METHODS = ("get", "post", "put", "patch", "delete")
LEFT_OUT = frozenset({"v1", "documents"})  # what is deprecated, and what is for browsers
FIRST = ("executions",)  # jobs answer with executions: these live in a module of their own
STREAM = "text/event-stream"  # written by hand: client/listening.py


@dataclass(frozen=True, slots=True)
class Operation:
    path: str
    method: str
    node: Json

    @property
    def tag(self) -> str:
        return str(self.node["tags"][0])

    @property
    def name(self) -> str:
        return safe(self.node["operationId"].removeprefix(f"{self.tag.replace('-', '_')}_"))

    @property
    def callback(self) -> bool:
        return any("callback" in one for one in self.node.get("security", ()))


def operations(document: Json) -> Iterator[Operation]:
    """All that the client has a method for, in the order of the document's tags."""
    order = [*FIRST, *(one["name"] for one in document["tags"])]
    found = [
        Operation(path, method, item[method])
        for path, item in document["paths"].items()
        for method in METHODS
        if method in item
    ]
    yield from sorted(filter(_wanted, found), key=lambda one: (order.index(one.tag), one.name))


def _wanted(operation: Operation) -> bool:
    streams = STREAM in operation.node["responses"].get("200", {}).get("content", {})
    return not (streams or operation.node.get("deprecated") or operation.tag in LEFT_OUT)


def method(types: Types, operation: Operation) -> str:
    """One method of a group, as source text."""
    answers = _answers(types, operation)
    returns = " | ".join(dict.fromkeys(answers.values()))
    arguments, parts = _arguments(types, operation)
    given = [
        f'method="{operation.method.upper()}"',
        f"path={_address(operation)}",
        f"answers={{{', '.join(f'{status}: {form}' for status, form in answers.items())}}}",
        *(f"{name}={value}" for name, value in parts.items()),
    ]
    words = operation.node["summary"].rstrip(".") + "."
    more = operation.node.get("description", "").replace("**", "")
    return "\n".join(
        [
            "    @operation",
            f"    def {operation.name}({', '.join(['self', *arguments])}) -> Call[{returns}]:",
            docstring("\n\n".join(part for part in (words, more) if part), "        "),
            f"        return Call({', '.join(given)})",
        ]
    )


def _answers(types: Types, operation: Operation) -> dict[int, str]:
    """What each status brings: every success, and what else is more than a problem."""
    found: dict[int, str] = {}
    for status, answer in operation.node["responses"].items():
        content = answer.get("content", {})
        if "application/json" in content and (int(status) < 400 or content["application/json"].get("schema")):
            found[int(status)] = types.of(content["application/json"].get("schema", {}), "answers")
        elif int(status) < 300:
            found[int(status)] = "str" if content else "None"
    return found


def _arguments(types: Types, operation: Operation) -> tuple[list[str], dict[str, str]]:
    """The arguments of the method, and the parts of the call that they make up."""
    first, body, later = [], [], []
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    parts: dict[str, str] = {}
    for parameter in operation.node.get("parameters", ()):
        name, place = parameter["name"], parameter["in"]
        kind = types.of(parameter["schema"], "bodies")
        if place == "path":
            first.append(f"{safe(name)}: {kind}")
        elif name.lower() == "prefer":
            later.append("wait: int | None = None")
            headers["Prefer"] = 'None if wait is None else f"wait={wait}"'
            parts["patience"] = "wait or 0"
        else:
            wire, target = (_title(name), headers) if place == "header" else (name, query)
            target[wire] = safe(name.lower() if place == "header" else name)
            later.append(_later(target[wire], kind, parameter))
    if operation.callback:
        later.append("token: str")
        headers["Authorization"] = 'f"Bearer {token}"'
    if "requestBody" in operation.node:
        body, parts["body"] = [_body(types, operation.node["requestBody"])], "body"
    parts |= {name: _literal(value) for name, value in (("query", query), ("headers", headers)) if value}
    return [*first, *body, *(["*", *later] if later else [])], parts


def _later(name: str, kind: str, parameter: Json) -> str:
    if parameter.get("required"):
        return f"{name}: {kind}"
    return f"{name}: {kind} = None" if "None" in kind.split(" | ") else f"{name}: {kind} | None = None"


def _body(types: Types, node: Json) -> str:
    kind = types.of(node.get("content", {}).get("application/json", {}).get("schema", {}), "bodies")
    optional = not node.get("required") or "None" in kind.split(" | ")
    plain = " | ".join(part for part in kind.split(" | ") if part != "None")
    return f"body: {plain} | None = None" if optional and plain != "Any" else f"body: {plain}"


def _literal(pairs: Mapping[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in pairs.items()) + "}"


def _title(header: str) -> str:
    return "-".join(word.capitalize() for word in header.split("-"))


def _address(operation: Operation) -> str:
    parameters: list[Any] = [p for p in operation.node.get("parameters", ()) if p["in"] == "path"]
    if not parameters:
        return f'"{operation.path}"'
    slashes = [f'slashes="{p["name"]}"' for p in parameters if p.get("x-holds-slashes")]
    values = [f"{p['name']}={safe(p['name'])}" for p in parameters]
    return f'address("{operation.path}", {", ".join([*slashes, *values])})'
