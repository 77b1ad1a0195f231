"""Which parts run in a process, and the commands that look at many of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from noonday.clock import SystemClock
from noonday.domain.errors import Invalid
from noonday.instance.callbacks import reachable
from noonday.settings import Settings, load
from noonday.store import instances, leadership, migrate
from noonday.store.database import Database
from noonday.store.instances import DRAINED, DRAINING, RUNNING, Instance
from tests.cli.terminal import Terminal
from tests.control.peers import KEY, an_instance


class TestRoles:
    @pytest.mark.parametrize(
        ("words", "roles"),
        [
            ([], "api,scheduler,worker"),
            (["--role", "api"], "api"),
            (["--role", "api,worker"], "api,worker"),
            (["--role", "Worker", "--role", "api, scheduler"], "worker,api,scheduler"),
            (["--role", "worker", "--role", "worker"], "worker"),
        ],
        ids=str,
    )
    def test_they_are_named_by_flags(self, cli: Terminal, words: list[str], roles: str) -> None:
        assert cli("config", "--json", *words).json["SCHEDULER_ROLES"]["value"] == roles

    def test_a_flag_wins_over_the_environment(self, cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCHEDULER_ROLES", "scheduler,worker")
        assert cli("config", "--json").json["SCHEDULER_ROLES"]["value"] == "scheduler,worker"
        assert cli("config", "--json", "--role", "api").json["SCHEDULER_ROLES"]["value"] == "api"

    @pytest.mark.parametrize("role", ["cook", "api;worker", ","])
    def test_others_are_refused(self, cli: Terminal, role: str) -> None:
        answer = cli("config", "--role", role)
        assert answer.code == 2
        assert answer.err.startswith("noonday: SCHEDULER_ROLES")

    def test_nothing_to_run_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SCHEDULER_ENABLED", "false")
        assert load().running_roles == load(roles="api,worker").running_roles == ("api",)
        with pytest.raises(Invalid, match=r"SCHEDULER_ROLES.*SCHEDULER_ENABLED=false"):
            load(roles="worker")

    def test_only_an_api_needs_a_safe_address(self) -> None:
        assert load(host="0.0.0.0", roles="worker").running_roles == ("worker",)
        with pytest.raises(Invalid, match="HOST"):
            load(host="0.0.0.0", roles="worker,api")


class TestCommands:
    @pytest.fixture
    def started(self, monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
        made: list[Settings] = []

        def run(settings: Settings) -> int:
            made.append(settings)
            return 0

        monkeypatch.setattr("noonday.cli.worker.run_instance", run)
        monkeypatch.setattr("noonday.cli.serve.run_instance", run)
        return made

    def test_each_starts_its_role(self, cli: Terminal, started: list[Settings]) -> None:
        said = [cli("worker", "-w", "3").err, cli("scheduler").err, cli("serve", "--role", "api,worker").err]
        assert [one.running_roles for one in started] == [("worker",), ("scheduler",), ("api", "worker")]
        assert started[0].workers == 3
        assert "worker alone" in said[0]
        assert "8060" not in said[0] + said[1]
        assert "on http://127.0.0.1:8060 · api and worker alone" in said[2]

    def test_many_processes_get_the_same_flags(self, cli: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
        given: list[object] = []

        def run(settings: Settings, command: list[str], count: int, *, hopeless: int) -> int:
            given.extend([command[1:], count, settings.instance_id, hopeless])
            return 0

        monkeypatch.setattr("noonday.cli.worker.run_processes", run)
        words = ["--db", "sqlite:///x.db", "-w", "2", "--instance-id", "crew", "--log-format", "json"]
        assert cli("worker", "--processes", "3", *words).code == 0
        flags = ["--database-url=sqlite:///x.db", "--log-format=json", "--workers=2"]
        assert given == [["-m", "noonday", "worker", *flags], 3, "crew", 2]

    @pytest.mark.parametrize("count", ["0", "-1", "1000", "many"])
    def test_it_refuses_a_wrong_number_of_processes(self, cli: Terminal, count: str) -> None:
        answer = cli("worker", f"--processes={count}")
        assert answer.code == 2
        assert "--processes" in answer.err


def test_a_callback_goes_only_where_it_can_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    near = an_instance("near", "api", host="here", url="http://127.0.0.1:8060")
    far = an_instance("far", "api", host="there", url="http://localhost:8060")
    public = replace(far, id="public", url="https://noonday.example")
    assert reachable([far, public, near, an_instance("mute", "worker")]) == [public.url, near.url]


class TestInstances:
    @pytest.fixture
    def db(self, cli: Terminal) -> Iterator[Database]:
        migrate.upgrade("sqlite:///.noonday/noonday.db")
        made = Database("sqlite:///.noonday/noonday.db")
        yield made
        made.close_now()

    @staticmethod
    def enter(db: Database, *those: Instance) -> None:
        now = SystemClock().now()
        for one in those:
            here = replace(one, started_at=now, heartbeat_at=now)
            db.write_now(lambda conn, here=here: instances.enter(conn, here))  # type: ignore[misc]  # a default

    def test_nobody_is_there(self, cli: Terminal, db: Database) -> None:
        assert "no instance runs on this database" in cli("instances").err
        assert "no worker is running" in cli("drain", "--wait").err
        assert cli("instances", "--json").json == {"instances": [], "leader": None}

    def test_it_shows_who_is_there_and_who_leads(self, cli: Terminal, db: Database) -> None:
        self.enter(db, an_instance("one", version="1.2"), an_instance("two", "worker", road="streams"))
        me = leadership.Candidate(name=KEY, holder="one", host="", pid=1, ttl=timedelta(minutes=1))
        db.write_now(lambda conn: leadership.take_term(conn, me, SystemClock().now()))
        answer = cli("instances")
        first = next(line for line in answer.out.splitlines() if line.startswith("one"))
        assert all(word in first for word in ("api,scheduler,worker", "◐ running", "★ leads", "1.2", "ago"))
        assert "2 alive; one leads in term 1" in answer.err
        shown = cli("instances", "--json").json
        assert shown["leader"] == {"id": "one", "term": 1}
        assert [(one["id"], one["road"]) for one in shown["instances"]] == [
            ("one", "database"),
            ("two", "streams"),
        ]

    def test_it_drains_waits_and_resumes(self, cli: Terminal, db: Database) -> None:
        self.enter(db, an_instance("one", state=DRAINED), an_instance("two", state=DRAINED))
        answer = cli("drain", "two", "--wait", "--json")
        assert (answer.code, [one["id"] for one in answer.json["instances"]]) == (0, ["two"])
        assert "nothing runs any more" in answer.err
        assert db.read_now(lambda conn: instances.wanted(conn, "two")) == DRAINING
        assert "draining: one, two" in cli("drain").err
        assert "taking work again: one, two" in cli("resume").err
        assert db.read_now(lambda conn: instances.wanted(conn, "two")) == RUNNING

    def test_it_waits_no_longer_than_it_is_told(self, cli: Terminal, db: Database) -> None:
        self.enter(db, an_instance("one", state=DRAINING))
        answer = cli("drain", "--wait", "--timeout", "1s")
        assert answer.code == 124
        assert "still draining" in answer.err

    def test_it_knows_no_other_instance(self, cli: Terminal, db: Database) -> None:
        answer = cli("drain", "nobody")
        assert (answer.code, "hint: noonday instances" in answer.err) == (3, True)


class TestEngine:
    def test_the_whole_way(self, cli: Terminal) -> None:
        for name, tag in (("a", "red"), ("b", "blue")):
            cli("jobs", "add", name, "--cron", "0 2 1 1 *", "--url", "http://a.example/", "--tag", tag)
        assert "no job is left on version 1" in cli("engine", "status").err
        assert (
            "2 jobs would move to version 1: a, b"
            in cli("engine", "move", "--all", "--to", "1", "--dry-run").err
        )
        assert cli("engine", "move", "a", "b", "--to", "1", "--json").json["count"] == 2
        refused = cli("engine", "finish")
        assert refused.code == 4
        assert "2 jobs are still of version 1: a, b" in refused.err
        assert "hint: noonday engine move --all --to 2" in refused.err
        assert "1 job moved to version 2: a" in cli("engine", "move", "--tag", "red", "--to", "2").err
        shown = cli("engine", "status", "--json", "--hours", "2").json
        assert [(one["scheduler_version"], one["jobs"]) for one in shown["engines"]] == [(1, 1), (2, 1)]
        cli("engine", "move", "--all", "--to", "2")
        assert cli("engine", "finish").code == cli("engine", "finish").code == 0
        assert "finished at" in cli("engine", "status").err
        back = cli("engine", "move", "a", "--to", "1")
        assert (back.code, "--undo" in back.err) == (4, True)
        assert "may be used again" in cli("engine", "finish", "--undo").err
        assert "nothing to undo" in cli("engine", "finish", "--undo").err

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (["move", "--to", "2"], 2),
            (["move", "x", "--all", "--to", "2"], 2),
            (["move", "--all", "--to", "3"], 2),
            (["move", "--all"], 2),
            (["move", "nobody", "--to", "2"], 3),
            (["status", "--hours", "0"], 2),
        ],
        ids=str,
    )
    def test_it_refuses_what_makes_no_sense(self, cli: Terminal, words: list[str], code: int) -> None:
        cli("migrate")
        assert cli("engine", *words).code == code
