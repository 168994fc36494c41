"""Every field that the API describes, with every kind of hostile value, on one control plane.

In the suite each field gets one value of each kind, another one in each field; with
TENFOLD_HOSTILE=all (`./dev soak hostile`) it gets all of them, and the control plane is looked at
after each request.
"""

import json
import os
from collections.abc import Generator, Sequence
from zlib import crc32

import pytest

from hostile.plane import API, Plane, Watch
from hostile.wire import Wire
from tests.rigs.hostile.generator import Case, Description, Field
from tests.rigs.hostile.progress import tell
from tests.rigs.hostile.values import KINDS, Value, values

ALL = os.environ.get("TENFOLD_HOSTILE") == "all"
BATCH = 1 if ALL else 40
"""Requests between two looks at the whole control plane."""
SENDERS = {"tokens": "admin", "nodes": "operator", "objects": "admin"}
"""The least role that gets past the guard, by resource; elsewhere a member."""


@pytest.fixture(scope="module")
def links(plane: Plane) -> tuple[str, ...]:
    """Symbolic links in a place that everybody can reach, to places that teams cannot."""
    folder = plane.root / "links"
    folder.mkdir(mode=0o755)
    for name, target in (("state", plane.folder.path), ("self", folder), ("none", "/nowhere")):
        (folder / name).symlink_to(target)
    (folder / "loop").symlink_to(folder / "loop")
    return tuple(str(folder / name) for name in ("state", "self", "none", "loop", "state/run"))


@pytest.fixture(scope="module")
def described(plane: Plane) -> Description:
    with plane.wire("admin", "red") as admin:
        schema = admin.get(f"{API}/schema/openapi.json").json()
        node = admin.get(f"{API}/nodes").json()["nodes"][0]["id"]
        job = admin.post(f"{API}/jobs", {"command": ["true"], "team": "red"}).json()["id"]
    return Description(schema, {"job_id": job, "node_id": node, "token_id": "t-none"})


@pytest.fixture
def senders(plane: Plane) -> Generator[dict[str, Wire], None, None]:
    made = {role: plane.wire(role, "red") for role in ("member", "operator", "admin")}
    yield made
    for one in made.values():
        one.close()


def sender_of(operation: str, senders: dict[str, Wire]) -> Wire:
    parts = operation.partition(f"{API}/")[2].split("/")
    return senders[SENDERS.get(parts[0], "member")]


def drawn(field: Field, found: Sequence[Value]) -> list[Value]:
    """Return one value of each kind, another one for each field."""
    if ALL:
        return list(found)
    # The fields of a batch are those of one job, which get all kinds.
    kinds = ("nul", "type") if field.path[:2] == ("jobs", 0) else KINDS
    chosen: list[Value] = []
    for kind in kinds:
        of_kind = [one for one in found if one.kind == kind]
        if of_kind:
            place = crc32(f"{field.operation} {field.where} {field.name} {kind}".encode())
            chosen.append(of_kind[place % len(of_kind)])
    return chosen


def jobs_in(body: bytes) -> int:
    """Return how many jobs an answer to a submission acknowledges."""
    told = json.loads(body)
    rows = told.get("jobs", [told])
    return sum(one.get("count") or 1 for one in rows)


def attack(case: Case, senders: dict[str, Wire], watch: Watch) -> list[str]:
    """Send one request; return what is wrong with its answer."""
    wire = sender_of(case.operation, senders)
    if case.field == "follow":
        # `1` and `true` are good values: the stream that they open has no end.
        answer = wire.ask_status(case.method, case.target)
    else:
        answer = wire.ask_again(case.method, case.target, case.body, *case.headers)
    if answer.status >= 500 or not answer.status:
        return [f"answered {answer.status} {answer.body[:300]!r}: {case.line()}"]
    if answer.status >= 300:
        return []
    is_submitted = case.operation == f"post {API}/jobs"
    sent = len(case.body) + len(case.target) + sum(len(value) for _, value in case.headers)
    jobs = jobs_in(answer.body) if is_submitted else 0
    watch.count(sent, jobs)
    return []


def test_the_good_requests_that_are_spoiled_are_good(plane: Plane, described: Description):
    bodies: dict[str, list[object]] = {}
    for field in described.fields():
        if field.where == "body" and not field.path:
            bodies.setdefault(field.operation, []).append(field.base)
    assert len(bodies) >= 4
    for operation, bases in bodies.items():
        method, _, path = operation.partition(" ")
        with plane.wire("admin", "red") as admin:
            for base in bases:
                body = json.dumps(base).encode()
                answer = admin.ask(method.upper(), path, body)
                # What the description names is not there, and no object store runs.
                absent = (
                    *("no-such-node", "no-such-job", "no-such-shell", "shell-not-running"),
                    *("no-such-model", "bad-model-reference", "no-such-service", "objects-off"),
                )
                is_good = answer.status in (200, 201) or answer.code() in absent
                assert is_good, (operation, base, answer)


def test_no_value_of_any_field_stops_it_fills_it_or_meets_a_bug(
    plane: Plane,
    described: Description,
    links: tuple[str, ...],
    senders: dict[str, Wire],
    watch: Watch,
):
    found, fields = list(values(links)), described.fields()
    wrong: list[str] = []
    sent = 0
    batch: list[Case] = []
    for place, field in enumerate(fields):
        tell(f"{sent:,} requests, {place} of {len(fields)} fields")
        for case in described.cases(field, drawn(field, found)):
            wrong += attack(case, senders, watch)
            batch.append(case)
            sent += 1
            if len(batch) >= BATCH:
                wrong += _with_batch(watch.alive(), batch)
                batch = []
        assert not wrong, "\n".join(wrong[:20])
    wrong += _with_batch(watch.wrong(), batch)
    assert not wrong, "\n".join(wrong[:20])
    assert sent > 6 * len(fields)
    plane.cancel_all()
    assert watch.wrong() == []
    _put_back(plane)


def _with_batch(wrong: list[str], batch: list[Case]) -> list[str]:
    if not wrong:
        return []
    return [*wrong, "after one of:", *(case.line() for case in batch)]


def _put_back(plane: Plane) -> None:
    with plane.wire("admin", "red") as admin:
        nodes = [one["id"] for one in admin.get(f"{API}/nodes").json()["nodes"]]
        told = admin.post(f"{API}/nodes", {"nodes": nodes, "verb": "uncordon"})
    assert told.status == 200, told
