"""`noonday key` and `noonday token`: what they make opens the door, and is printed once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from noonday.api.door.tokens import Known, Tokens, secret_key
from noonday.cli.serve import greeting
from noonday.clock import SystemClock
from noonday.control.keys import Keys
from noonday.domain.access import Caller, Role
from noonday.settings import load
from noonday.store.database import Database
from tests.cli.terminal import Terminal

SECRET = "bPzqGZ7V0HnJvOq6vR0z1H4sQxLk2m9d"


@pytest.fixture(autouse=True)
def env(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (
        "AUTH_ENABLED",
        "JWT_SECRET",
        "JWT_ISSUER",
        "JWT_AUDIENCE",
        "JWT_ROLE_CLAIM",
        "JWT_JWKS_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def caller(folder: Path, key: str) -> Caller | None:
    db = Database(f"sqlite:///{folder / '.noonday' / 'noonday.db'}")
    try:
        return asyncio.run(Keys(db, SystemClock()).caller(key))
    finally:
        db.close_now()


async def known(token: str) -> Caller:
    return await Tokens([Known(secret_key(SECRET))], load().token_rules, SystemClock()).caller(token)


def test_a_key_is_made_listed_and_revoked(cli: Terminal) -> None:
    made = cli("key", "create", "ada", "--role", "operator", "--expires", "90d")
    assert made.code == 0, made.err
    key = made.out.strip()
    assert key.startswith("nd_")
    assert "operator for ada" in made.err
    assert key not in made.err
    prefix = key.split("_")[1]
    listed = cli("key", "list")
    assert prefix in listed.out
    assert "in force" in listed.out
    assert key not in listed.out
    assert listed.err.strip() == "1 key"
    assert cli("key").out == listed.out
    [shown] = cli("key", "list", "--json").json["keys"]
    assert (shown["name"], shown["role"], shown["active"]) == ("ada", "operator", True)
    assert cli("key", "revoke", prefix).code == 2  # nobody can be asked
    gone = cli("key", "revoke", prefix, "--yes")
    assert gone.err.strip() == f"revoked the key {prefix} of ada"
    assert "revoked" in cli("key", "list").out
    assert cli("key", "revoke", "aaaaaaaa", "--yes").code == 3


def test_a_key_opens_the_door_with_its_role(cli: Terminal, folder: Path) -> None:
    made = cli("key", "create", "mail", "--role", "service", "--service", "email-service", "--json").json
    expected = Caller(name="mail", role=Role.SERVICE, service="email-service")
    assert caller(folder, made["key"]) == expected
    assert made["expires_at"] is None
    viewer = cli("key", "create", "eve").out.strip()
    assert caller(folder, viewer) == Caller(name="eve", role=Role.VIEWER)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("ada", "--role", "root"), "--role"),
        (("ada", "--role", "service"), "service"),
        (("ada", "--service", "email"), "service"),
        (("ada", "--expires", "soon"), "--expires"),
        (("ada", "--expires", "0s"), "--expires"),
        (("ada", "--expires", "999999999d"), "--expires"),
        (("", "--role", "admin"), "NAME"),
        (("a\nb",), "NAME"),
    ],
)
def test_it_names_what_is_wrong_with_a_key(cli: Terminal, words: tuple[str, ...], named: str) -> None:
    answer = cli("key", "create", *words)
    assert answer.code == 2
    assert named in answer.err
    assert answer.out == ""


async def test_a_token_says_who_holds_it(cli: Terminal, env: pytest.MonkeyPatch) -> None:
    env.setenv("JWT_SECRET", SECRET)
    answer = cli("token", "--role", "operator", "--name", "ada", "--expires", "1h")
    assert answer.code == 0, answer.err
    assert "good until" in answer.err
    assert await known(answer.out.strip()) == Caller(name="ada", role=Role.OPERATOR)
    answer = cli("token", "--role", "service", "--service", "email-service", "--json")
    assert await known(answer.json["token"]) == Caller(
        name="email-service", role=Role.SERVICE, service="email-service"
    )
    env.setenv("JWT_ISSUER", "https://idp.example")
    env.setenv("JWT_ROLE_CLAIM", "realm_access.roles")
    assert (await known(cli("token").out.strip())).role is Role.VIEWER


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--role", "root"), "--role"),
        (("--role", "service"), "--service"),
        (("--role", "admin", "--service", "email"), "--service"),
        (("--expires", "0"), "--expires"),
        (("--expires", "400d"), "--expires"),
        (("--name", " "), "--name"),
    ],
)
def test_it_names_what_is_wrong_with_a_token(
    cli: Terminal, env: pytest.MonkeyPatch, words: tuple[str, ...], named: str
) -> None:
    env.setenv("JWT_SECRET", SECRET)
    answer = cli("token", *words)
    assert answer.code == 2
    assert named in answer.err
    assert answer.out == ""


def test_a_token_needs_the_secret(cli: Terminal, env: pytest.MonkeyPatch) -> None:
    answer = cli("token")
    assert answer.code == 2
    assert "JWT_SECRET" in answer.err
    env.setenv("JWT_SECRET", "weak")
    assert cli("token").code == 2


@pytest.mark.usefixtures("folder")
def test_serve_says_how_open_it_is(env: pytest.MonkeyPatch) -> None:
    assert "open without sign-in, loopback only" in greeting(load())
    assert "open without sign-in beyond loopback" in greeting(load(host="0.0.0.0", allow_open=True))
    env.setenv("JWT_SECRET", SECRET)
    assert "asks for a key or a token" in greeting(load(host="0.0.0.0"))
    assert SECRET not in greeting(load())
