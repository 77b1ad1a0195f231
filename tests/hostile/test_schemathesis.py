"""Every operation of the OpenAPI document, with data that fits it and data that does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from httpx2 import Response
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from requests import Request
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from noonday.api.services import ApiServices
from noonday.api.waiting import wished
from noonday.control.system import LocalStatus
from noonday.store.database import Database
from tests.api.caller import StillClock, check_token
from tests.factories import NOON
from tests.hostile.stranger import BASE, Furniture, Stranger, stranger
from tools.openapi import application

EXAMPLES = 4
BORDERS = 7
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
DOCUMENT: dict[str, Any] = application().openapi()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = {found.ok().label: found.ok() for found in SCHEMA.get_all_operations() if isinstance(found, Ok)}
EXAMPLES_OF = {
    f"{method.upper()} {path}": content["examples"]
    for path, item in DOCUMENT["paths"].items()
    for method, node in item.items()
    for content in node.get("requestBody", {}).get("content", {}).values()
    if "examples" in content
}
MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


@pytest.fixture(scope="module")
def caller(sqlite_template: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    path = tmp_path_factory.mktemp("schemathesis") / "noonday.db"
    path.write_bytes(sqlite_template.read_bytes())
    db = Database(f"sqlite:///{path}")
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    services = ApiServices(db=db, clock=StillClock(), status=lambda: status, check_token=check_token)
    with stranger(services) as made:
        for name in ("nightly", "report"):  # the document's examples speak of them
            made.send("POST", "/api/v2/jobs", json={"name": name, "url": "https://example.com/"})
        yield made
    db.close_now()


@pytest.mark.parametrize("label", OPERATIONS)
def test_it_answers_as_its_document_says(caller: Stranger, label: str) -> None:
    operation, there = OPERATIONS[label], caller.furnish()
    found: list[str] = []

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def attack(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=data.draw(st.sampled_from(MODES))))
        aimed = bool(data.draw(st.integers(0, 3)))
        if aimed:
            _aim(case, there, data.draw(st.integers(0, 9)))
        found.extend(_faults(caller, case, [] if aimed else [negative_data_rejection]))

    for case in _borders(operation):
        found += _faults(caller, case, [negative_data_rejection])
    attack()
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("label", EXAMPLES_OF)
def test_it_takes_its_own_examples(caller: Stranger, label: str) -> None:
    for name, example in EXAMPLES_OF[label].items():
        case = OPERATIONS[label].Case(body=example["value"], media_type="application/json")
        case.path_parameters = dict.fromkeys(re.findall(r"{(\w+)}", case.path), "")
        _aim(case, caller.furnish(), 1)
        answer = _call(caller, case)
        case.validate_response(answer, checks=CHECKS)
        assert answer.status_code not in (400, 422), f"{name}: {answer.text}"


def test_it_knows_every_operation() -> None:
    assert len(OPERATIONS) == sum(len(item) for item in DOCUMENT["paths"].values()) >= 100
    assert len(EXAMPLES_OF) >= 30


def _borders(operation: Any) -> Iterator[Case[Any]]:
    """Some of the values at the borders of what the document allows, on both sides of them."""
    config = SCHEMA.config.generation_for(operation=operation)
    cases = SCHEMA.iter_coverage_cases(operation, generation_modes=MODES, generation_config=config)
    own = [case for case in cases if case.method == operation.method.upper()]
    yield from own[:: max(1, len(own) // BORDERS)]


def _faults(caller: Stranger, case: Case[Any], more: list[Any]) -> list[str]:
    if wished(str(case.headers.get("Prefer"))):
        del case.headers["Prefer"]  # nothing runs here: it would wait in vain
    answer = _call(caller, case)
    refused = answer.status_code in (412, 413)  # whatever else is wrong
    try:
        case.validate_response(answer, checks=CHECKS if refused else CHECKS + more)
    except (Failure, FailureGroup) as failure:
        return [str(failure)]
    return []


def _aim(case: Case[Any], there: Furniture, which: int) -> None:
    """At something that is there."""
    for name in case.path_parameters or ():
        if name in there.paths:
            case.path_parameters[name] = there.paths[name][which % len(there.paths[name])]
    run = str((case.path_parameters or {}).get("execution"))
    if "/callback" in case.path and run in there.tokens:
        case.headers["X-Scheduler-Callback-Token"] = there.tokens[run]


def _call(caller: Stranger, case: Case[Any]) -> Response:
    plain = Request(**case.as_transport_kwargs(base_url=BASE)).prepare()
    return caller.send(plain.method or "", plain.url or "", headers=dict(plain.headers), content=plain.body)
