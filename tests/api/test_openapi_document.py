"""The OpenAPI document is complete, true to the routes, and its copy in the docs is fresh."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from noonday.api import openapi_words as words
from noonday.api.callers import api_routes, right_of
from noonday.domain.access import Right
from tools.openapi import SNAPSHOT, application, written
from tools.openapi_diff import METHODS

Json = dict[str, Any]
APP = application()
DOCUMENT: Json = APP.openapi()
RIGHTS = {
    f"{method} {route.path_format}": right_of(route) - {None}
    for route in api_routes(APP.routes)
    for method in route.methods or ()
}
OPERATIONS: dict[str, Json] = {
    f"{method.upper()} {path}": item[method]
    for path, item in DOCUMENT["paths"].items()
    for method in METHODS
    if method in item
}
BODIES = {where: node for where, node in OPERATIONS.items() if "requestBody" in node}
each_operation = pytest.mark.parametrize("where", sorted(OPERATIONS))
each_body = pytest.mark.parametrize("where", sorted(BODIES))


def resolved(node: Json) -> Json:
    while "$ref" in node:
        found: Any = DOCUMENT
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node = found
    return node


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def test_it_is_openapi_3_1_with_words_for_everything_it_uses() -> None:
    assert DOCUMENT["openapi"].startswith("3.1")
    assert DOCUMENT["info"]["license"]["identifier"] == "Apache-2.0"
    assert DOCUMENT["servers"]
    used = {tag for node in OPERATIONS.values() for tag in node["tags"]}
    assert used == {tag["name"] for tag in DOCUMENT["tags"]}, "a tag without words, or words without a tag"
    for reference in set(references(DOCUMENT)):
        assert resolved({"$ref": reference}) is not None


def test_its_copy_in_the_docs_is_fresh() -> None:
    assert SNAPSHOT.read_text(encoding="utf-8") == written(DOCUMENT), "run `make openapi`"


def test_it_names_every_operation_once() -> None:
    names = [node["operationId"] for node in OPERATIONS.values()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)+", name) for name in names), names
    assert {"jobs_create", "jobs_find", "jobs_read", "jobs_change", "jobs_delete"} <= set(names)


@each_operation
def test_it_says_what_an_operation_does_and_answers(where: str) -> None:
    node = OPERATIONS[where]
    assert len(node["summary"]) > 8
    answers = {status: resolved(answer) for status, answer in node["responses"].items()}
    good = [status for status in answers if int(status) < 300]
    assert good
    for status in good:
        assert status == "204" or answers[status]["content"], "an answer without a shape"
        for media, content in answers[status].get("content", {}).items():
            assert media != "application/json" or content["schema"], "an answer without a shape"
    for status, answer in answers.items():
        assert answer["description"]
        if int(status) >= 400:
            schema = answer["content"]["application/problem+json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Problem"}


@each_operation
def test_it_says_which_right_an_operation_needs(where: str) -> None:
    rights, node = RIGHTS[where], OPERATIONS[where]
    for right in rights:
        assert f"Needs the right **{right}**" in node["description"]
    if rights:
        assert "security" not in node, "as for the whole document"
        assert {"401", "403"} <= node["responses"].keys()
    else:
        assert node["security"] in ([], words.CALLBACK)


@each_operation
def test_it_declares_the_refusals_that_follow_from_the_parameters(where: str) -> None:
    node = OPERATIONS[where]
    parameters = {(one["in"], one["name"].lower()) for one in node.get("parameters", ())}
    assert ("404" in node["responses"]) >= any(place == "path" for place, _ in parameters)
    assert ("412" in node["responses"]) >= (("header", "if-match") in parameters)
    assert ("422" in node["responses"]) >= bool(parameters)
    assert ("409" in node["responses"]) >= (not where.startswith("GET"))


@each_body
def test_it_shows_examples_of_every_body_that_fit_its_schema(where: str) -> None:
    for media, content in BODIES[where]["requestBody"]["content"].items():
        examples = content.get("examples", {})
        assert examples or media != "application/json", f"{BODIES[where]['operationId']} has no example"
        schema = {**content["schema"], "components": DOCUMENT["components"]}
        for name, example in examples.items():
            assert jsonschema_rs.is_valid(schema, example["value"]), name


def test_it_is_exact_about_a_few_operations() -> None:
    change = OPERATIONS["PUT /api/v2/jobs/{job}"]
    assert change["operationId"] == "jobs_change"
    assert {"200", "401", "403", "404", "409", "412", "422", "503"} <= change["responses"].keys()
    assert "429" not in change["responses"]
    run = OPERATIONS["POST /api/v2/jobs/{job}/force-run"]
    assert "429" in run["responses"]
    assert "Idempotency-Key" in {parameter["name"] for parameter in run["parameters"]}
    drain = OPERATIONS["POST /api/v2/scheduler/drain"]
    assert "404" in drain["responses"], "there may be no such instance"
    live = OPERATIONS["GET /health/live"]
    assert live["security"] == []
    assert live["responses"].keys() == {"200", "400", "421"}
    callback = OPERATIONS["POST /api/v2/executions/{execution}/callback"]
    assert callback["security"] == [{"callback": []}, {"callbackHeader": []}]
    assert {"401", "403", "404", "410"} <= callback["responses"].keys()
    assert str(Right.EDIT) in change["description"]


def test_it_has_no_schema_that_is_not_ours() -> None:
    names = set(DOCUMENT["components"]["schemas"])
    assert not names & {"HTTPValidationError", "ValidationError"}
    assert not [name for name in names if "__" in name], "two models of one name: rename one"
    used = {reference.rpartition("/")[2] for reference in references(DOCUMENT)}
    assert names <= used, "shapes that nothing uses"


def test_it_can_be_read_by_programs() -> None:
    assert json.loads(written(DOCUMENT)) == DOCUMENT
