"""Settings of access: weak secrets and keys that are none stop the start, and none of them is ever shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from joserfc.jwk import ECKey, OKPKey, RSAKey

from noonday.domain.errors import Invalid
from noonday.settings import Settings, load

GOOD = "bPzqGZ7V0HnJvOq6vR0z1H4sQxLk2m9d"
RSA, EC = RSAKey.generate_key(2048), ECKey.generate_key("P-256")


@pytest.fixture(autouse=True)
def env(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """None of the caller's own settings."""
    for name in (*(line.name for line in Settings.model_construct().sources()), "MAX_WORKERS"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)
    return monkeypatch


def refused() -> dict[str, str]:
    with pytest.raises(Invalid) as error:
        load()
    return {problem.field: problem.message for problem in error.value.problems}


@pytest.mark.parametrize(
    "secret",
    [
        "x",
        "tiny-0ne",
        GOOD[:-1],
        "é" * 15,
        "a" * 64,
        "abababababababababababababababababab",
        "secret" * 8,
        "your-256-bit-secret-your-256-bit-secret",
        "a-string-secret-at-least-256-bits-long",
        "super-secret-jwt-token-with-at-least-32-characters-long",
        "your-super-secret-jwt-key-change-in-production",
        "please-CHANGE_ME-before-you-deploy-this-thing",
        "09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7",
        "django-insecure-9f8h3298fh2938fh2938fh2398fh",
        "0123456789abcdef0123456789abcdef",
        RSA.as_pem(private=False).decode(),
        RSA.as_pem(private=True).decode(),
    ],
)
def test_a_weak_secret_stops_the_start_and_is_not_shown(env: pytest.MonkeyPatch, secret: str) -> None:
    env.setenv("JWT_SECRET", secret)
    found = refused()
    assert found.keys() == {"JWT_SECRET"}
    assert found["JWT_SECRET"].startswith("******** is ")
    assert secret not in found["JWT_SECRET"]


def test_an_empty_secret_stops_the_start(env: pytest.MonkeyPatch, tmp_path: Path) -> None:
    env.setenv("JWT_SECRET", " ")
    assert "is empty" in refused()["JWT_SECRET"]
    env.delenv("JWT_SECRET")
    (tmp_path / "secret").touch()
    env.setenv("JWT_SECRET_FILE", str(tmp_path / "secret"))
    assert "shorter than 32 bytes" in refused()["JWT_SECRET"]
    (tmp_path / "secret").write_text(GOOD)
    assert load().auth


@pytest.mark.parametrize(
    "secret", [GOOD, "correct horse battery staple, and one more", "0f1e2d3c4b5a6978" * 2]
)
def test_a_good_secret_closes_the_api_on_any_address(env: pytest.MonkeyPatch, secret: str) -> None:
    env.setenv("HOST", "0.0.0.0")
    assert "HOST" in refused()
    env.setenv("JWT_SECRET", secret)
    settings = load()
    assert settings.auth
    assert secret not in str(settings.sources())
    assert secret not in repr(settings)


@pytest.mark.parametrize("one_line", [False, True])
@pytest.mark.parametrize("key", [RSA, EC], ids=["RS256", "ES256"])
def test_it_takes_a_public_key(env: pytest.MonkeyPatch, key: RSAKey | ECKey, one_line: bool) -> None:
    pem = key.as_pem(private=False).decode()
    env.setenv("JWT_PUBLIC_KEY", pem.replace("\n", "\\n") if one_line else pem)
    assert load().auth


@pytest.mark.parametrize(
    ("pem", "words"),
    [
        ("ssh-rsa AAAAB3NzaC1yc2E", "is no key"),
        (GOOD, "is no key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "cannot be read"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "cannot be read"),
        ("-----BEGIN NOTHING-----\nAAAA\n-----END NOTHING-----", "cannot be read"),
        (RSA.as_pem(private=True).decode(), "private key"),
        (EC.as_pem(private=True).decode(), "private key"),
        (ECKey.generate_key("P-384").as_pem(private=False).decode(), "another curve"),
        (OKPKey.generate_key("Ed25519").as_pem(private=False).decode(), "another kind"),
        (
            "-----BEGIN PUBLIC KEY-----\n"
            "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAK9v0Nc6ZpXtT8aHhoHkr7SUnK5CY5dV\n"
            "aPfqhQ5mXcAx3cS9aQXTRmpUzmNRWQmLmHWM7TwNrCYJvQxNyjpAZbcCAwEAAQ==\n"
            "-----END PUBLIC KEY-----",
            "2048",
        ),
    ],
)
def test_what_is_no_public_key_stops_the_start(env: pytest.MonkeyPatch, pem: str, words: str) -> None:
    env.setenv("JWT_PUBLIC_KEY", pem)
    found = refused()
    assert found.keys() == {"JWT_PUBLIC_KEY"}
    assert words in found["JWT_PUBLIC_KEY"]
    assert pem not in found["JWT_PUBLIC_KEY"]


def test_keys_that_are_fetched_are_fetched_safely_and_for_one_audience(env: pytest.MonkeyPatch) -> None:
    env.setenv("JWT_JWKS_URL", "http://idp.example/keys")
    found = refused()
    assert found.keys() == {"JWT_ISSUER", "JWT_AUDIENCE", "JWT_JWKS_URL"}
    assert "https://" in found["JWT_JWKS_URL"]
    env.setenv("JWT_ISSUER", "https://idp.example")
    env.setenv("JWT_AUDIENCE", "jobs")
    assert refused().keys() == {"JWT_JWKS_URL"}
    for url in ("https://idp.example/keys", "http://127.0.0.1:9000/keys", "http://localhost/keys"):
        env.setenv("JWT_JWKS_URL", url)
        rules = load().token_rules
        assert (rules.issuer, rules.audience, rules.role_claim) == ("https://idp.example", "jobs", "role")
    env.setenv("JWT_JWKS_URL", "http://idp.internal/keys")
    env.setenv("SCHEDULER_ALLOW_OPEN", "true")
    assert load().auth


def test_tokens_of_its_own_name_it_twice() -> None:
    rules = load().token_rules
    assert (rules.issuer, rules.audience) == ("noonday", "noonday")


def test_it_is_open_unless_told_otherwise(env: pytest.MonkeyPatch) -> None:
    assert not load().auth
    env.setenv("AUTH_ENABLED", "true")
    env.setenv("HOST", "0.0.0.0")
    assert load().auth


def test_settings_without_keys_load_no_cryptography() -> None:
    """Every command reads the settings first, and most are over in a moment."""
    program = "import sys, noonday.settings as s; s.load(); print('joserfc' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
