"""The description of the API is true: what is drawn from it never meets a bug."""

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import booleans
from litestar import Litestar
from litestar.testing import TestClient
from schemathesis import GenerationMode

from tenfold.server.openapi import described

Client = TestClient[Litestar]
MODES = {GenerationMode.POSITIVE: 12, GenerationMode.NEGATIVE: 6}
"""How many requests are drawn for each operation: good ones, and ones that are wrong."""
ENDLESS = ("/events", "/logs")
"""Drawn with `follow` off: more may always come."""
KNOWN = {"job_id": "a-1", "node_id": "n1", "token_id": "t-none", "key_id": "none", "team": "red"}
PINNED = Path(__file__).with_name("api.json")


def schema_of(app: Litestar) -> dict[str, Any]:
    return described(app.openapi_schema.to_schema())


def test_every_route_is_described_and_every_error_is_a_problem(app: Litestar, member: Client):
    paths = schema_of(app)["paths"]
    assert "/api/v1/jobs/{job_id}/why" in paths
    for path, item in paths.items():
        for operation in item.values():
            content = operation["responses"]["default"]["content"]
            assert list(content) == ["application/problem+json"], path
    body = paths["/api/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]
    assert "oneOf" in body["schema"]
    served = member.get("/api/v1/schema/openapi.json")
    assert served.json()["paths"].keys() == paths.keys()


def test_what_is_sent_and_answered_is_what_it_was_when_it_was_reviewed(app: Litestar):
    """Clients of other versions are out there: a change of the API is made on purpose.

    `api.json` has a line for each operation. After a change that is meant, write it anew with
    what this test compares.
    """
    pinned: dict[str, Any] = json.loads(PINNED.read_text())
    written = as_lines(operations(schema_of(app)))
    for name, operation in json.loads(written).items():
        assert operation == pinned.get(name), name
    assert written == PINNED.read_text()


def operations(schema: dict[str, Any]) -> dict[str, Any]:
    """Return parameters, body and answers of every operation, whatever their types are called."""

    def whole(part: Any) -> Any:
        if isinstance(part, list):
            return [whole(each) for each in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return whole(schema["components"]["schemas"][part["$ref"].rpartition("/")[2]])
        is_told = isinstance(part.get("type"), str) or "schema" in part
        words = ("title", "description") if is_told else ()
        return {
            key: sorted(each) if key == "required" and isinstance(each, list) else whole(each)
            for key, each in part.items()
            if key not in words
        }

    found: dict[str, Any] = {}
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            answers = whole(operation["responses"])
            found["problem"] = answers.pop("default")
            parts = {"answers": answers}
            for part in ("parameters", "requestBody"):
                if part in operation:
                    parts[part] = whole(operation[part])
            found[f"{method} {path}"] = parts
    return found


def as_lines(found: dict[str, Any]) -> str:
    lines = [
        f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found)
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def test_nothing_that_is_drawn_from_the_description_meets_a_bug(
    app: Litestar, client: Client, token: Callable[..., str]
):
    client.headers["Authorization"] = f"Bearer {token('admin')}"
    client.post("/api/v1/jobs", json={"jobs": [{"command": ["true"], "name": "a"}] * 3})
    schema = schemathesis.openapi.from_dict(schema_of(app))
    seen: set[str] = set()

    def check(case: schemathesis.Case, is_there: bool) -> None:
        if is_there:
            known = {name: KNOWN.get(name, value) for name, value in case.path_parameters.items()}
            case.path_parameters = known
        answer = client.request(**asked_by(case))
        seen.add(f"{case.method} {case.path}")
        assert answer.status_code < 500, (case.method, case.path, answer.text)
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/problem+json", case.path

    for found in schema.get_all_operations():
        for mode, examples in MODES.items():
            with suppress(Unsatisfiable):
                strategy = found.ok().as_strategy(generation_mode=mode)
                drawn(check, strategy, examples)
    assert len(seen) == sum(len(item) for item in schema_of(app)["paths"].values())


def asked_by(case: schemathesis.Case) -> dict[str, Any]:
    """Return a drawn request for the client at hand, with its own token and no endless stream."""
    asked = case.as_transport_kwargs(base_url="http://testserver.local")
    if case.path.endswith(ENDLESS):
        asked["params"] = {**(asked.get("params") or {}), "follow": "false"}
    asked["headers"] = {
        key: value
        for key, value in dict(asked.get("headers") or {}).items()
        if key.lower() not in ("authorization", "content-length")
    }
    asked.pop("cookies", None)
    return asked


def drawn(check: Callable[..., None], strategy: Any, examples: int) -> None:
    settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )(given(strategy, booleans())(check))()
