"""Log lines: JSON or for people, one per event, and never with a secret in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from noonday.telemetry.logs import configure


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def test_it_writes_one_json_object_per_line() -> None:
    out = io.StringIO()
    configure(level="info", form="json", stream=out)
    structlog.get_logger("noonday.engine").info("started", job_id="j", execution_id="e")
    logging.getLogger("library").warning("seen %s", "this", extra={"job_id": "k"})
    logging.getLogger("library").debug("not seen")
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["event"], first["job_id"], first["execution_id"], first["level"]) == (
        "started",
        "j",
        "e",
        "info",
    )
    assert (second["event"], second["job_id"], second["logger"]) == ("seen this", "k", "library")
    assert second["timestamp"].endswith("Z")


@pytest.mark.parametrize("form", ["json", "console"])
def test_it_never_writes_a_secret(form: str) -> None:
    out = io.StringIO()
    configure(form="json" if form == "json" else "console", stream=out)
    log = structlog.get_logger("noonday")
    log.info(
        "called https://u:s3cr3t@h/?token=s3cr3t",
        headers={"Authorization": "Bearer s3cr3t"},
        api_key="s3cr3t",
    )
    logging.getLogger("x").error("url %s", "postgresql://u:s3cr3t@h/db", extra={"password": "s3cr3t"})
    try:
        raise RuntimeError("cannot reach postgresql://u:s3cr3t@h/db")
    except RuntimeError:
        log.exception("failed")
    assert "s3cr3t" not in out.getvalue()
    assert "RuntimeError" in out.getvalue()


def test_it_lets_no_value_pretend_to_be_a_line() -> None:
    out = io.StringIO()
    configure(form="console", stream=out)
    structlog.get_logger("x").info("name\n2027 [info] forged", job="a\r\nb\x1b[31m")
    assert len(out.getvalue().splitlines()) == 1
    assert "\x1b" not in out.getvalue()


def test_it_writes_for_people_only_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    file, screen = io.StringIO(), Terminal()
    for stream in (file, screen):
        configure(form="auto", stream=stream)
        structlog.get_logger("x").info("hello")
    assert json.loads(file.getvalue())["event"] == "hello"
    assert "hello" in screen.getvalue()
    assert not screen.getvalue().startswith("{")
