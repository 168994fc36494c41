"""The page on the HTTP API is true: its routes, parameters, codes and limits are those of the code.

What can only be seen from outside, such as how long a slow client is waited for, is in
`tests/hostile` and `tests/unit/server`.
"""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from docs.console_blocks import ROOT
from tenfold.decide.place.capacity_gate import MAY_CHANGE
from tenfold.journal.read_tables import KEY_KEPT_MS
from tenfold.live.executor import LOG_TAIL_BYTES
from tenfold.live.inbox import Inbox
from tenfold.live.local.attempt.logs import BYTES_MOST
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.world import TEAM_BYTES_MAX
from tenfold.model.api.jobs import ATTEMPTS_LISTED, ATTEMPTS_SHOWN, PAGE_MAX, Attempt, DryRun, Job
from tenfold.model.api.nodes import NODES_MAX
from tenfold.model.api.tokens import DAYS, DAYS_MAX
from tenfold.model.job.job import ENDED
from tenfold.model.job.submission import ARRAY_MOST
from tenfold.model.units import HOUR
from tenfold.report.reasons.registry import shown_code
from tenfold.server import problems
from tenfold.server.app import make_app
from tenfold.server.auth.access import PUBLIC, routes_of
from tenfold.server.auth.tokens import Role
from tenfold.server.background.follower import QUEUE_COUNTED_MAX, QUEUE_MAX
from tenfold.server.dependencies import DEPENDENCIES_ALL_MAX, DEPENDENCIES_MAX
from tenfold.server.inbox_client import STARTING
from tenfold.server.openapi import described
from tenfold.server.routes.dry_run import NODES_SHOWN_MAX
from tenfold.server.routes.events import HEARTBEAT_S, LAG_MAX
from tenfold.server.runtime import admission
from tenfold.server.runtime.budgets import Limits
from tenfold.server.runtime.connections import connection, handshake, parser
from tenfold.server.runtime.runtime import SLOW_S, Runtime, ServerDeps
from tenfold.server.runtime.state_dir import LocalLogs
from tenfold.server.submissions import BATCH_MAX, EVENT_BYTES_MAX, MEMBERS_SHOWN_MAX

PAGE = (ROOT / "docs" / "reference" / "http-api.md").read_text()
SERVER = ROOT / "src" / "tenfold" / "server"
UNSERVED = {("GET", "/api/v1/schema"), ("GET", "/api/v1/schema/{}")}
"""Of the framework: the first is named beside the description itself, the other finds nothing."""
LOOP_REASONS = ("live/inbox.py", "server/runtime/runtime.py", "server/runtime/health.py")
"""Files whose reasons are answered with 503."""
OF_PARSERS = {(422, "missing-key"), (422, "unknown-key"), (422, "wrong-value")}
"""Codes of findings, which `tests/docs/test_pages.py` holds against the source."""
OF_FLEET = {(422, shown_code(code)) for code in (*MAY_CHANGE, "above-limit")} | {
    (422, "gpus-not-divisible")
}
"""Codes of jobs that can never start; all of them are documented."""
OTHER = {
    (400, "wrong-value"),
    (408, "request-timeout"),
    (431, "headers-too-large"),
    (503, "loop-failed"),
    (503, STARTING),
    (404, "shell-no-member"),
    (409, "shell-not-running"),
    (409, "shell-failed"),
    (409, "shell-unsupported"),
}
"""Given elsewhere: by the framework for parameters, by the connection, by the loop and by the
executor."""


def section(head: str) -> str:
    return re.split(r"\n##+ ", PAGE.split(f"\n{head}\n")[1])[0]


def table(head: str) -> list[list[str]]:
    """Return the rows of the first table under a heading."""
    lines = [line for line in section(head).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def plain(path: str) -> str:
    """Return a path whatever its parameters are called."""
    return re.sub(r"\{[^}]*\}", "{}", path)


@pytest.fixture
def app(tmp_path: Path) -> Any:
    deps = ServerDeps(
        journal=str(tmp_path / "journal.db"),
        executor=lambda: LocalExecutor(str(tmp_path / "run")),
        logs=LocalLogs(tmp_path / "run"),
        wait_s=1.0,
    )
    return make_app(Runtime(deps).control)


def documented_routes() -> dict[tuple[str, str], list[str]]:
    rows = {}
    for route, *cells in table("## Routes"):
        method, _, path = route.strip("`").partition(" ")
        rows[method, plain(path)] = cells
    return rows


def test_every_route_is_documented_with_its_role(app: Any):
    served = {
        (method, plain(path)): "none" if role == PUBLIC else role.name
        for path, methods, role in routes_of(app)
        if isinstance(role, Role) or role == PUBLIC
        for method in methods
        if method not in ("HEAD", "OPTIONS")
    }
    documented = {route: cells[0] for route, cells in documented_routes().items()}
    assert documented == {route: role for route, role in served.items() if route not in UNSERVED}
    assert "`GET /api/v1/schema` returns the same" in PAGE


def test_every_parameter_of_a_route_is_documented_with_it(app: Any):
    paths = described(app.openapi_schema.to_schema())["paths"]
    documented = documented_routes()
    seen = 0
    for path, item in paths.items():
        for method, operation in item.items():
            cells = documented[method.upper(), plain(path)]
            names = {one["name"] for one in operation.get("parameters", ()) if one["in"] != "path"}
            named = set(re.findall(r"`([A-Za-z_-]+)(?:=1)?`", cells[2]))
            assert names <= named, (method, path)
            if "requestBody" not in operation:
                choices = {word for word in re.findall(r"\(([^)]*)\)", cells[2])}
                words = {word for choice in choices for word in re.findall(r"`(\w+)`", choice)}
                assert named - words == names, (method, path)
            seen += len(names)
    assert seen > 20


def test_the_status_of_every_success_is_documented(app: Any):
    paths = described(app.openapi_schema.to_schema())["paths"]
    unusual = {
        (method.upper(), plain(path)): int(status)
        for path, item in paths.items()
        for method, operation in item.items()
        for status in operation["responses"]
        if status not in ("200", "default")
    }
    [sentence] = re.findall(r"^Requests that succeed return status 200, except (.*)$", PAGE, re.M)
    documented: dict[tuple[str, str], int] = {}
    waiting: list[tuple[str, str]] = []
    for method, path, status in re.findall(r"`([A-Z]+) (\S+)`|with (\d+)", sentence):
        if status:
            documented |= dict.fromkeys(waiting, int(status))
            waiting = []
        else:
            waiting.append((method, plain(path)))
    assert documented == unusual


def given_codes() -> set[tuple[int, str]]:
    """Return every status and code that the server's source gives together."""
    found = {(status, code) for status, (code, _) in problems._CODES.items()}
    found |= {(status, code) for code, status in problems._REFUSED.items()}
    found |= {(429, code) for code in admission._CODES.values()}
    for path in SERVER.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                reasons = _reasons(function)
                for node in ast.walk(function):
                    if isinstance(node, ast.Call):
                        found |= _given(node, reasons)
    for name in LOOP_REASONS:
        for node in ast.walk(ast.parse((SERVER.parent / name).read_text())):
            if isinstance(node, ast.Call) and _name(node) == "Reason":
                found |= {(503, code) for code in _strings(node.args[:1])}
    return found


Kept = list[tuple[int, str, list[str]]]
"""Variables of a function with reasons in them: line, name and codes."""


def _reasons(function: ast.AST) -> Kept:
    found = [
        (node.lineno, node.targets[0].id, _codes(node.value, []))
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    return sorted(found)


def _given(call: ast.Call, reasons: Kept) -> set[tuple[int, str]]:
    match _name(call), call.args:
        case "Finding", _:
            codes = [code for key in call.keywords if key.arg == "code" for code in _of(key)]
            return {(422, code) for code in codes}
        case "_unauthenticated", [reason, *_]:
            return {(401, code) for code in _codes(reason, reasons)}
        case "refusal", [reason, *_]:
            codes = _codes(reason, reasons)
            return {(problems._REFUSED.get(code, 503), code) for code in codes}
        case "Problem", [status, reason, *_]:
            codes = _codes(reason, reasons)
            return {(number, code) for number in _numbers([status]) for code in codes}
        case _:
            return set()


def _of(key: ast.keyword) -> list[str]:
    return _strings([key.value])


def _codes(node: ast.expr, reasons: Kept) -> list[str]:
    if isinstance(node, ast.Name):
        before = [one for one in reasons if one[1] == node.id and one[0] <= node.lineno]
        return before[-1][2] if before else []
    is_reason = isinstance(node, ast.Call) and _name(node) == "Reason"
    return _strings(node.args[:1]) if is_reason and isinstance(node, ast.Call) else []


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _strings(nodes: list[ast.expr]) -> list[str]:
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def _numbers(nodes: list[ast.expr]) -> list[int]:
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, int)]


def documented_codes() -> set[tuple[int, str]]:
    found: set[tuple[int, str]] = set()
    for status, codes in table("## Errors"):
        named = re.sub(r"\[[^]]*\]\([^)]*\)|in `after`|`(Transfer|Content)\S*`", "", codes)
        found |= {(int(status), code) for code in re.findall(r"`([a-z-]+)`", named)}
    return found


def test_every_code_stands_beside_its_status_and_no_other():
    given, documented = given_codes(), documented_codes()
    assert len(given) > 30
    assert sorted(given - documented) == []
    assert sorted(OF_FLEET - documented) == []
    assert sorted(documented - given - OF_PARSERS - OF_FLEET - OTHER) == []


def test_limits_are_those_of_the_code():
    mib = 20
    expected = {
        "request body": f"{admission.BODY_BYTES_MAX >> mib} MiB",
        "submissions per request": f"{BATCH_MAX:,}",
        "jobs per request, counting members of arrays": f"{ARRAY_MOST:,}",
        "total size of the events created by one request (array members counted in full)": (
            f"{EVENT_BYTES_MAX >> mib} MiB"
        ),
        "total size of the submission events of a team's unfinished jobs": (
            f"{TEAM_BYTES_MAX >> mib} MiB; then `backlog-full`"
        ),
        "requests waiting for the scheduling loop": f"{Inbox()._most:,}",
        "nodes per request": f"{NODES_MAX:,}",
        "jobs or attempts per page": f"{PAGE_MAX:,}",
        "bytes of a log per response": "4 MiB; no limit with `follow`",
        "time and size of a request": (
            f"headers: {connection.HEAD_S:.0f} s after the connection opens,"
            f" {parser.HEAD_BYTES >> 10} KiB and {parser.HEADERS_MAX} headers;"
            f" body: {connection.BODY_S:.0f} s"
        ),
        "TLS handshake": f"{handshake.HANDSHAKE_S:.0f} s",
        "idle time between two requests on a connection": f"{connection.IDLE_S} s",
        "response or stream that the client does not read": (
            f"{admission.READ_S:.0f} s per {admission.PIECE_BYTES >> 10} KiB, and"
            f" {connection.UNREAD_S:.0f} s for the rest once the response is complete;"
            " then the connection is closed."
            " Streams can be resumed with `Last-Event-ID` or `offset`"
        ),
        "events that a stream may fall behind": (
            f"{LAG_MAX:,}; then it is closed with `event: lagged`"
        ),
        "dependencies of a job, counting members of arrays": (
            f"{DEPENDENCIES_MAX:,}; {DEPENDENCIES_ALL_MAX:,} for all jobs of a request"
        ),
        "waiting `why`, `eta` and dry-run requests": (
            f"{admission.EXPENSIVE_WAITING} in total,"
            f" {admission.EXPENSIVE_WAITING * Limits().team_share:.0f} per team,"
            f" {admission.EXPENSIVE_WAITING * Limits().token_share:.0f} per token;"
            " one runs at a time"
        ),
    }
    assert dict(table("## Limits")) == expected


def test_budgets_and_their_defaults_are_those_of_the_code():
    kept = connection.FILES_KEPT + connection.SPARE + connection.ACCEPTS_AT_ONCE
    documented = {
        row[0].strip("`").replace("-", "_"): row[1] for row in table("### Shared client limits")
    }
    assert documented.pop("connections") == (
        f"four fifths of (open file limit `ulimit -n` minus {kept}), at most {connection.MOST:,}"
    )
    quarter = ", at most a quarter of the connections"
    for name in ("unauthenticated_connections", "streams"):
        assert documented[name].endswith(quarter), name
    numbers = {
        name: float(text.removesuffix(quarter).replace(",", ""))
        for name, text in documented.items()
    }
    defaults = {name: float(getattr(Limits(), name)) for name in Limits.__struct_fields__}
    assert defaults.pop("connections") == 0
    assert numbers == defaults


@pytest.mark.parametrize(
    "sentence",
    [
        f"(default {LOG_TAIL_BYTES:,})",
        f"each member keeps {BYTES_MOST >> 20} MiB",
        f"the ids of the first {MEMBERS_SHOWN_MAX:,} `members`",
        f"up to {NODES_SHOWN_MAX} `nodes`",
        f"{ATTEMPTS_SHOWN} by default and {ATTEMPTS_LISTED} in a list",
        f"at most {PAGE_MAX:,} |",
        f"a comment is sent every {HEARTBEAT_S:.0f} s",
        f"lists up to {problems.ERRORS_MAX} errors",
        f"Keys are kept for {KEY_KEPT_MS // HOUR} hours",
        f"no pending write has taken more than {SLOW_S:.0f} s",
        f"With more than {QUEUE_MAX} pending jobs",
        f"With more than {QUEUE_COUNTED_MAX:,} pending jobs",
        f"`days` (default {DAYS}, at most {DAYS_MAX:,})",
        f"expire after {DAYS} days",
    ],
)
def test_figures_in_sentences_are_those_of_the_code(sentence: str):
    assert sentence in PAGE


def test_keys_of_answers_are_those_of_the_code():
    def keys(head: str) -> set[str]:
        return {key for row in table(head) for key in re.findall(r"`(\w+)`", row[0])}

    assert keys("## A job") == set(Job.__struct_fields__)
    assert keys("### Dry run") == set(DryRun.__struct_fields__)
    [attempts] = [row[1] for row in table("## A job") if row[0] == "`attempts`"]
    assert set(Attempt.__struct_fields__) <= set(re.findall(r"`(\w+)`", attempts))
    [states] = [row[1] for row in table("## A job") if row[0] == "`state`"]
    assert set(ENDED) <= set(re.findall(r"`(\w+)`", states))


def test_roles_are_those_of_the_code():
    assert [row[0].strip("`") for row in table("## Authentication and roles")] == [
        role.name for role in Role
    ]


def test_every_metric_is_documented_and_no_other():
    source = "\n".join(path.read_text() for path in (SERVER / "metrics").rglob("*.py"))
    source += (SERVER / "background" / "shadow.py").read_text()
    given = set(re.findall(r'"(tenfold_[a-z_]+)"', source))
    named = {name for row in table("## Metrics") for name in re.findall(r"tenfold_[a-z_]+", row[0])}
    assert len(given) > 30
    assert {name.removesuffix("_total") for name in named} == {
        name.removesuffix("_total") for name in given
    }
