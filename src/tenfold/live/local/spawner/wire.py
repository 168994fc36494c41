"""What client, spawner and supervisor tell each other: JSON lines, and files of the same form.

The spawner has no msgspec, so these are plain dictionaries with names. A change that an older
side would misread raises `PROTOCOL`; the client then asks the older spawner to leave.
"""

import json
from typing import Any, Literal, NotRequired, TypedDict, cast

PROTOCOL = 2
"""1 knew no users of teams: it would have run their jobs as root."""
LINE_BYTES_MOST = 4 * 1024 * 1024
"""An order longer than this is not read: nobody has an environment of that size."""


class MemberLine(TypedDict):
    """One member of a gang."""

    node: str
    gpus: list[int]
    cpus_milli: int
    memory_mib: int


class UserLine(TypedDict):
    """The user that a team's jobs run as, where teams have users of their own."""

    uid: int
    gid: int
    groups: list[int]
    """Groups beside its own, such as those that may use GPUs."""
    name: str


class LaunchLine(TypedDict):
    """A start, with everything a supervisor needs to know."""

    job: str
    attempt: int
    team: str
    name: str
    command: list[str]
    env: list[tuple[str, str]]
    inherited: dict[str, str]
    """What is passed on of the controller's own environment."""
    folder: str
    image: str
    runtime: str
    """Path of what runs the image."""
    runtime_env: NotRequired[dict[str, str]]
    """What that reads of the controller's own environment, and no job gets."""
    saves_folder: str
    saves_every_ms: int | None
    grace_ms: int
    silent_ms_most: int | None
    log_bytes_most: int
    members: list[MemberLine]
    ordered_ms: int
    user: NotRequired[UserLine]
    """Missing where jobs run as the user who started the control plane."""


class StopLine(TypedDict):
    """Why and how soon an attempt is to end."""

    grace_ms: int
    cause: Literal["stopped", "node-lost"]
    sentence: str


class StartedLine(TypedDict):
    """What is so once every member runs."""

    at_ms: int
    pids: list[int]
    port: int
    limits: str


class RecordLines(TypedDict):
    """The record of an attempt, all its lines together. The last supervisor counts."""

    launch: NotRequired[LaunchLine]
    supervisor: NotRequired[int]
    started: NotRequired[StartedLine]


class ReasonLine(TypedDict):
    """A code and a sentence."""

    code: str
    sentence: str


class EndLine(TypedDict):
    """How an attempt ended. `how` is `lost` where nobody saw it or its node went."""

    at_ms: int
    started_ms: int | None
    how: str
    exit_code: int | None
    signal: int | None
    member: int | None
    reason: ReasonLine | None
    log_bytes_dropped: int
    died_ms: NotRequired[int]
    """When a member that was ended for its silence was last heard."""


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
    """Take a node to be lost, or to be back."""

    order: int
    do: Literal["lose-node", "restore-node"]
    node: str


class LeaveOrder(TypedDict):
    """Let the spawner go; supervisors go on."""

    order: int
    do: Literal["leave"]


OrderLine = StartOrder | StopOrder | NodeOrder | LeaveOrder


class NoteLine(TypedDict):
    """Spawner to client: what was seen, or that an order was taken."""

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
    """On `taken`: the attempt was there before, so its folder says what became of it."""
    end: NotRequired[EndLine]
    reason: NotRequired[ReasonLine]
    node: NotRequired[str]


def line(message: OrderLine | NoteLine) -> bytes:
    """Return a message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def parsed(text: bytes) -> dict[str, Any]:
    """Return what a line or file holds; raises `ValueError` where that is no object."""
    value: object = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return cast("dict[str, Any]", value)
