"""`tenfold job show`: one job with its command, resources, limits, use and attempts."""

from collections.abc import Iterator
from shlex import join

from msgspec import UNSET

from tenfold.cli.fleet.idle import used
from tenfold.cli.job.batch_output import OutputFiles, batch_command
from tenfold.cli.job.columns import node_list, nodes_of, second_of, short_duration
from tenfold.cli.job.endings import failed_line
from tenfold.cli.job.live_render import dropped, eta_text, show_reason
from tenfold.cli.output import show, table
from tenfold.model.api.jobs import Job, Requested
from tenfold.model.job.origin import Origin
from tenfold.report.figures import count, file_bytes

VARIABLES_MOST = 20
"""Names of variables that are printed; JSON has all of them."""
COMMAND_MOST = 400
"""Characters of a command that are printed; JSON has all of it."""
_LIMIT_OF = {
    "job": " (limits the job as a whole)",
    "process": " (limits each process, not the job as a whole)",
}


def show_job(job: Job, files: OutputFiles | None = None) -> None:
    """Print one job with its attempts, and the files that it writes its output to."""
    user = f", user `{job.user}`" if job.user else ""
    show(f"`{job.id}` (team `{job.team}`{user}): {job.state}")
    if job.array:
        show(f"members: {job.reason.sentence.partition(': ')[2]}")
    else:
        show_reason(job.state, job.reason)
        if failed := failed_line(job):
            show(failed)
    lines = () if job.requested is UNSET else _requested(job, job.requested)
    for line in (*lines, *(f"{what}: {path}" for what, path in (files or OutputFiles()).named())):
        show(line)
    if job.submitted_at:
        show(f"submitted: {second_of(job.submitted_at)}")
    for line in _use(job):
        show(line)
    if job.array and job.array.failed:
        more = job.array.states.get("failed", 0) - len(job.array.failed)
        rest = f" and {more:,} more" if more > 0 else ""
        show(f"failed: {', '.join(job.array.failed)}{rest}")
    if job.eta is not None:
        show(f"expected start: {eta_text(job.eta)}", f"forecast: {job.eta.basis}")
    elif job.eta_unknown:
        show(f"expected start: unknown ({job.eta_unknown})")
    _show_attempts(job)


def _under_limit(job: Job, requested: Requested) -> str:
    """Return that a memory limit may be why a command failed, where only its output can tell.

    The kernel reports a limit of the whole job; an allocation beyond one of each process only fails
    in the program, which exits as it does for any other error.
    """
    is_told = job.reason.code in ("allocation-failed", "out-of-memory")
    exited = job.state == "failed" and (job.exit_code or 0) > 0
    if not exited or is_told or requested.memory_limit_of != "process":
        return ""
    nodes = max(1, len(nodes_of(job)))
    each = memory_text(requested.memory_gib / nodes)
    return (
        f"memory: each process was limited to {each}; the output shows whether this was the cause"
    )


def _requested(job: Job, requested: Requested) -> Iterator[str]:
    if limited := _under_limit(job, requested):
        yield limited
    if requested.command:
        text = join(_abridged(batch_command(job)))
        more = f"... ({len(text):,} characters)" if len(text) > COMMAND_MOST else ""
        yield f"command: {text[:COMMAND_MOST]}{more}"
    yield f"resources: {_resources(job, requested)}"
    limit_s = requested.time_limit_s
    yield f"time limit: {'none' if limit_s is None else short_duration(limit_s)}"
    yield from _scheduling(requested)
    if requested.image:
        yield f"image: {requested.image}"
    if requested.workdir:
        yield f"working directory: {requested.workdir}"
    if requested.env:
        names = requested.env[:VARIABLES_MOST]
        more = f" and {len(requested.env) - len(names):,} more" if requested.env != names else ""
        yield f"variables: {', '.join(names)}{more}"
    if (origin := requested.origin) is not None:
        yield from _origin(origin)


def _abridged(command: tuple[str, ...]) -> list[str]:
    """Return a command in which a whole script is counted; JSON has it."""
    return [
        f"<script of {count(word.count(chr(10)) + 1, 'line')}>" if word.count("\n") > 2 else word
        for word in command
    ]


def _scheduling(requested: Requested) -> Iterator[str]:
    terms = [requested.kind] if requested.kind != "batch" else []
    terms += [f"priority {requested.priority}"] if requested.priority else []
    terms += [] if requested.preemptible else ["not preemptible"]
    if terms:
        yield f"scheduling: {', '.join(terms)}"
    if requested.after:
        yield f"starts after: {', '.join(requested.after)}"
    if requested.after_any:
        yield f"starts after the end of: {', '.join(requested.after_any)}"
    if requested.array_most:
        yield f"array limit: {requested.array_most:,} tasks at once"
    if requested.rerun_of:
        yield f"rerun of: {requested.rerun_of}"


def _origin(origin: Origin) -> Iterator[str]:
    if origin.folder and origin.host:
        yield f"submitted from: {origin.host}:{origin.folder}"
    if origin.virtual_env:
        yield f"Python environment: {origin.virtual_env}"
    code = origin.code
    if code is None:
        return
    branch = f" on {code.branch}" if code.branch else ""
    state = "uncommitted changes" if code.dirty else "no uncommitted changes"
    if code.diff_bytes:
        state += f" (diff of {file_bytes(code.diff_bytes)}; --diff prints it)"
    more = f", {count(code.untracked, 'untracked file')}" if code.untracked else ""
    yield f"code: git {code.revision[:12]}{branch}, {state}{more}"


def memory_text(gib: float) -> str:
    """Return a size in GiB, or in MiB if it is less than 1 GiB."""
    return f"{gib * 1_024:.4g} MiB" if gib < 1 else f"{gib:.6g} GiB"


def _resources(job: Job, requested: Requested) -> str:
    parts: list[str] = []
    if job.gpus:
        types = f" ({' or '.join(requested.accelerators)})" if requested.accelerators else ""
        per_node = requested.gpus_per_node
        each = f", {per_node} per node" if per_node and job.gpus > per_node else ""
        noun = "GPU" if job.gpus <= 1 else "GPUs"
        parts.append(f"{job.gpus:g} {noun}{types}{each}")
    if requested.cpus:
        parts.append(f"{requested.cpus:g} {'CPU' if requested.cpus <= 1 else 'CPUs'}")
    if requested.memory_gib:
        scope = _LIMIT_OF.get(requested.memory_limit_of or "", "")
        parts.append(f"{memory_text(requested.memory_gib)} of memory{scope}")
    return "; ".join(parts) or "none requested"


def _use(job: Job) -> Iterator[str]:
    if job.elapsed_s is not UNSET:
        hours = "" if not job.gpu_hours else f"; {job.gpu_hours:,.2f} GPU-hours in all attempts"
        yield f"elapsed: {short_duration(job.elapsed_s)}{hours}"
    if not job.is_over and (nodes := nodes_of(job)):
        yield f"nodes: {node_list(nodes)} ({count(len(nodes), 'node')})"
    if job.use:
        yield f"usage: {used(job.use)}"
    if job.idle_since:
        yield f"idle since: {second_of(job.idle_since)}"


def _show_attempts(job: Job) -> None:
    rows = [
        [
            str(one.number),
            second_of(one.started_at),
            second_of(one.ended_at),
            node_list(one.nodes),
            "" if one.exit_code is None else str(one.exit_code),
            one.reason,
        ]
        for one in job.attempts
    ]
    if rows:
        columns = [">attempt", "started", "ended", "nodes", ">exit code", "reason"]
        show("", table("", columns, rows))
    if job.attempt_count > len(job.attempts):
        show(f"latest {len(job.attempts):,} of {job.attempt_count:,} attempts; see --attempts")
    for one in job.attempts:
        if one.log_bytes_dropped:
            show(f"note: {dropped(one.number, one.log_bytes_dropped)}")
