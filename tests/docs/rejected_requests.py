"""Thirty impossible or odd requests, and what a control plane answers to each.

Run it to print the table, or with `--write` to write `docs/reference/rejected-requests.md`:

    PYTHONPATH=tests .venv/bin/python tests/docs/rejected_requests.py
"""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from litestar import Litestar
from litestar.testing import TestClient
from msgspec.structs import replace

from patience import until
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.terms import Window
from tenfold.model.policy.governance import ANY, GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, Millis
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.fake_executor import FakeExecutor, FakeProcesses

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "rejected-requests.md"
H100 = [
    Node(
        id=NodeId(f"hx-{number:02}"),
        pool=PoolId("h100"),
        site=SiteId("fra"),
        accelerator="H100-80G-SXM",
        gpus=8,
        cpus_milli=96_000,
        memory_mib=1_024 * 1_024,
        rack=f"r{number // 4}",
        tags=("EU",),
    )
    for number in range(8)
]
L4 = [
    replace(
        H100[0],
        id=NodeId(f"l-{number}"),
        pool=PoolId("l4"),
        accelerator="L4",
        gpus=4,
        cpus_milli=32_000,
        memory_mib=128 * 1_024,
        rack="r9",
        tags=("US", "shared"),
    )
    for number in range(4)
]
POLICY = Policy(
    name="governed",
    govern=GovernanceRules(
        teams=(
            TeamRules(id=TeamId("red"), quota={ANY: 80_000}),
            TeamRules(id=TeamId("small"), quota={ANY: 8_000}, borrow={ANY: 0}),
            TeamRules(id=TeamId("swiss"), quota={ANY: 8_000}, residency=("CH",)),
        ),
        windows=(
            Window(
                id="maintenance",
                start_ms=Millis(0),
                end_ms=Millis(HOUR),
                every_ms=Millis(24 * HOUR),
                nodes=tuple(node.id for node in (*H100, *L4)),
            ),
        ),
    ),
)
REQUESTS: tuple[Mapping[str, Any], ...] = (
    {"gpus_per_node": 16},
    {"gpus_per_node": 12},
    {"gpus_per_node": 7, "accelerator": "L4"},
    {"nodes": 64, "gpus_per_node": 4},
    {"nodes": 9, "gpus_per_node": 8},
    {"gpus": 16},
    {"gpus": 6},
    {"gpus": 12},
    {"gpus": 13},
    {"gpus": 20, "accelerator": "H100-80G-SXM"},
    {"gpus": 1_000},
    {"gpus": 16, "nodes": 3},
    {"gpus": 16, "nodes": 2, "gpus_per_node": 4},
    {"gpus": 16, "memory_gib_per_node": 64},
    {"gpus": 2.5},
    {"nodes": 2, "gpus_per_node": 0.5},
    {"nodes": 4},
    {"gpus_per_node": 8, "accelerator": "H100"},
    {"gpus_per_node": 8, "accelerator": "TPU-v9"},
    {"gpus_per_node": 1, "memory_gib_per_node": 4_000},
    {"gpus_per_node": 8, "cpus_per_node": 128},
    {"gpus_per_node": 4, "needs": ["sharde"]},
    {"nodes": 6, "gpus_per_node": 4, "needs": ["shared"]},
    {"nodes": 6, "gpus_per_node": 8, "within": "rack", "how": "required"},
    {"gpus_per_node": 1, "time_limit": "48h", "preemptible": False},
    {"nodes": 2, "gpus_per_node": 8, "team": "small"},
    {"gpus_per_node": 1, "team": "swiss"},
    {"gpu": 8, "time": "2h", "nodes": 2, "gpus_per_node": 0.5},
    {"gpus_per_node": 1, "time_limit": "soon", "mem": 64, "output": "log.txt"},
    {"gpus_per_node": 8, "memory_gib_per_node": 0.0001},
    {"nodes": 2, "gpus_per_node": 8, "how": "required"},
    {"gpus_per_node": 8, "needs": ["EU"], "avoids": ["EU"]},
    {"gpus_per_node": 1, "after": "train-1"},
    {"gpus_per_node": 16, "allow_pending": True},
    {"nodes": 8, "gpus_per_node": 8},
)
"""The last one asks for every H100 node, one of which is cordoned: that is not never."""
HEAD = """\
# Rejected requests

This page shows how a control plane responds to impossible or unusual requests.

<!-- Written by tests/docs/rejected_requests.py; do not edit by hand. -->

The fleet has 8 nodes with 8 `H100-80G-SXM` each, one of them cordoned, in two racks (96 CPUs, \
1,024 GiB, tag `EU`), and 4 nodes with 4 `L4` each (32 CPUs, 128 GiB, tags `US` and `shared`). \
The policy is `governed`, with an hour of maintenance a day. Team `red` may use the whole fleet, \
team `small` may use 8 GPUs, and team `swiss` may use only nodes tagged `CH`. The requests are \
shown without `command` and `name`. \
Status 201 means that the job was submitted, 422 that it was rejected.

A job that can never start on this fleet is rejected unless it sets \
[`allow_pending`](job-file.md#scheduling). Nodes that are cordoned, down or busy are not a reason \
to reject a job. Sizes in hints were checked against the fleet.

| request | status | field | message | hint |
|---|---|---|---|---|
"""


@contextmanager
def control_plane() -> Generator[TestClient[Litestar]]:
    """Yield a client of a control plane with this fleet, and an operator's token."""
    with TemporaryDirectory() as folder:
        processes = FakeProcesses(Path(folder))
        runtime = Runtime(
            ServerDeps(
                journal=f"{folder}/journal.db",
                executor=lambda: FakeExecutor(processes),
                logs=processes,
                policy=POLICY,
                wait_s=20.0,
            )
        )
        runtime.start([*H100, *L4])
        try:
            secret, _ = runtime.control.tokens.create(
                name="ops", team="red", role=Role.operator, days=1
            )
            with TestClient(make_app(runtime.control), raise_server_exceptions=False) as client:
                client.headers["Authorization"] = f"Bearer {secret}"
                count = len(H100) + len(L4)
                until(lambda: len(client.get("/api/v1/nodes").json()["nodes"]) == count)
                client.post("/api/v1/nodes/hx-03/cordon").raise_for_status()
                yield client
        finally:
            runtime.stop()


def answers() -> list[tuple[Mapping[str, Any], int, list[tuple[str, str, str]]]]:
    """Return each request with the status and every (field, message, hint)."""
    made: list[tuple[Mapping[str, Any], int, list[tuple[str, str, str]]]] = []
    with control_plane() as client:
        for request in REQUESTS:
            answer = client.post("/api/v1/jobs", json={"command": ["true"], **request})
            body = answer.json()
            said = [("", note, "") for note in body.get("notes", ())]
            if answer.status_code != 201:
                said = [
                    (one["field"], one["message"], one.get("hint", "")) for one in body["errors"]
                ]
            made.append((request, answer.status_code, said))
    return made


def page() -> str:
    """Return the page."""
    lines: list[str] = []
    for request, status, said in answers():
        first, *rest = said or [("", "submitted", "")]
        text = ", ".join(f"`{key} = {_toml(value)}`" for key, value in request.items())
        lines.append(_line(text, str(status), *first))
        lines += [_line("", "", *one) for one in rest]
    return HEAD + "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _line(request: str, status: str, field: str, message: str, hint: str) -> str:
    named = f"`{field}`" if field else ""
    return f"| {request} | {status} | {named} | {message} | {hint} |"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        print(page())
