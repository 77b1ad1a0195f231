"""Whoever calls the API today can call it tomorrow: what would break them is found and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tools.openapi import SNAPSHOT, application
from tools.openapi_diff import differences, may_break

Json = dict[str, Any]

DOCUMENT: Json = {
    "openapi": "3.1.0",
    "info": {"title": "a small API", "version": "1.4.0"},
    "paths": {
        "/jobs": {
            "post": {
                "operationId": "jobs_create",
                "parameters": [
                    {"in": "query", "name": "dry_run", "schema": {"type": "boolean"}},
                    {
                        "in": "query",
                        "name": "limit",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 200},
                    },
                ],
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Body"}}}
                },
                "responses": {
                    "201": {
                        "description": "made",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}},
                    }
                },
            }
        },
        "/health": {
            "get": {"operationId": "health_live", "security": [], "responses": {"200": {"description": "-"}}}
        },
    },
    "components": {
        "schemas": {
            "Body": {
                "type": "object",
                "title": "Body",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 200},
                    "overlap": {"enum": ["skip", "queue"], "type": "string"},
                    "retries": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "target": {
                        "oneOf": [
                            {"$ref": "#/components/schemas/Http"},
                            {"$ref": "#/components/schemas/Fetch"},
                        ]
                    },
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
            },
            "Http": {"type": "object", "title": "Http", "properties": {"type": {"const": "http"}}},
            "Fetch": {"type": "object", "title": "Fetch", "properties": {"type": {"const": "fetch"}}},
            "Job": {
                "type": "object",
                "title": "Job",
                "required": ["id", "state"],
                "properties": {
                    "id": {"type": "string"},
                    "state": {"enum": ["on", "off"], "type": "string"},
                    "parent": {"$ref": "#/components/schemas/Job"},
                },
            },
        }
    },
}


def operation(document: Json) -> Json:
    found: Json = document["paths"]["/jobs"]["post"]
    return found


def body(document: Json) -> Json:
    found: Json = document["components"]["schemas"]["Body"]
    return found


def job(document: Json) -> Json:
    found: Json = document["components"]["schemas"]["Job"]
    return found


def changed(change: Callable[[Json], object]) -> Json:
    made = deepcopy(DOCUMENT)
    change(made)
    return made


BREAKING: dict[str, Callable[[Json], object]] = {
    "a path is gone": lambda d: d["paths"].pop("/health"),
    "a method is gone": lambda d: d["paths"]["/jobs"].pop("post"),
    "an operation has another name": lambda d: operation(d).update(operationId="jobs_make"),
    "an open route wants a login": lambda d: d["paths"]["/health"]["get"].pop("security"),
    "a parameter is gone": lambda d: operation(d)["parameters"].pop(0),
    "a parameter is needed": lambda d: operation(d)["parameters"][0].update(required=True),
    "a new parameter is needed": lambda d: operation(d)["parameters"].append(
        {"in": "header", "name": "x-new", "required": True, "schema": {"type": "string"}}
    ),
    "a bound is tighter": lambda d: operation(d)["parameters"][1]["schema"].update(maximum=100),
    "a lower bound is tighter": lambda d: operation(d)["parameters"][1]["schema"].update(minimum=2),
    "a body is needed": lambda d: operation(d)["requestBody"].update(required=True),
    "the body is gone": lambda d: operation(d).pop("requestBody"),
    "a field cannot be sent any more": lambda d: body(d)["properties"].pop("tags"),
    "a field is needed": lambda d: body(d)["required"].append("overlap"),
    "a new field is needed": lambda d: (
        body(d)["required"].append("owner"),
        body(d)["properties"].update(owner={"type": "string"}),
    ),
    "a text is shorter": lambda d: body(d)["properties"]["name"].update(maxLength=100),
    "a text must match": lambda d: body(d)["properties"]["name"].update(pattern="^a"),
    "a value is not taken any more": lambda d: body(d)["properties"]["overlap"].update(enum=["skip"]),
    "any text became some words": lambda d: body(d)["properties"]["name"].update(enum=["a", "b"]),
    "null is not taken any more": lambda d: body(d)["properties"].update(retries={"type": "integer"}),
    "another type is wanted": lambda d: body(d)["properties"].update(name={"type": "integer"}),
    "the items are of another type": lambda d: body(d)["properties"]["tags"].update(
        items={"type": "integer"}
    ),
    "a kind of target is gone": lambda d: body(d)["properties"]["target"]["oneOf"].pop(),
    "a success is gone": lambda d: operation(d)["responses"].update(
        {"200": operation(d)["responses"].pop("201")}
    ),
    "the answer is of another kind": lambda d: operation(d)["responses"]["201"]["content"].update(
        {"text/plain": operation(d)["responses"]["201"]["content"].pop("application/json")}
    ),
    "a field is not answered any more": lambda d: job(d)["properties"].pop("state"),
    "a field may be missing in the answer": lambda d: job(d)["required"].remove("id"),
    "an answer may be null": lambda d: job(d)["properties"].update(
        id={"anyOf": [{"type": "string"}, {"type": "null"}]}
    ),
    "an answer is of another type": lambda d: job(d)["properties"].update(id={"type": "integer"}),
    "an answer can be anything": lambda d: job(d)["properties"]["state"].pop("enum"),
}

HARMLESS: dict[str, Callable[[Json], object]] = {
    "a new path": lambda d: d["paths"].update({"/new": {"get": deepcopy(d["paths"]["/health"]["get"])}}),
    "a new parameter": lambda d: operation(d)["parameters"].append(
        {"in": "query", "name": "q", "schema": {"type": "string"}}
    ),
    "a looser bound": lambda d: operation(d)["parameters"][1]["schema"].update(maximum=500),
    "a bound less": lambda d: operation(d)["parameters"][1]["schema"].pop("maximum"),
    "a new field that may be sent": lambda d: body(d)["properties"].update(owner={"type": "string"}),
    "a field less is needed": lambda d: body(d)["required"].clear(),
    "a new value that may be sent": lambda d: body(d)["properties"]["overlap"]["enum"].append("allow"),
    "numbers where integers were sent": lambda d: body(d)["properties"].update(
        retries={"anyOf": [{"type": "number"}, {"type": "null"}]}
    ),
    "a new kind of target": lambda d: body(d)["properties"]["target"]["oneOf"].append(
        {"type": "object", "title": "New", "properties": {"type": {"const": "new"}}}
    ),
    "a new field in the answer": lambda d: job(d)["properties"].update(owner={"type": "string"}),
    "a new state in the answer": lambda d: job(d)["properties"]["state"]["enum"].append("broken"),
    "a shape with another name": lambda d: job(d).update(title="JobShape"),
    "other words": lambda d: operation(d).update(summary="Make a job", description="now"),
    "a new refusal": lambda d: operation(d)["responses"].update({"429": {"description": "too many"}}),
}


@pytest.mark.parametrize("change", BREAKING)
def test_it_sees_what_breaks_callers(change: str) -> None:
    found = differences(DOCUMENT, changed(BREAKING[change]))
    assert [one for one in found if one.breaking], found


@pytest.mark.parametrize("change", HARMLESS)
def test_it_lets_pass_what_breaks_nobody(change: str) -> None:
    found = differences(DOCUMENT, changed(HARMLESS[change]))
    assert not [one for one in found if one.breaking], found


def test_it_finds_no_difference_to_itself() -> None:
    assert differences(DOCUMENT, deepcopy(DOCUMENT)) == []


@pytest.mark.parametrize(
    ("old", "new", "may"),
    [
        ("1.4.0", "1.5.0", False),
        ("1.4.0", "2.0.0", True),
        ("0.1.0", "0.1.9", False),
        ("0.1.0", "0.2.0", True),
    ],
)
def test_it_lets_a_new_major_version_break(old: str, new: str, may: bool) -> None:
    before = {"info": {"version": old}}
    assert may_break(before, {"info": {"version": new}}) is may


def test_the_application_breaks_nobody_who_reads_the_document_in_the_docs() -> None:
    old, new = json.loads(SNAPSHOT.read_text(encoding="utf-8")), application().openapi()
    found = [str(one) for one in differences(old, new) if one.breaking]
    assert not found or may_break(old, new), "\n".join(found)
