from __future__ import annotations

from typing import Any

import pytest

import noonday.targets
from noonday.domain.errors import Invalid
from noonday.domain.outcome import Failed
from noonday.domain.target import CommandTarget, FetchTarget, HttpTarget, PythonTarget, ServiceTarget, Target
from noonday.targets import NetworkPolicy, Targets, check_target
from tests.targets.hands import a_config, a_run

URL = "https://example.com/"


@pytest.mark.parametrize(
    "target",
    [
        HttpTarget(url=URL, headers={"Authorization": "Bearer x"}, body={"a": 1}, expected_status=(200, 404)),
        FetchTarget(url="http://127.0.0.1:8000/"),
        ServiceTarget(service="email-service", endpoint="/api/jobs/x?y=../z"),
        PythonTarget(task="package.module:function"),
        CommandTarget(argv=("true",), env={"A": "b=c"}, cpu_seconds=1, memory_mb=1),
    ],
)
def test_a_sound_target_passes(target: Target) -> None:
    check_target(target, NetworkPolicy())


@pytest.mark.parametrize(
    ("target", "field"),
    [
        (HttpTarget(url="ftp://example.com"), "target.url"),
        (HttpTarget(url=URL, method="TRACE"), "target"),
        (HttpTarget(url=URL, headers={"A": "secret\r\n"}), "target.headers"),
        (HttpTarget(url=URL, body={"a": float("inf")}), "target"),
        (HttpTarget(url=URL, expected_status=(99,)), "target.expected_status"),
        (FetchTarget(url="http://169.254.169.254/"), "target.url"),
        (FetchTarget(url=URL, headers={"Host": "x"}), "target.headers"),
        (ServiceTarget(service=" ", endpoint="/x"), "target.service"),
        (ServiceTarget(service="a", endpoint="//evil"), "target.endpoint"),
        (PythonTarget(task=""), "target.task"),
        (CommandTarget(argv=()), "target.argv"),
        (CommandTarget(argv=("a\x00",)), "target"),
        (CommandTarget(argv=("a",), env={"": "x"}), "target.env"),
        (CommandTarget(argv=("a",), cpu_seconds=0), "target.cpu_seconds"),
        (CommandTarget(argv=("a",), memory_mb=2**40), "target.memory_mb"),
    ],
)
def test_what_can_never_run_is_refused_by_its_field(target: Target, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_target(target, NetworkPolicy())
    assert caught.value.problems[0].field == field
    assert "secret" not in str(caught.value)


async def test_a_fault_of_ours_is_one_runs_failure_with_its_stack() -> None:
    broken: Any = HttpTarget(url=URL, headers=None)  # type: ignore[arg-type]  # as a damaged row might give it
    outcome = await Targets(a_config()).run(a_run(broken))
    assert isinstance(outcome, Failed)
    assert "AttributeError" in outcome.error
    assert outcome.stack


def test_the_public_names_are_there_and_sorted() -> None:
    assert noonday.targets.__all__ == sorted(noonday.targets.__all__)
    for name in noonday.targets.__all__:
        assert getattr(noonday.targets, name) is not None
    with pytest.raises(AttributeError):
        noonday.targets.nothing  # noqa: B018 - asking is the test


def test_an_empty_signing_secret_is_refused_and_none_is_shown() -> None:
    with pytest.raises(ValueError, match="secret"):
        a_config(signing_secret=b"")
    shown = repr(a_config(signing_secret=b"very secret indeed", previous_signing_secret=b"old one"))
    assert "very secret" not in shown
    assert "old one" not in shown
