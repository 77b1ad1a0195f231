"""What a message on a channel becomes: the config of a run, whatever was published."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.trigger import MOST_BYTES, config_of, is_pattern

OWN = {"limit": 10, "source": "job"}


def test_an_object_overrides_the_jobs_config_field_by_field() -> None:
    assert config_of(OWN, '{"source": "message", "id": 7}', "new") == {
        "limit": 10,
        "source": "message",
        "id": 7,
    }
    assert config_of(OWN, "{}", "new") == OWN


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "hello",
            "[1, 2]",
            "7",
            "null",
            '"text"',
            "{",
            '{"a": NaN}',
            '{"a": -Infinity}',
            "\x00",
            "{} {}",
        ),
        *("[" * 100_000, '{"a":' * 1_000 + "1" + "}" * 1_000, '{"a":' * 60 + "1" + "}" * 60),
    ],
    ids=lambda text: repr(text[:12]),
)
def test_any_other_text_is_handed_on_as_it_is(text: str) -> None:
    made = config_of(OWN, text, "new")
    if len(text) <= MOST_BYTES:
        assert made == {**OWN, "message": text, "channel": "new"}
    assert made["message"] == text[:MOST_BYTES]


def test_what_is_too_long_is_cut_and_says_so() -> None:
    made = config_of(OWN, json.dumps({"a": "x" * MOST_BYTES}), "new")
    assert made["message_cut"] is True
    assert len(made["message"].encode()) == MOST_BYTES
    made = config_of({}, "ü" * MOST_BYTES, "new")
    assert made["message"] == "ü" * (MOST_BYTES // 2)


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()), st.text())
def test_it_never_fails_and_keeps_every_field_of_an_object(value: dict[str, Any], text: str) -> None:
    assert config_of(OWN, json.dumps(value), "new") == {**OWN, **value}
    assert set(config_of(OWN, text, "new")) >= {"limit", "source"}


@pytest.mark.parametrize(
    ("channel", "pattern"),
    [("content:new", False), ("content:*", True), ("a?c", True), ("[ab]c", True), ("a]b", False)],
)
def test_a_pattern_is_told_by_its_marks(channel: str, pattern: bool) -> None:
    assert is_pattern(channel) is pattern
