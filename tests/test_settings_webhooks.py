"""The secret of webhooks: one or two, never shown, and too weak or empty ones stop the start."""

from __future__ import annotations

import pytest

from noonday.domain.errors import Invalid
from noonday.domain.signatures import secrets_of
from noonday.settings import Settings, load

NAME = "SCHEDULER_WEBHOOK_SECRET"


@pytest.fixture(autouse=True)
def env(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for line in Settings.model_construct().sources():
        monkeypatch.delenv(line.name, raising=False)
        monkeypatch.delenv(f"{line.name}_FILE", raising=False)
    return monkeypatch


def test_two_secrets_may_be_given(env: pytest.MonkeyPatch) -> None:
    env.setenv(NAME, "the-old-secret-of-before, the-new-secret-from-now-on")
    given = load().webhook_secrets
    assert given is not None
    old, new = secrets_of(given.get_secret_value())
    assert (old.text, new.text) == (b"the-old-secret-of-before", b"the-new-secret-from-now-on")


@pytest.mark.parametrize(
    "text", ["short", "whsec_AAAA", "whsec_not*base64*at*all*******", " ", "one,two,three"]
)
def test_a_bad_one_stops_the_start_without_being_shown(env: pytest.MonkeyPatch, text: str) -> None:
    env.setenv(NAME, text)
    with pytest.raises(Invalid) as refused:
        load()
    [problem] = refused.value.problems
    assert problem.field == NAME
    assert not text.strip() or text not in problem.message
