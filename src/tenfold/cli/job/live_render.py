"""Jobs, nodes and tokens of a control plane as tables and sentences for people."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tenfold.cli.fleet.idle import used
from tenfold.cli.output import show, table
from tenfold.model.api.jobs import DryRun, Job, Reason, Submitted, Why
from tenfold.model.api.nodes import Node
from tenfold.model.api.tokens import Token
from tenfold.report.figures import count

VIRTUAL = "virtual"
"""How the pools of nodes begin that only stand for nodes."""


def show_submitted(made: Submitted) -> None:
    """Print that a job will not be lost, and its name."""
    what = f" ({made.count:,} jobs, `{made.ids[0]}` to `{made.ids[-1]}`)" if made.count else ""
    show(f"`{made.id}` of team `{made.team}` was taken{what}")
    for note in made.notes:
        show(f"note: {note}")


def show_dry_run(found: DryRun) -> None:
    """Print what would become of a job if it were handed in now."""
    what = f"the first of {found.count:,} `{found.name}`" if found.count else f"`{found.name}`"
    if found.outcome == "starts":
        show(f"{what} of team `{found.team}` would start now on {_nodes(found.nodes)}")
    else:
        verb = "would never start" if found.outcome == "never" else "would wait"
        show(f"{what} of team `{found.team}` {verb}")
        _show_waiting(found.why, found.reason)
        if found.eta is not None:
            show(f"expected: by {found.eta.p50_at} (P50) to {found.eta.p90_at} (P90)")
    hold = found.could_hold
    named = f": {_nodes(hold.nodes)}" if hold.count else ""
    show(f"nodes that could hold it: {hold.count:,}{named}")
    if found.is_brief:
        show("the queue is long: neither remedies nor a forecast were sought")
    for note in found.notes:
        show(f"note: {note}")


def show_jobs(jobs: Sequence[Job], whole: Job | None = None) -> None:
    """Print jobs as a table, and the array that they are members of in a line."""
    has_eta = any(job.eta is not None for job in jobs)
    rows = [
        [
            job.id,
            job.team,
            job.state,
            str(len(job.attempts)),
            _nodes(job.attempts[-1].nodes) if job.attempts else "",
            _because(job),
            *([job.eta.p50_at if job.eta is not None else ""] if has_eta else []),
        ]
        for job in jobs
    ]
    if rows:
        columns = ["job", "team", "state", ">attempts", "nodes", "because"]
        show(table("", [*columns, "expected"] if has_eta else columns, rows), "")
    show(count(len(jobs), "job"))
    if whole is not None:
        show(f"`{whole.id}` is {whole.state}: {whole.reason.sentence}")


def show_job(job: Job) -> None:
    """Print one job with its attempts."""
    show(f"`{job.id}` of team `{job.team}`: {job.state}")
    show(f"because: {job.reason.sentence} [{job.reason.code}]")
    if job.use:
        show(f"uses: {used(job.use)}")
    if job.idle_since:
        show(f"idles since: {_to_the_second(job.idle_since)}")
    if job.array and job.array.failed:
        show(f"failed: {_nodes(job.array.failed)}")
    if job.eta is not None:
        show(f"expected: by {job.eta.p50_at} (P50) to {job.eta.p90_at} (P90); {job.eta.basis}")
    rows = [
        [
            str(one.number),
            _to_the_second(one.started_at),
            _to_the_second(one.ended_at),
            _nodes(one.nodes),
            "" if one.exit_code is None else str(one.exit_code),
            one.reason,
        ]
        for one in job.attempts
    ]
    if rows:
        columns = [">attempt", "started", "ended", "nodes", ">exit code", "because"]
        show("", table("", columns, rows))
    for one in job.attempts:
        if one.log_bytes_dropped:
            show(f"note: {dropped(one.number, one.log_bytes_dropped)}")


def dropped(attempt: int, count: int) -> str:
    """Return that bytes of a log are gone."""
    return f"{count:,} bytes of what attempt {attempt} wrote were dropped, the oldest first"


def show_why(answer: Why) -> None:
    """Print why a job stands where it stands, and which nodes are out of its reach."""
    _show_why(answer)
    for node in answer.nodes_out:
        show(f"out of use: `{node.id}`, because {node.sentence} [{node.code}]")


def _show_why(answer: Why) -> None:
    if answer.why is None:
        show(f"`{answer.id}`: {answer.state}")
        show(f"because: {answer.reason.sentence} [{answer.reason.code}]")
        return
    team = answer.why.get("team")
    show(f"`{answer.id}` of team `{team}` waits" if team else f"`{answer.id}` waits")
    _show_waiting(answer.why, answer.reason)
    if answer.eta is not None:
        show(f"expected: by {answer.eta.p50_at} (P50) to {answer.eta.p90_at} (P90)")


def _show_waiting(why: dict[str, Any] | None, reason: Reason) -> None:
    # The words for rooms, holders and remedies are those of a recorded run.
    from tenfold.cli.job.render import show_waiting  # noqa: PLC0415
    from tenfold.study.why.why import Why as Found  # noqa: PLC0415

    try:
        show_waiting(msgspec.convert(why, Found))
    except msgspec.ValidationError:
        # A control plane of another version: its sentence is understood all the same.
        show(f"because: {reason.sentence} [{reason.code}]")


def show_nodes(nodes: Sequence[Node]) -> None:
    """Print nodes as a table; those that only stand for nodes say so."""
    rows = [
        [
            node.id,
            node.site,
            node.pool,
            f"{node.gpus} x {node.accelerator}" if node.gpus else "",
            node.state,
            node.cause,
            "yes" if node.pool.startswith(VIRTUAL) else "",
        ]
        for node in nodes
    ]
    if rows:
        columns = ["node", "site", "pool", "GPUs", "state", "because", "virtual"]
        show(table("", columns, rows), "")
    gpus = sum(node.gpus for node in nodes)
    show(f"{count(len(nodes), 'node')}, {count(gpus, 'GPU')}")


def show_tokens(tokens: Sequence[Token]) -> None:
    """Print tokens as a table, without what makes them tokens."""
    rows = [
        [
            token.id,
            token.name,
            token.team,
            token.role,
            (token.expires_at or "")[:10],
            (token.revoked_at or "")[:10],
            token.last_used_on or "",
        ]
        for token in tokens
    ]
    columns = ["token", "name", "team", "role", "expires", "revoked", "last used"]
    show(table("", columns, rows))


def _to_the_second(moment: str | None) -> str:
    """Return a moment in UTC for a table; JSON has it whole."""
    return f"{moment[:10]} {moment[11:19]}Z" if moment else ""


def _because(job: Job) -> str:
    """Return why a job stands where it stands, in a few words; its state alone says nothing."""
    if job.reason.code != job.state:
        return job.reason.code
    if job.idle_since:
        return f"idles since {_to_the_second(job.idle_since)}"
    return job.reason.sentence if job.is_over and job.state != "succeeded" else ""


def _nodes(names: Sequence[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
