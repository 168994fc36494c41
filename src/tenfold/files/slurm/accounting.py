"""Read Slurm's accounting (`sacct --parsable2`) as recorded jobs, one for each run.

Pending and cancelled jobs are kept, which a trace to replay leaves out. Times are seconds since
1970 (`SLURM_TIME_FORMAT=%s`) or the clock of the cluster, which counts as UTC.
"""

from collections.abc import Iterable
from pathlib import Path

from tenfold.files.slurm.amounts import Amounts, read_amounts
from tenfold.files.slurm.parsable import parsable_rows, parsable_text
from tenfold.files.slurm.times import slurm_seconds
from tenfold.files.traces.errors import TraceErrors
from tenfold.files.traces.named_rows import NamedRow
from tenfold.model.fleet import hostlist
from tenfold.model.job.recorded import RecordedJob

FIELDS = (
    "JobID",
    "JobIDRaw",
    "JobName",
    "User",
    "Account",
    "Partition",
    "State",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "TimelimitRaw",
    "ReqTRES",
    "AllocTRES",
    "NNodes",
    "NodeList",
    "Priority",
    "ExitCode",
    "TotalCPU",
    "QOS",
)
NEEDED = ("JobID", "Submit", "Start", "End", "State")
_NO_NODES = ("none assigned", "none", "(null)", "")
_UNFINISHED = ("pending", "running", "suspended", "requeued", "resizing")


def sacct_command(since: str, until: str = "now") -> tuple[str, ...]:
    """Return the command that prints every job between two moments."""
    return (
        "sacct",
        "--allusers",
        "--allocations",
        "--duplicates",
        "--parsable2",
        f"--starttime={since}",
        f"--endtime={until}",
        f"--format={','.join(FIELDS)}",
    )


def read_accounting(path: Path) -> list[RecordedJob]:
    """Return the jobs of a saved listing, or raise with every bad row."""
    errors = TraceErrors(str(path))
    jobs = list(_jobs(parsable_rows(path, NEEDED, errors)))
    errors.raise_if_any()
    return jobs


def read_accounting_text(text: str, source: str) -> list[RecordedJob]:
    """Return the jobs that a command printed."""
    errors = TraceErrors(source)
    jobs = list(_jobs(parsable_text(text, NEEDED, errors)))
    errors.raise_if_any()
    return jobs


def _jobs(rows: Iterable[NamedRow]) -> Iterable[RecordedJob]:
    shared: dict[str, tuple[str, ...]] = {}
    for row in rows:
        job_id = row.text("JobID")
        if not job_id or "." in job_id:
            continue
        one = _job(row, job_id, shared)
        if one is not None:
            yield one


def _job(row: NamedRow, job_id: str, shared: dict[str, tuple[str, ...]]) -> RecordedJob | None:
    submitted_s = row.time_s("Submit")
    requested, held = _amounts(row, "ReqTRES"), _amounts(row, "AllocTRES")
    names = _node_names(row, shared)
    started_s, ended_s = row.time_s("Start"), row.time_s("End")
    word, _, by = row.text("State").partition(" by ")
    state = word.partition(" ")[0].rstrip("+").lower()
    # A job that was cancelled while it waited has a start in the record, and nothing allocated.
    never = state == "pending" or not (names or held.cpus or held.gpus or row.number("ElapsedRaw"))
    if state in _UNFINISHED and state != "requeued":
        ended_s = None
    limit_s = _limit_s(row)
    if row.is_bad or submitted_s is None:
        return None
    nodes = int(row.number("NNodes") or held.nodes or requested.nodes or 1)
    gpus = (requested.gpus or held.gpus) if never else held.gpus
    raw = row.text("JobIDRaw") or job_id.partition("_")[0]
    exit_text = row.text("ExitCode").partition(":")[0]
    return RecordedJob(
        id=job_id,
        number=int(raw) if raw.isdecimal() else 0,
        user=row.text("User"),
        account=row.text("Account"),
        partition=row.text("Partition").partition(",")[0],
        partitions=tuple(row.text("Partition").split(",")),
        state=state,
        name=row.text("JobName"),
        submitted_s=submitted_s,
        eligible_s=row.time_s("Eligible"),
        started_s=None if never else started_s,
        ended_s=ended_s,
        limit_s=limit_s,
        nodes=nodes,
        node_names=names,
        gpus=gpus,
        gpus_asked=requested.gpus or gpus,
        gpus_per_node_asked=_per_node(requested.gpus or gpus, nodes),
        gpu_types=requested.gpu_types or held.gpu_types,
        cpus=held.cpus or requested.cpus,
        memory_gib=held.memory_gib,
        memory_asked_gib=requested.memory_gib,
        cpu_s=_time_s(row, "TotalCPU"),
        priority=int(row.number("Priority") or 0),
        qos=row.text("QOS"),
        exit_code=int(exit_text) if exit_text.isdecimal() else None,
        cancelled_by=by.strip(),
    )


def _per_node(gpus: float, nodes: int) -> int:
    return int(gpus // nodes) if nodes > 1 and gpus >= nodes and gpus % nodes == 0 else 0


def _amounts(row: NamedRow, name: str) -> Amounts:
    try:
        return read_amounts(row.text(name))
    except ValueError as error:
        row.fault("wrong-value", name, f"`{name}`: {error}")
        return Amounts()


def _node_names(row: NamedRow, shared: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    text = row.text("NodeList")
    if text.lower() in _NO_NODES:
        return ()
    if text not in shared:
        try:
            shared[text] = tuple(hostlist.expand(text))
        except ValueError as error:
            row.fault("wrong-value", "NodeList", f"`NodeList` is `{text[:60]}`: {error}")
            return ()
    return shared[text]


def _limit_s(row: NamedRow) -> float | None:
    text = row.text("TimelimitRaw") or row.text("Timelimit")
    try:
        return slurm_seconds(text, bare_s=60.0) if text else None
    except ValueError as error:
        row.fault("wrong-value", "TimelimitRaw", f"`TimelimitRaw`: {error}")
        return None


def _time_s(row: NamedRow, name: str) -> float | None:
    text = row.text(name)
    try:
        return slurm_seconds(text, bare_s=1.0) if text else None
    except ValueError as error:
        row.fault("wrong-value", name, f"`{name}`: {error}")
        return None
