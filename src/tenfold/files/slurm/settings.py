"""Read what else decides when a job of Slurm may start: partitions, reservations and limits."""

import re
from collections.abc import Iterable

from msgspec import Struct

from tenfold.files.slurm.amounts import Amounts, read_amounts
from tenfold.files.slurm.times import slurm_seconds
from tenfold.files.traces.named_rows import seconds_of
from tenfold.model.fleet import hostlist

QOS_COMMAND = ("sacctmgr", "--parsable2", "show", "qos", "format=Name,GrpJobs,GrpTRES,MaxJobsPU,"
               "MaxTRESPU,MaxTRES")  # fmt: skip
ACCOUNT_COMMAND = ("sacctmgr", "--parsable2", "show", "assoc",
                   "format=Account,User,GrpJobs,GrpTRES,MaxJobs,MaxTRES")  # fmt: skip
RESERVATION_COMMAND = ("scontrol", "show", "reservation", "--oneliner")
PARTITION_COMMAND = ("scontrol", "show", "partitions", "--oneliner")
_PAIR = re.compile(r"(?<!\w)([A-Za-z_]\w*)=(\S*)")
_NONE = ("", "(null)", "N/A", "n/a", "NONE", "none", "UNLIMITED", "ALL")
_GPU = re.compile(r"(?:^|,)(gres/gpu(?::[^=,]*)?|cpu|node)=(\d+)")


class PartitionState(Struct, frozen=True, kw_only=True):
    """A partition as it is now."""

    name: str
    state: str = "UP"
    nodes: tuple[str, ...] = ()
    time_max_s: float | None = None
    time_default_s: float | None = None
    """What a job gets that names no time; None if that is the most."""
    is_default: bool = False
    nodes_max: int | None = None
    qos: str = ""

    @property
    def starts_jobs(self) -> bool:
        """Return whether jobs that are in its queue may start."""
        return self.state.upper() not in ("DOWN", "INACTIVE")


class Booking(Struct, frozen=True, kw_only=True):
    """A reservation of Slurm: nodes that only some may use for a time."""

    name: str
    start_s: float
    end_s: float
    nodes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    is_maintenance: bool = False


class Limit(Struct, frozen=True, kw_only=True):
    """What the running jobs of a QOS, an account or a user may hold together."""

    kind: str
    """`qos`, `qos-user`, `account` or `user`."""
    name: str
    user: str = ""
    jobs: int | None = None
    amounts: dict[str, int] = {}
    """By `cpu`, `node` and `gres/gpu`."""
    per_job: dict[str, int] = {}


class SlurmSettings(Struct, frozen=True, kw_only=True):
    """All of it."""

    partitions: tuple[PartitionState, ...] = ()
    bookings: tuple[Booking, ...] = ()
    limits: tuple[Limit, ...] = ()


def read_partitions(text: str) -> tuple[PartitionState, ...]:
    """Return the partitions in `scontrol show partitions --oneliner`."""
    found: list[PartitionState] = []
    for pairs in _rows(text, "PartitionName"):
        nodes_max, time_max = pairs.get("MaxNodes", ""), pairs.get("MaxTime", "")
        usual = pairs.get("DefaultTime", "")
        found.append(
            PartitionState(
                name=pairs["PartitionName"],
                state=pairs.get("State", "UP"),
                nodes=_names(pairs.get("Nodes", "")),
                time_max_s=None if time_max in _NONE else _seconds(time_max),
                time_default_s=None if usual in _NONE else _seconds(usual),
                is_default=pairs.get("Default", "").upper() == "YES",
                nodes_max=int(nodes_max) if nodes_max.isdecimal() else None,
                qos=_text(pairs.get("QoS", "")),
            )
        )
    return tuple(found)


def read_bookings(text: str) -> tuple[Booking, ...]:
    """Return the reservations in `scontrol show reservation --oneliner`."""
    found: list[Booking] = []
    for pairs in _rows(text, "ReservationName"):
        start_s, end_s = _moment(pairs.get("StartTime", "")), _moment(pairs.get("EndTime", ""))
        if start_s is None or end_s is None:
            continue
        flags = pairs.get("Flags", "").upper().split(",")
        found.append(
            Booking(
                name=pairs["ReservationName"],
                start_s=start_s,
                end_s=end_s,
                nodes=_names(pairs.get("Nodes", "")),
                users=_words(pairs.get("Users", "")),
                accounts=_words(pairs.get("Accounts", "")),
                is_maintenance="MAINT" in flags,
            )
        )
    return tuple(found)


def read_limits(qos: str, accounts: str) -> tuple[Limit, ...]:
    """Return the limits that `sacctmgr` prints for each QOS, account and user."""
    found: list[Limit] = []
    for row in _table(qos):
        name = row.get("Name", "")
        per_job = _amounts(row.get("MaxTRES", ""))
        whole = Limit(
            kind="qos",
            name=name,
            jobs=_count(row.get("GrpJobs", "")),
            amounts=_amounts(row.get("GrpTRES", "")),
            per_job=per_job,
        )
        each = Limit(
            kind="qos-user",
            name=name,
            jobs=_count(row.get("MaxJobsPU", "")),
            amounts=_amounts(row.get("MaxTRESPU", "")),
        )
        found += [whole, each]
    for row in _table(accounts):
        name, user = row.get("Account", ""), row.get("User", "")
        found.append(
            Limit(
                kind="user" if user else "account",
                name=name,
                user=user,
                jobs=_count(row.get("MaxJobs" if user else "GrpJobs", "")),
                amounts=_amounts(row.get("GrpTRES", "")),
                per_job=_amounts(row.get("MaxTRES", "")),
            )
        )
    return tuple(one for one in found if one.jobs is not None or one.amounts or one.per_job)


def amounts_of(gpus: float, cpus: float, nodes: int) -> dict[str, int]:
    """Return what a job holds or requests, in the words of limits."""
    return {"gres/gpu": round(gpus), "cpu": round(cpus), "node": nodes}


def read_setting(config: str, key: str) -> str:
    """Return a value of `scontrol show config`, empty where it is not set."""
    for line in config.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip() == key:
            return _text(value.strip())
    return ""


def held_amounts(text: str) -> Amounts:
    """Return the amounts of a text that Slurm printed, or none where they cannot be read."""
    try:
        return read_amounts(text)
    except ValueError:
        return Amounts()


def _rows(text: str, first: str) -> Iterable[dict[str, str]]:
    for line in text.splitlines():
        pairs = dict(_PAIR.findall(line))
        if first in pairs:
            yield pairs


def _table(text: str) -> Iterable[dict[str, str]]:
    lines = [line for line in text.splitlines() if "|" in line]
    if not lines:
        return
    head = lines[0].split("|")
    for line in lines[1:]:
        yield dict(zip(head, line.split("|"), strict=False))


def _amounts(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in _GPU.findall(text):
        kind = "gres/gpu" if name.startswith("gres/gpu") else name
        found[kind] = min(found.get(kind, int(value)), int(value))
    return found


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _names(text: str) -> tuple[str, ...]:
    if text in _NONE:
        return ()
    try:
        return tuple(hostlist.expand(text))
    except ValueError:
        return ()


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word not in _NONE)


def _text(text: str) -> str:
    return "" if text in _NONE else text


def _seconds(text: str) -> float | None:
    try:
        return slurm_seconds(text)
    except ValueError:
        return None


def _moment(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() else seconds_of(text)
