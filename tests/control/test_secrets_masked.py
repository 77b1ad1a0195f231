"""Secrets are shown as a mask; a mask that comes back keeps what is stored."""

from __future__ import annotations

from typing import Any

import pytest

from noonday.control.secrets import MASK, looks_secret, redacted, restored
from noonday.domain.errors import Invalid

SECRET = [
    "Authorization", "authorization", "X-Api-Key", "apiKey", "API_KEY", "password", "db_password",
    "dbPassword", "passwd", "PASSPHRASE", "secret", "client_secret", "clientSecret", "token",
    "access_token", "accessToken", "X-Auth-Token", "Cookie", "Set-Cookie", "credentials", "private_key",
    "aws_secret_access_key", "jwt", "X-Auth", "Proxy-Authorization", "bearer", "pwd", "signing_key",
]  # fmt: skip
PLAIN = [
    "name", "url", "author", "max_tokens", "tokens", "tokenizer", "key", "monkey", "keyboard", "primary_key",
    "compass", "bypass", "Accept", "Content-Type", "authority", "X-Request-Id", "size",
]  # fmt: skip


@pytest.mark.parametrize("key", SECRET)
def test_it_knows_a_secret_by_its_name(key: str) -> None:
    assert looks_secret(key)


@pytest.mark.parametrize("key", PLAIN)
def test_it_shows_what_is_no_secret(key: str) -> None:
    assert not looks_secret(key)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": "x", "size": 1}, {"password": MASK, "size": 1}),
        (
            {"password": 1234, "token": None, "secret": True},
            {"password": MASK, "token": None, "secret": True},
        ),
        ({"a": [{"api_key": "x"}]}, {"a": [{"api_key": MASK}]}),
        ({"credentials": {"user": "u", "pass": ["x"]}}, {"credentials": {"user": MASK, "pass": [MASK]}}),
        ("postgresql://u:p@h/db", f"postgresql://u:{MASK}@h/db"),
        ("https://h/p?token=x&page=2", f"https://h/p?token={MASK}&page=2"),
        (["curl", "--token", "x", "--size", "3"], ["curl", "--token", MASK, "--size", "3"]),
        (
            ["--password=x", "-H", "Authorization: Bearer x"],
            [f"--password={MASK}", "-H", f"Authorization: {MASK}"],
        ),
        ({"password": ""}, {"password": ""}),
        ("plain: text", "plain: text"),
    ],
    ids=str,
)
def test_it_masks_secrets_and_keeps_the_shape(value: Any, shown: Any) -> None:
    assert redacted(value) == shown
    assert restored(shown, value, "config") == value


def test_it_takes_a_new_secret_beside_a_masked_one() -> None:
    stored = {"token": "one", "password": "two", "gone": 1}
    assert restored({"token": MASK, "password": "new"}, stored, "config") == {
        "token": "one",
        "password": "new",
    }


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"token": MASK}, "config.token"),
        ({"a": {"b": [1, MASK]}}, "config.a.b[1]"),
        ({"other": f"https://h/?token={MASK}"}, "config.other"),
        ({"plain": MASK}, "config.plain"),
    ],
)
def test_it_refuses_a_mask_with_nothing_behind_it(given: Any, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        restored(given, {"plain": "seen by all"}, "config")
    assert refused.value.problems[0].field == field
