"""Settings: every name works, a wrong value is named, secrets stay hidden, nothing is open by accident."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from noonday.domain.errors import Invalid
from noonday.settings import Settings, is_loopback, load, parse_duration


@pytest.fixture(autouse=True)
def env(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """None of the caller's own settings."""
    names = [line.name for line in Settings.model_construct().sources()]
    for name in (*names, "MAX_WORKERS"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)
    return monkeypatch


def problems(refused: pytest.ExceptionInfo[Invalid]) -> dict[str, str]:
    return {problem.field: problem.message for problem in refused.value.problems}


def test_it_starts_with_nothing_set() -> None:
    settings = load()
    assert (settings.host, settings.port, settings.workers) == ("127.0.0.1", 8060, 10)
    assert settings.database_url == "sqlite:///.noonday/noonday.db"
    assert (settings.redis, settings.base_url) == (None, "http://127.0.0.1:8060")
    assert settings.check_interval == timedelta(seconds=60)
    assert settings.lease_ttl == timedelta(seconds=30)
    assert {line.origin for line in settings.sources()} == {"default"}


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("HOST", "localhost", "host", "localhost"),
        ("PORT", "0", "port", 0),
        ("DATABASE_URL", "postgresql://u:p@h/d", "database_url", "postgresql://u:p@h/d"),
        ("REDIS_URL", "rediss://h:6380/1", "redis_url", "rediss://h:6380/1"),
        ("LOG_LEVEL", "WARN", "log_level", "warning"),
        ("LOG_FORMAT", "JSON", "log_format", "json"),
        ("MAX_WORKERS", "5", "workers", 5),
        ("SCHEDULER_WORKER_POOL_SIZE", "7", "workers", 7),
        ("SCHEDULER_JOB_TIMEOUT", "3600", "job_timeout", timedelta(hours=1)),
        ("SCHEDULER_ENABLED", "false", "scheduler_enabled", False),
        ("SCHEDULER_V2_ENABLED", "False", "v2_enabled", False),
        ("SCHEDULER_QUEUE_BATCH_SIZE", "20", "queue_batch_size", 20),
        ("SCHEDULER_QUEUE_PREFIX", "mine", "queue_prefix", "mine"),
        ("SCHEDULER_LEADER_TTL", "30s", "leader_ttl", timedelta(seconds=30)),
        ("SCHEDULER_LEADER_KEY", "boss", "leader_key", "boss"),
        ("SCHEDULER_CB_THRESHOLD", "3", "cb_threshold", 3),
        ("SCHEDULER_CB_TIMEOUT", "1m", "cb_timeout", timedelta(minutes=1)),
        ("SCHEDULER_INSTANCE_ID", "pod-1", "instance_id", "pod-1"),
        ("JOB_MAX_INSTANCES", "2", "job_max_instances", 2),
        ("JOB_COALESCE", "true", "job_coalesce", True),
        ("JOB_MISFIRE_GRACE_TIME", "300", "job_misfire_grace", timedelta(minutes=5)),
        ("JOB_REPLACE_EXISTING_INSTANCE", "True", "job_replace_existing", True),
        ("SCHEDULE_CHECK_INTERVAL", "2m", "check_interval", timedelta(minutes=2)),
        ("SCHEDULER_LEASE_TTL", "15", "lease_ttl", timedelta(seconds=15)),
        ("SCHEDULER_LOOKAHEAD", "500ms", "lookahead", timedelta(milliseconds=500)),
        ("SHUTDOWN_GRACE", "10s", "shutdown_grace", timedelta(seconds=10)),
        ("HISTORY_KEEP_RUNS", "50", "history_keep_runs", 50),
        ("HISTORY_KEEP_DAYS", "7", "history_keep_days", 7),
        ("SCHEDULER_METRICS_NAMESPACE", "jobs", "metrics_namespace", "jobs"),
        ("PUBLIC_URL", "https://jobs.example/", "public_url", "https://jobs.example"),
        ("ALLOWED_HOSTS", "a.example, b.example", "allowed_hosts", ("a.example", "b.example")),
        ("NETWORK_MODE", "strict", "network_mode", "strict"),
        ("NETWORK_ALLOW", "10.0.0.0/8,api.example", "network_allow", ("10.0.0.0/8", "api.example")),
        ("NETWORK_DENY", "192.168.0.0/16", "network_deny", ("192.168.0.0/16",)),
        ("TASK_MODULES", "app.jobs", "task_modules", ("app.jobs",)),
    ],
)
def test_it_reads_each_name(env: pytest.MonkeyPatch, name: str, text: str, field: str, value: object) -> None:
    env.setenv(name, text)
    settings = load()
    assert getattr(settings, field) == value
    assert {line.origin for line in settings.sources()} == {"default", f"environment {name}"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "65536"),
        ("PORT", "web"),
        ("DATABASE_URL", "mysql://h/d"),
        ("REDIS_URL", "http://h"),
        ("LOG_LEVEL", "loud"),
        ("LOG_FORMAT", "xml"),
        ("SCHEDULER_ENABLED", "perhaps"),
        ("SCHEDULER_LEADER_TTL", "30x"),
        ("SCHEDULER_LEADER_TTL", "0"),
        ("SCHEDULER_LEASE_TTL", "-5"),
        ("SCHEDULER_LEASE_TTL", "99999d"),
        ("JOB_MAX_INSTANCES", "0"),
        ("HISTORY_KEEP_DAYS", "-1"),
        ("PUBLIC_URL", "jobs.example"),
        ("PUBLIC_URL", "http://"),
        ("NETWORK_MODE", "loose"),
        ("SCHEDULER_METRICS_NAMESPACE", "a-b"),
        ("SCHEDULER_QUEUE_PREFIX", "a b"),
        ("SCHEDULER_QUEUE_PREFIX", "a" * 101),
        ("EMAIL_SERVICE_URL", "localhost:7006"),
    ],
)
def test_it_names_a_wrong_value(env: pytest.MonkeyPatch, name: str, text: str) -> None:
    env.setenv(name, text)
    with pytest.raises(Invalid) as refused:
        load()
    assert problems(refused).keys() == {name}
    assert repr(text) in problems(refused)[name]


def test_it_names_all_wrong_values_at_once(env: pytest.MonkeyPatch) -> None:
    env.setenv("PORT", "x")
    env.setenv("MAX_WORKERS", "0")
    with pytest.raises(Invalid) as refused:
        load()
    assert problems(refused).keys() == {"PORT", "SCHEDULER_WORKER_POOL_SIZE / MAX_WORKERS"}


def test_a_flag_beats_the_environment(env: pytest.MonkeyPatch) -> None:
    env.setenv("PORT", "1")
    settings = load(port=2, host=None)
    assert (settings.port, settings.host) == (2, "127.0.0.1")
    assert {line.name: line.origin for line in settings.sources()}["PORT"] == "flag"
    with pytest.raises(Invalid, match="prot: is not a setting"):
        load(prot=2)


def test_an_empty_variable_counts_as_absent(env: pytest.MonkeyPatch) -> None:
    env.setenv("REDIS_PASSWORD", "")
    env.setenv("PORT", " ")
    settings = load(redis_host="cache")
    assert (settings.port, settings.redis) == (8060, "redis://cache:6379/0")


def test_it_builds_one_url_for_redis(env: pytest.MonkeyPatch) -> None:
    env.setenv("REDIS_HOST", "::1")
    env.setenv("REDIS_PORT", "6380")
    env.setenv("REDIS_DB", "2")
    env.setenv("REDIS_PASSWORD", "p@ss/word")
    assert load().redis == "redis://:p%40ss%2Fword@[::1]:6380/2"
    env.setenv("REDIS_URL", "redis://other")
    assert load().redis == "redis://other"


def test_it_collects_the_addresses_of_services(env: pytest.MonkeyPatch) -> None:
    env.setenv("EMAIL_SERVICE_URL", "http://localhost:7006/")
    env.setenv("BIG_DATA_SERVICE_URL", "https://u:s3cr3t@data")
    settings = load()
    assert settings.services["email-service"] == "http://localhost:7006"
    lines = {line.name: line.value for line in settings.sources()}
    assert lines["BIG_DATA_SERVICE_URL"] == "https://u:********@data"


def test_it_answers_under_its_public_name(env: pytest.MonkeyPatch) -> None:
    env.setenv("PUBLIC_URL", "https://jobs.example:8443/noonday/")
    env.setenv("ALLOWED_HOSTS", "jobs")
    settings = load()
    assert settings.allowed_hosts == ("jobs", "jobs.example")
    assert settings.base_url == "https://jobs.example:8443/noonday"


def test_it_hides_secrets(env: pytest.MonkeyPatch) -> None:
    env.setenv("DATABASE_URL", "postgresql://u:s3cr3t@h/d")
    env.setenv("REDIS_PASSWORD", "s3cr3t")
    settings = load()
    assert "s3cr3t" not in str(settings.sources())
    assert "s3cr3t" not in repr(settings)
    env.setenv("DATABASE_URL", "mysql://u:s3cr3t@h/d")
    with pytest.raises(Invalid) as refused:
        load()
    assert "s3cr3t" not in str(refused.value)


def test_it_reads_a_secret_from_a_file(env: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://u:p@h/d\n")
    env.setenv("DATABASE_URL_FILE", str(tmp_path / "url"))
    settings = load()
    assert settings.database_url == "postgresql://u:p@h/d"
    origins = {line.name: line.origin for line in settings.sources()}
    assert origins["DATABASE_URL"] == f"file {tmp_path / 'url'}"
    env.setenv("REDIS_PASSWORD_FILE", str(tmp_path / "none"))
    with pytest.raises(Invalid, match="REDIS_PASSWORD_FILE"):
        load()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.5", "example.com"])
def test_it_is_not_open_to_the_network_by_accident(env: pytest.MonkeyPatch, host: str) -> None:
    env.setenv("HOST", host)
    with pytest.raises(Invalid) as refused:
        load()
    message = problems(refused)["HOST"]
    assert repr(host) in message
    assert "SCHEDULER_ALLOW_OPEN=true" in message
    env.setenv("SCHEDULER_ALLOW_OPEN", "true")
    assert load().host == host


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("localhost", True), ("127.0.0.1", True), ("127.5.5.5", True), ("::1", True), ("[::1]", True),
     ("0.0.0.0", False), ("localhost.example", False), ("10.0.0.1", False), ("", False)],
)  # fmt: skip
def test_it_knows_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("5m", 300), ("1h", 3600), ("1h30m", 5400), ("2d", 172800), ("250ms", 0.25),
     ("1.5s", 1.5), ("0", 0), (" 5M ", 300)],
)  # fmt: skip
def test_it_reads_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "s", "5 minutes", "5x", "-5", "1h-5m", "nan", "1e3", "4000d"])
def test_it_refuses_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|ten years"):
        parse_duration(text)


def test_origins_of_pages_are_written_as_browsers_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONTEND_URL", "https://App.example.com:443, http://localhost:3000/")
    assert load().frontend_urls == ("https://app.example.com", "http://localhost:3000")
    monkeypatch.setenv("FRONTEND_URL", "https://app.example.com/path")
    with pytest.raises(Invalid, match=r"FRONTEND_URL.*must be an origin"):
        load()
