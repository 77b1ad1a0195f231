"""The OpenAPI document: what FastAPI knows of the routes, and what follows from their rights and the door."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi.routing import APIRoute
from pydantic import BaseModel

from noonday.api import openapi_words as words
from noonday.api.callers import api_routes, right_of
from noonday.api.door.replays import remembers
from noonday.api.examples import examples_of
from noonday.api.openapi_names import renamed
from noonday.api.problems import MEDIA_TYPE
from noonday.api.refusals import REFUSALS, Proof, refusals
from noonday.api.shapes import Problem
from noonday.domain.access import RIGHTS, Right, Role

__all__ = ["described"]

Json = dict[str, Any]
_REF = "#/components/schemas/"
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": f"{_REF}Problem"}}}
_NOT_OURS = ("HTTPValidationError", "ValidationError")  # our answer to a wrong value is a Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one route, and its part of the document."""

    route: APIRoute
    path: str
    method: str
    node: Json

    @property
    def name(self) -> str:
        return f"{self.node.get('tags', ['api'])[0]}_{self.route.name}".replace("-", "_")

    @property
    def static_words(self) -> list[str]:
        return [word.replace("-", "_") for word in self.path.split("/") if word and "{" not in word]


def described(plain: Json, routes: Sequence[Any]) -> Json:
    """`plain` is what FastAPI made of the routes; it is left as it is."""
    plain = renamed(plain)
    operations = list(_operations(plain, routes))
    schemas = plain.setdefault("components", {}).setdefault("schemas", {})
    for operation, name in zip(operations, _names(operations), strict=True):
        _describe(operation, name, schemas)
    for name in _NOT_OURS:
        schemas.pop(name, None)
    schemas |= _schema_of(Problem)
    plain["components"]["schemas"] = dict(sorted(schemas.items()))
    plain["components"]["responses"] = {
        refusal.name: _refused(status, refusal.words) for status, refusal in REFUSALS.items()
    }
    plain["components"]["securitySchemes"] = words.SECURITY
    plain["info"] |= {"description": words.ABOUT, "license": words.LICENSE}
    used = {tag for operation in operations for tag in operation.node.get("tags", ())}
    tags = [{"name": tag, "description": text} for tag, text in words.TAGS.items() if tag in used]
    return {
        "openapi": plain["openapi"],
        "info": plain["info"],
        "servers": words.SERVERS,
        "tags": tags,
        "security": words.KEYS,
        "paths": plain["paths"],
        "components": plain["components"],
    }


def _operations(document: Json, routes: Sequence[Any]) -> Iterator[Operation]:
    for route in api_routes(routes):
        for method in sorted(route.methods or ()) if route.include_in_schema else ():
            node = document["paths"][route.path_format][method.lower()]
            yield Operation(route=route, path=route.path_format, method=method, node=node)


def _names(operations: Iterable[Operation]) -> list[str]:
    """`jobs_create`: tag and function; where one function has two addresses, the words of the other too."""
    found = list(operations)
    shared = Counter(operation.name for operation in found)
    return [
        one.name
        if shared[one.name] == 1 or one.static_words[-1:] == [one.route.name]
        else "_".join([one.name, *one.static_words])
        for one in found
    ]


def _describe(operation: Operation, name: str, schemas: Json) -> None:
    node = operation.node
    node["operationId"] = name
    _mark_long_paths(operation)
    rights = [right for right in right_of(operation.route) if right is not None]
    proof = _secured(node, rights)
    if proof is Proof.KEY and remembers(operation.method, operation.path):
        node["parameters"] = [*node.get("parameters", ()), words.IDEMPOTENCY_KEY]
    node["description"] = "\n\n".join(part for part in (node.get("description"), _told(rights)) if part)
    _answers(operation, refusals(operation.route, operation.method, _given(node, schemas), proof))
    for content in node.get("requestBody", {}).get("content", {}).values():
        found = examples_of(name, _body_name(content.get("schema", {})))
        if found:
            content["examples"] = {key: {"value": value} for key, value in found.items()}


def _body_name(schema: Json) -> str:
    """Of a body that may be left out, too."""
    named = [one["$ref"] for one in (schema, *schema.get("anyOf", ())) if "$ref" in one]
    return str(named[0]).removeprefix(_REF) if named else ""


def _mark_long_paths(operation: Operation) -> None:
    """OpenAPI has no word for a parameter that may hold slashes."""
    for parameter in operation.node.get("parameters", ()):
        if f"{{{parameter['name']}:path}}" in operation.route.path:
            parameter["x-holds-slashes"] = True


def _secured(node: Json, rights: Sequence[Right]) -> Proof:
    parameters = node.get("parameters", [])
    tokens = [p for p in parameters if p["in"] == "header" and p["name"].lower() in words.CALLBACK_HEADERS]
    if len(tokens) == len(words.CALLBACK_HEADERS):  # a token of its own: said as security, not as two headers
        node["parameters"] = [parameter for parameter in parameters if parameter not in tokens]
        node["security"] = words.CALLBACK
        return Proof.CALLBACK
    if rights:
        return Proof.KEY
    node["security"] = []
    return Proof.NONE


def _told(rights: Iterable[Right]) -> str:
    return " ".join(f"Needs the right **{right}**: {_who_has(right)}." for right in sorted(rights))


def _who_has(right: Right) -> str:
    names = [role.value for role in Role if right in RIGHTS[role] and role is not Role.SERVICE]
    own = [f"{Role.SERVICE} for its own jobs"] if right in RIGHTS[Role.SERVICE] else []
    return ", ".join(names + own)


def _given(node: Json, schemas: Json) -> set[tuple[str, str]]:
    """All that an operation takes: the place and the name of each."""
    parameters = {(one["in"], one["name"].lower()) for one in node.get("parameters", ())}
    contents = node.get("requestBody", {}).get("content", {}).values()
    bodies = [schemas.get(_body_name(content.get("schema", {})), {}) for content in contents]
    return parameters | {("body", name) for body in bodies for name in body.get("properties", ())}


def _answers(operation: Operation, refused: Iterable[int]) -> None:
    answers = operation.node["responses"]
    for status, answer in list(answers.items()):
        if any(name in str(answer) for name in _NOT_OURS):
            del answers[status]
            continue
        if answer.get("description") in ("Successful Response", HTTPStatus(int(status)).phrase, None):
            answer["description"] = _words(int(status))
        if int(status) >= 400:
            answer["content"] = answer.get("content", {}) | _PROBLEM
        if _is_job(answer):
            answer["headers"] = {"ETag": words.ETAG} | answer.get("headers", {})
    for status in refused:
        answers.setdefault(str(status), {"$ref": f"#/components/responses/{REFUSALS[status].name}"})
    operation.node["responses"] = dict(sorted(answers.items()))


def _refused(status: int, text: str) -> Json:
    headers = {"headers": words.HEADERS[status]} if status in words.HEADERS else {}
    return {"description": text, **headers, "content": _PROBLEM}


def _words(status: int) -> str:
    return REFUSALS[status].words if status in REFUSALS else HTTPStatus(status).phrase


def _is_job(answer: Json) -> bool:
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema.get("$ref") == f"{_REF}JobShape")


def _schema_of(model: type[BaseModel]) -> Json:
    shape = model.model_json_schema(ref_template=f"{_REF}{{model}}")
    parts: Json = shape.pop("$defs", {})
    return parts | {model.__name__: shape}
