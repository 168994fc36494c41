"""Messages between client, spawner and supervisor: JSON lines, and files of the same form.

The spawner has no msgspec, so these are typed dictionaries. A change that an older side would
misread raises `PROTOCOL`; the client then asks the older spawner to exit.
"""

import json
from typing import Any, Literal, NotRequired, TypedDict, cast

PROTOCOL = 4
"""Version 1 had no team users: it would have run their jobs as root. Version 2 had no folder of the
submitter: it would have run commands elsewhere. Version 3 had no epochs: it would have carried out
orders of a control plane that no longer leads."""
NUMBER_MOST = 1 << 53
"""Larger numbers in files of an attempt are damage."""
OWN_GROUP = ".supervisor"
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
    submit_folder: NotRequired[str]
    """Where the command starts if `folder` is empty."""
    slurm_variables: NotRequired[bool]
    """Whether members also get Slurm's variables."""
    image: str
    runtime: str
    """Path of the container runtime."""
    runtime_env: NotRequired[dict[str, str]]
    """Variables that only the container runtime gets."""
    saves_folder: str
    saves_every_ms: int | None
    grace_ms: int
    silent_ms_most: int | None
    limit_ms: NotRequired[int]
    """How long it may run, if that is limited; for the engine's own plans."""
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


class ShellLine(TypedDict):
    """Control plane to supervisor: run a command beside a member."""

    command: list[str]
    member: int
    term: NotRequired[str]
    rows: NotRequired[int]
    """Set, with `columns`, if it runs in a terminal of this size."""
    columns: NotRequired[int]


class RecordLines(TypedDict):
    """All lines of an attempt's record. The last supervisor counts."""

    launch: NotRequired[LaunchLine]
    supervisor: NotRequired[int]
    boot: NotRequired[str]
    """The boot of the machine on which the first supervisor ran."""
    started: NotRequired[StartedLine]
    group: NotRequired[str]
    """The control group of the supervisor and its members, if they share one."""


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
    epoch: NotRequired[int]
    do: Literal["start"]
    launch: LaunchLine


class StopOrder(TypedDict):
    """Stop an attempt."""

    order: int
    epoch: NotRequired[int]
    do: Literal["stop"]
    job: str
    attempt: int
    stop: StopLine


class NodeOrder(TypedDict):
    """Mark a node as lost, or as back."""

    order: int
    epoch: NotRequired[int]
    do: Literal["lose-node", "restore-node"]
    node: str


class FenceOrder(TypedDict):
    """Refuse every order of a lower epoch from now on."""

    order: int
    epoch: NotRequired[int]
    do: Literal["fence"]


class LeaveOrder(TypedDict):
    """Ask the spawner to exit; supervisors continue. Any control plane may."""

    order: int
    epoch: NotRequired[int]
    do: Literal["leave"]


OrderLine = StartOrder | StopOrder | NodeOrder | FenceOrder | LeaveOrder


class NoteLine(TypedDict):
    """Spawner to client: an observation, or the acknowledgement of an order."""

    saw: Literal[
        "hello", "taken", "started", "ended", "refused", "trouble", "node-lost", "node-back"
    ]
    at_ms: int
    order: NotRequired[int]
    epoch: NotRequired[int]
    """On `refused`, with an `order`: the epoch of the control plane that leads instead."""
    protocol: NotRequired[int]
    pid: NotRequired[int]
    limits: NotRequired[str]
    memory: NotRequired[str]
    """On `hello`: whether memory limits are those of a `job` or of each `process`."""
    job: NotRequired[str]
    attempt: NotRequired[int]
    known: NotRequired[bool]
    """On `taken`: the attempt already existed, so its folder has the outcome."""
    end: NotRequired[EndLine]
    reason: NotRequired[ReasonLine]
    node: NotRequired[str]


HOW = ("exited", "stopped", "silent", "out-of-memory", "start-failed", "lost")
"""How an attempt can end."""


def checked_end(value: dict[str, Any], now_ms: int) -> EndLine:
    """Return an end with its times limited to the past; raises `ValueError` if it is damaged."""
    numbers = ("at_ms", "started_ms", "exit_code", "signal", "member", "log_bytes_dropped")
    how, reason = value.get("how"), value.get("reason")
    if (
        how not in HOW
        or not all(name in value and _is_small(value[name]) for name in numbers)
        or not _is_small(value.get("died_ms"))
        or None in (value["at_ms"], value["log_bytes_dropped"])
        or not (_is_reason(reason) or (reason is None and how != "lost"))
    ):
        raise ValueError("not an end")
    value["reason"] = reason
    for name in ("at_ms", "started_ms", "died_ms"):
        if value.get(name) is not None:
            value[name] = max(0, min(value[name], now_ms))
    return cast(EndLine, value)


def checked_shell(value: dict[str, Any]) -> ShellLine:
    """Return the request of a shell; raises `ValueError` if it is damaged."""
    command, member = value.get("command"), value.get("member")
    words = cast("list[object]", command) if isinstance(command, list) else []
    if not words or not all(isinstance(one, str) and "\0" not in one for one in words):
        raise ValueError("not a command")
    if not isinstance(member, int) or not isinstance(value.get("term", ""), str):
        raise ValueError("not a request for a shell")
    return cast(ShellLine, value)


def checked_record(value: dict[str, Any]) -> RecordLines:
    """Return a record without the lines that are damaged."""
    launch, started = value.get("launch"), value.get("started")
    if launch is not None and not _is_launch(launch):
        del value["launch"]
    if started is not None and not _is_started(started):
        del value["started"]
    if not _is_count(value.get("supervisor", 0)):
        del value["supervisor"]
    if not _is_own_group(value.get("group", OWN_GROUP)):
        del value["group"]
    return cast(RecordLines, value)


def _is_launch(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    launch = cast("dict[str, Any]", value)
    members = launch.get("members")
    return (
        launch.keys() >= LaunchLine.__required_keys__
        and isinstance(members, list)
        and all(
            isinstance(one, dict) and one.keys() >= MemberLine.__required_keys__
            for one in cast("list[object]", members)
        )
    )


def _is_started(value: object) -> bool:
    return isinstance(value, dict) and _is_count(cast("dict[str, Any]", value).get("at_ms"))


def own_group_name(number: int) -> str:
    """Return a name for the group of a supervisor; no attempt has one like it."""
    return f"{number}{OWN_GROUP}"


def _is_own_group(value: object) -> bool:
    """Return whether a value can be such a name, and not a path."""
    return isinstance(value, str) and value.endswith(OWN_GROUP) and "/" not in value


def _is_reason(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    reason = cast("dict[str, Any]", value)
    return isinstance(reason.get("code"), str) and isinstance(reason.get("sentence"), str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and _is_small(value)


def _is_small(value: object) -> bool:
    """Return whether a value is missing, or a number that fits in every database."""
    return value is None or (isinstance(value, int) and 0 <= value < NUMBER_MOST)


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
