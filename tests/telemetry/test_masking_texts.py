"""Secrets of a job in what its runs write: masked whole, in parts, and nowhere else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonday.domain.outcome import Cancelled, Completed, Failed, Lost, Outcome, Result, TimedOut
from noonday.domain.target import CommandTarget, HttpTarget, Target
from noonday.telemetry.logs import MASK
from noonday.telemetry.masking import Veil, masked, secrets_of
from tests.factories import a_job, an_execution

SECRETS = ("abab", "bcb.", "a" * 9)


def secrets(target: Target, **job: object) -> set[str]:
    made = a_job(target=target, **job)
    return set(secrets_of(made, an_execution(job=made, config={"api_key": "of the run"})))


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (CommandTarget(argv=("run", "--token", "hunter22", "--pin=12")), {"hunter22"}),
        (CommandTarget(argv=("run", "--password=pass word")), {"pass word"}),
        (CommandTarget(argv=("run",), env={"DB_PASSWORD": "hush-hush", "LANG": "C.UTF-8"}), {"hush-hush"}),
        (HttpTarget(url="https://me:topsecret@example.com/?token=abcd&page=2"), {"topsecret", "abcd"}),
        (HttpTarget(url="https://example.com", headers={"Authorization": "Bearer x"}), {"Bearer x"}),
        (HttpTarget(url="https://example.com", body={"secret": ["one-", 12345]}), {"one-", "12345"}),
    ],
)
def test_what_is_masked_elsewhere_is_a_secret(target: Target, found: set[str]) -> None:
    assert secrets(target) == found | {"of the run"}


def test_a_key_of_several_lines_is_masked_line_by_line() -> None:
    key = "-----BEGIN KEY-----\nMIIabc\n--\n-----END KEY-----\n"
    assert secrets(CommandTarget(argv=("x",)), config={"private_key": key}) == {
        *("-----BEGIN KEY-----", "MIIabc", "-----END KEY-----", "of the run"),
    }


@given(st.lists(st.text(alphabet="abc.\n", max_size=12), max_size=12))
def test_it_does_not_matter_where_the_pieces_are_cut(pieces: list[str]) -> None:
    veil = Veil(SECRETS)
    shown = "".join(map(veil.through, pieces)) + veil.rest()
    whole = "".join(pieces)
    assert not any(secret in shown for secret in SECRETS)
    parts = shown.split(MASK)
    assert re.fullmatch(".+?".join(map(re.escape, parts)), whole, re.DOTALL)
    if not any(secret in whole for secret in SECRETS):
        assert shown == whole


def test_without_secrets_nothing_waits() -> None:
    veil = Veil(())
    assert (veil.through("any"), veil.rest(), veil.over("any")) == ("any", "", "any")


@pytest.mark.parametrize(
    "outcome",
    [
        Completed(result=Result(output_tail="hunter22")),
        Failed(error="no hunter22", stack="in hunter22", result=Result(output_tail="hunter22")),
        TimedOut(after=a_job().timeout, result=Result(output_tail="hunter22")),
        Cancelled(result=Result(output_tail="hunter22")),
        Lost(detail="gone"),
    ],
)
def test_ends_are_told_without_them(outcome: Outcome) -> None:
    job = a_job(target=CommandTarget(argv=("x",), env={"TOKEN": "hunter22"}))
    shown = masked(outcome, job, an_execution(job=job))
    assert type(shown) is type(outcome)
    assert "hunter22" not in str(shown)
