"""`PATCH /api/v2/jobs/{job}`: RFC 7396, with the manners of PUT."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.api.patching import merged
from tests.api.caller import Api

HTTP = {
    "type": "http",
    "url": "https://example.com/run",
    "method": "PUT",
    "headers": {"Authorization": "Bearer s3cr3t", "X-Team": "sales"},
}


async def test_it_merges_objects_and_takes_away_with_null(api: Api) -> None:
    await api.make(
        name="digest", target=HTTP, config={"a": {"b": 1, "c": 2}, "password": "s3cr3t"}, tags=["x"]
    )
    patch = {
        "config": {"a": {"b": None, "d": 3}},
        "target": {"headers": {"X-Team": None, "X-Day": "1"}},
        "tags": None,
        "description": "new",
    }
    headers = {"Content-Type": "application/merge-patch+json", "If-Match": '"1"'}
    answer = await api.call("PATCH", "/api/v2/jobs/digest", patch, headers=headers)
    job = answer.json()
    assert (answer.status_code, answer.headers["ETag"]) == (200, '"2"')
    assert job["config"] == {"a": {"c": 2, "d": 3}, "password": "********"}
    assert (job["tags"], job["description"], job["target"]["method"]) == ([], "new", "PUT")
    stored = await api.stored("digest")
    assert stored.target.headers == {"Authorization": "Bearer s3cr3t", "X-Day": "1"}
    assert stored.config["password"] == "s3cr3t"


async def test_it_patches_a_schedule_within(sqlite_api: Api) -> None:
    await sqlite_api.make(name="digest", frequency="daily", time_config={"hour": 2, "minute": 30})
    answer = await sqlite_api.call("PATCH", "/api/v2/jobs/digest", {"time_config": {"hour": 3}})
    assert answer.json()["time_config"] == {"hour": 3, "minute": 30}
    assert answer.json()["next_run_at"] == "2027-01-02T03:30:00Z"


async def test_it_replaces_a_target_by_one_of_another_type(sqlite_api: Api) -> None:
    await sqlite_api.make(name="digest", target=HTTP)
    target = {"type": "service", "service": "email", "endpoint": "/x"}
    answer = await sqlite_api.call("PATCH", "/api/v2/jobs/digest", {"target": target})
    assert answer.status_code == 200, answer.text
    assert answer.json()["target"]["service"] == "email"


async def test_it_changes_nothing_with_an_empty_patch(sqlite_api: Api) -> None:
    job = await sqlite_api.make(name="digest", target=HTTP)
    answer = await sqlite_api.call("PATCH", "/api/v2/jobs/digest", {})
    assert answer.json() == job
    again = await sqlite_api.call("PATCH", "/api/v2/jobs/digest", job)
    assert again.json() == job


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"priority": 9}, "priority"),
        ({"colour": "red"}, "colour"),
        ({"target": {"colour": "red"}}, "target.colour"),
        ({"target": {"url": None}}, "target.url"),
        ({"target": {"type": "command"}}, "target.argv"),
        ({"target": "x"}, "target"),
        ({"config": []}, "config"),
        ({"config": {"token": "********"}}, "config.token"),
        ({"time_config": {"hour": 99}}, "time_config.hour"),
        ({"cron_expression": "nonsense"}, "cron_expression"),
        ({"name": "a/b"}, "name"),
    ],
    ids=str,
)
async def test_it_names_the_field_that_is_wrong(sqlite_api: Api, patch: dict[str, Any], field: str) -> None:
    await sqlite_api.make(name="digest", target=HTTP)
    answer = await sqlite_api.call("PATCH", "/api/v2/jobs/digest", patch)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == field
    assert (await sqlite_api.stored("digest")).revision == 1


@pytest.mark.parametrize("body", ["[]", "1", '"x"', "null", ""])
async def test_it_wants_an_object(sqlite_api: Api, body: str) -> None:
    await sqlite_api.make(name="digest")
    answer = await sqlite_api.call(
        "PATCH", "/api/v2/jobs/digest", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422


# The examples of RFC 7396, appendix A.
RFC = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("current", "patch", "expected"), RFC, ids=str)
def test_it_merges_as_the_rfc_shows(current: Any, patch: Any, expected: Any) -> None:
    assert merged(current, patch) == expected


_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_it_comes_to_rest_after_one_patch(current: Any, patch: Any) -> None:
    once = merged(current, patch)
    assert merged(once, patch) == once
