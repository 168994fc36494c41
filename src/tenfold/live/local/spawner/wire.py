"""Messages between client, spawner and supervisor: JSON lines, and files of the same form.

The spawner has no msgspec, so these are typed dictionaries. A change that an older side would
misread raises `PROTOCOL`; the client then asks the older spawner to exit.
"""

import json
from typing import Any, Literal, NotRequired, TypedDict, cast

PROTOCOL = 2
"""Version 1 had no team users: it would have run their jobs as root."""
LINE_BYTES_MOST = 4 * 1024 * 1024
"""Longer orders are rejected: no environment is this large."""


class MemberLine(TypedDict):
    """One member of a gang."""

    node: str
    gpus: list[int]
    cpus_milli: int
    memory_mib: int


class UserLine(TypedDict):
    """The user of a team's jobs, if teams have their own users."""

    uid: int
    gid: int
    groups: list[int]
    """Additional groups, such as those with GPU access."""
    name: str


class LaunchLine(TypedDict):
    """A start, with everything a supervisor needs."""

    job: str
    attempt: int
    team: str
    name: str
    command: list[str]
    env: list[tuple[str, str]]
    inherited: dict[str, str]
    """Variables inherited from the control plane."""
    folder: str
    image: str
    runtime: str
    """Path of the container runtime."""
    runtime_env: NotRequired[dict[str, str]]
    """Variables that only the container runtime gets."""
    saves_folder: str
    saves_every_ms: int | None
    grace_ms: int
    silent_ms_most: int | None
    log_bytes_most: int
    pids_most: NotRequired[int]
    """Processes and threads; missing or 0 for no limit."""
    members: list[MemberLine]
    ordered_ms: int
    user: NotRequired[UserLine]
    """Missing if jobs run as the user of the control plane."""


class StopLine(TypedDict):
    """Why and how soon an attempt is stopped."""

    grace_ms: int
    cause: Literal["stopped", "node-lost"]
    sentence: str


class StartedLine(TypedDict):
    """Written once all members run."""

    at_ms: int
    pids: list[int]
    port: int
    limits: str


class RecordLines(TypedDict):
    """All lines of an attempt's record. The last supervisor counts."""

    launch: NotRequired[LaunchLine]
    supervisor: NotRequired[int]
    started: NotRequired[StartedLine]


class ReasonLine(TypedDict):
    """A code and a sentence."""

    code: str
    sentence: str


class EndLine(TypedDict):
    """How an attempt ended. `how` is `lost` if that is unknown or its node was lost."""

    at_ms: int
    started_ms: int | None
    how: str
    exit_code: int | None
    signal: int | None
    member: int | None
    reason: ReasonLine | None
    log_bytes_dropped: int
    died_ms: NotRequired[int]
    """Last heartbeat of a member that was killed as hung."""


class StartOrder(TypedDict):
    """Client to spawner: start an attempt. Every order is numbered and acknowledged."""

    order: int
    do: Literal["start"]
    launch: LaunchLine


class StopOrder(TypedDict):
    """Stop an attempt."""

    order: int
    do: Literal["stop"]
    job: str
    attempt: int
    stop: StopLine


class NodeOrder(TypedDict):
    """Mark a node as lost, or as back."""

    order: int
    do: Literal["lose-node", "restore-node"]
    node: str


class LeaveOrder(TypedDict):
    """Ask the spawner to exit; supervisors continue."""

    order: int
    do: Literal["leave"]


OrderLine = StartOrder | StopOrder | NodeOrder | LeaveOrder


class NoteLine(TypedDict):
    """Spawner to client: an observation, or the acknowledgement of an order."""

    saw: Literal[
        "hello", "taken", "started", "ended", "refused", "trouble", "node-lost", "node-back"
    ]
    at_ms: int
    order: NotRequired[int]
    protocol: NotRequired[int]
    pid: NotRequired[int]
    limits: NotRequired[str]
    job: NotRequired[str]
    attempt: NotRequired[int]
    known: NotRequired[bool]
    """On `taken`: the attempt already existed, so its folder has the outcome."""
    end: NotRequired[EndLine]
    reason: NotRequired[ReasonLine]
    node: NotRequired[str]


def line(message: OrderLine | NoteLine) -> bytes:
    """Encode a message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def parsed(text: bytes) -> dict[str, Any]:
    """Decode a line or file; raises `ValueError` if it is not an object."""
    try:
        value: object = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return cast("dict[str, Any]", value)
