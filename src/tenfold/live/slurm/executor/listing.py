"""Read what `squeue` and `sinfo` print for the executor."""

from tenfold.live.external.engine import EndCause, EngineJob, EngineNode, JobPhase, Mark
from tenfold.live.local.attempt.folder import file_name, plain_name
from tenfold.model.fleet import hostlist
from tenfold.model.ids import JobId, NodeId

JOBS = ("squeue", "--noheader", "--all", "--states=all", "--format=%A|%t|%u|%N|%k")
"""One call for all jobs of the cluster: its comment says whose a job is."""
NODES = ("sinfo", "--noheader", "--all", "--Node", "--format=%N|%T|%o")
PREFIX = "tenfold"
_FIELDS = 5
_STATE_MARKS = "*~#!%$@^-"
_WAITING = ("PD", "CF", "RH", "RF", "RQ", "SE", "RD")
_OVER = ("CD", "CA", "F", "NF", "BF", "OOM", "PR", "TO", "DL", "RV")
"""Any other state counts as running: an end may be seen late, but not where there is none."""
_CAUSES: dict[str, EndCause] = {
    "CA": "cancelled",
    "NF": "node-lost",
    "BF": "node-lost",
    "OOM": "out-of-memory",
    "PR": "preempted",
    "TO": "time-limit",
    "DL": "time-limit",
}
_WORDS = {"CG": "ending", "CA": "cancelled", "F": "FAILED", "CD": "COMPLETED"}
_DOWN = ("down", "fail", "error", "powered_down", "powering_down", "inval")
"""`unknown` is not: it is every node until it registers with a controller that restarted."""
_ABSENT = ("future",)
_CLOSED = ("drain", "drained", "draining", "failing", "maint", "reboot", "reserved", "planned")


def comment_of(home_id: str, fence: int, mark: Mark) -> str:
    """Return the comment of a Slurm job: whose it is, and which attempt it runs."""
    return f"{PREFIX}:{home_id}:{fence}:{mark.attempt}:{file_name(mark.job_id)}"


def mark_of(comment: str, home_id: str) -> Mark | None:
    """Return the attempt that a comment names, if it is one of this executor's."""
    words = comment.split(":")
    if len(words) != _FIELDS or words[0] != PREFIX or words[1] != home_id:
        return None
    return Mark(JobId(plain_name(words[4])), int(words[3])) if words[3].isdecimal() else None


def read_jobs(text: str, home_id: str) -> tuple[list[EngineJob], dict[str, tuple[str, ...]]]:
    """Return this executor's jobs, and the running jobs of others by node."""
    jobs: list[EngineJob] = []
    foreign: dict[str, list[str]] = {}
    for line in text.splitlines():
        fields = line.split("|", _FIELDS - 1)
        if len(fields) != _FIELDS:
            continue
        handle, state, user, nodes, comment = (field.strip() for field in fields)
        mark = mark_of(comment, home_id)
        if mark is not None:
            jobs.append(
                EngineJob(
                    handle=handle,
                    mark=mark,
                    phase=_phase(state),
                    cause=_CAUSES.get(state, ""),
                    state=_WORDS.get(state, state),
                )
            )
        elif _phase(state) == "running":
            for node in _expanded(nodes):
                foreign.setdefault(node, []).append(f"{handle} of {user}")
    return jobs, {node: tuple(found) for node, found in foreign.items()}


def read_nodes(
    text: str, foreign: dict[str, tuple[str, ...]]
) -> tuple[list[EngineNode], dict[str, str]]:
    """Return the nodes, and their addresses."""
    nodes: dict[str, EngineNode] = {}
    addresses: dict[str, str] = {}
    for line in text.splitlines():
        name, _, rest = line.strip().partition("|")
        state, _, address = rest.partition("|")
        base = state.rstrip(_STATE_MARKS)
        if not name or base in _ABSENT:
            continue
        nodes[name] = EngineNode(
            id=NodeId(name),
            is_up=base not in _DOWN,
            closed=base if base in _CLOSED else "",
            foreign=foreign.get(name, ()),
        )
        addresses[name] = address or name
    return list(nodes.values()), addresses


def _phase(state: str) -> JobPhase:
    if state in _WAITING:
        return "waiting"
    return "over" if state in _OVER else "running"


def _expanded(nodes: str) -> list[str]:
    try:
        return hostlist.expand(nodes)
    except hostlist.HostlistError:
        return []
