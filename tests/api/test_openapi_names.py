"""Schemas have names that people can read, and every reference follows."""

from __future__ import annotations

from typing import Any

import pytest

from noonday.api.openapi_names import renamed

REF = "#/components/schemas/"


def test_two_models_of_one_name_are_told_apart_by_the_last_word_of_their_module() -> None:
    document: dict[str, Any] = {
        "paths": {"/a": {"schema": {"$ref": f"{REF}noonday__api__load_shift__Move"}}},
        "components": {
            "schemas": {
                "noonday__api__load_shift__Move": {"type": "object"},
                "noonday__api__operating__Move": {"items": {"$ref": f"{REF}noonday__api__load_shift__Move"}},
            }
        },
    }
    made = renamed(document)
    assert made["components"]["schemas"] == {
        "LoadShiftMove": {"type": "object"},
        "OperatingMove": {"items": {"$ref": f"{REF}LoadShiftMove"}},
    }
    assert made["paths"]["/a"]["schema"]["$ref"] == f"{REF}LoadShiftMove"
    assert "noonday__api__operating__Move" in document["components"]["schemas"], "the original is left alone"


def test_the_way_of_a_schema_is_said_only_where_there_are_two() -> None:
    document = {
        "components": {
            "schemas": {
                "Job-Input": {},
                "Job-Output": {"discriminator": {"mapping": {"lone": f"{REF}Lone-Output"}}},
                "Lone-Output": {},
            }
        }
    }
    schemas = renamed(document)["components"]["schemas"]
    assert schemas.keys() == {"JobInput", "JobOutput", "Lone"}
    assert schemas["JobOutput"]["discriminator"]["mapping"] == {"lone": f"{REF}Lone"}


def test_a_name_that_would_stand_for_two_is_refused() -> None:
    with pytest.raises(ValueError, match="two schemas would have one name"):
        renamed({"components": {"schemas": {"a__b__Move": {}, "BMove": {}}}})


def test_a_document_without_schemas_is_left_as_it_is() -> None:
    assert renamed({"paths": {}}) == {"paths": {}}
