"""The client is as the document says: made anew it would be the same, and it has a method for everything."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from typing import Any

import pytest

from noonday.client import AsyncNoondayClient, NoondayClient
from noonday.client.calling import Group, address, operation
from tools.client import CLIENT, FOLDERS, SNAPSHOT, sources
from tools.client_operations import operations

DOCUMENT = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
MADE = sources(DOCUMENT)


def shape_of(source: str) -> str:
    """What Python sees of it, without the order of the imports, which is a matter of style."""
    tree = ast.parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = sorted((node.module or "", alias.name) for node in imports for alias in node.names)
    rest = [node for node in tree.body if not isinstance(node, ast.ImportFrom)]
    return f"{names}{ast.dump(ast.Module(rest, []))}"


@pytest.mark.parametrize("path", sorted(MADE))
def test_it_is_fresh(path: str) -> None:
    assert shape_of((CLIENT / path).read_text(encoding="utf-8")) == shape_of(MADE[path]), "run `make openapi`"


def test_it_has_no_file_left_over() -> None:
    there = {f"{folder}/{path.name}" for folder in FOLDERS for path in (CLIENT / folder).glob("*.py")}
    assert there == {path for path in MADE if "/" in path}


@pytest.mark.parametrize("kind", [NoondayClient, AsyncNoondayClient])
def test_it_has_a_method_for_every_operation_that_is_not_of_yesterday(kind: Any) -> None:
    client = kind("http://localhost")
    missing = [
        node["operationId"]
        for path, item in DOCUMENT["paths"].items()
        for node in item.values()
        if not node.get("deprecated") and node["tags"][0] not in ("v1", "documents")
        if not callable(getattr(getattr(client, node["tags"][0], None), _method(node), None))
    ]
    assert missing == []
    assert len(list(operations(DOCUMENT))) > 60


def _method(node: Any) -> str:
    return str(node["operationId"]).removeprefix(f"{node['tags'][0]}_")


def test_methods_say_what_they_do_and_take() -> None:
    with NoondayClient("http://localhost") as client:
        assert (client.jobs.create.__doc__ or "").startswith("Create a job.")
        assert list(inspect.signature(client.jobs.read).parameters) == ["job"]
        assert isinstance(type(client.jobs).create, operation)
        assert isinstance(client.jobs, Group)


def test_addresses_are_quoted() -> None:
    assert address("/jobs/{job}", job="a/b?c#d%e") == "/jobs/a%2Fb%3Fc%23d%25e"
    assert address("/hook/{path}", slashes="path", path="a/b c") == "/hook/a/b%20c"
    for bad in ("", ".", ".."):
        with pytest.raises(ValueError, match="cannot be part of an address"):
            address("/jobs/{job}", job=bad)
    with pytest.raises(ValueError, match="cannot be part of an address"):
        address("/hook/{path}", slashes="path", path="a/../../jobs")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_it_brings_nothing_of_the_server_with_it() -> None:
    code = "import sys, noonday.client; print(*sorted(sys.modules))"
    loaded = python(code).stdout.split()
    assert "noonday.client.client" in loaded
    ours = [name for name in loaded if name.startswith("noonday.") and not name.startswith("noonday.client")]
    foreign = {"fastapi", "pydantic", "sqlalchemy", "uvicorn", "structlog", "redis", "aiohttp"} & set(loaded)
    assert (ours, foreign) == ([], set())


def test_it_says_what_to_install_where_its_only_need_is_missing() -> None:
    code = "import sys; sys.modules['httpx2'] = None; import noonday.client"
    done = python(code)
    assert done.returncode != 0
    assert "pip install 'noonday[client]'" in done.stderr
