"""Jobs, nodes and tokens of a control plane as tables and sentences for people."""

from collections.abc import Sequence

import msgspec

from tenfold.cli.output import show, table
from tenfold.client.answers import Job, Node, Submitted, Token, Why
from tenfold.report.figures import count

VIRTUAL = "virtual"
"""How the pools of nodes begin that only stand for nodes."""


def show_submitted(made: Submitted) -> None:
    """Print that a job will not be lost, and its name."""
    what = f" ({made.count:,} jobs, `{made.ids[0]}` to `{made.ids[-1]}`)" if made.count else ""
    show(f"`{made.id}` of team `{made.team}` was taken{what}")


def show_jobs(jobs: Sequence[Job]) -> None:
    """Print jobs as a table."""
    rows = [
        [
            job.id,
            job.team,
            job.state,
            str(len(job.attempts)),
            _nodes(job.attempts[-1].nodes) if job.attempts else "",
            job.reason.code if job.reason.code != job.state else "",
        ]
        for job in jobs
    ]
    if rows:
        show(table("", ["job", "team", "state", ">attempts", "nodes", "because"], rows), "")
    show(count(len(jobs), "job"))


def show_job(job: Job) -> None:
    """Print one job with its attempts."""
    show(f"`{job.id}` of team `{job.team}`: {job.state}")
    show(f"because: {job.reason.sentence} [{job.reason.code}]")
    if job.eta is not None:
        show(f"expected: by {job.eta.p50_at} (P50) to {job.eta.p90_at} (P90); {job.eta.basis}")
    rows = [
        [
            str(one.number),
            one.started_at or "",
            one.ended_at or "",
            _nodes(one.nodes),
            "" if one.exit_code is None else str(one.exit_code),
            one.reason,
        ]
        for one in job.attempts
    ]
    if rows:
        columns = [">attempt", "started", "ended", "nodes", ">exit code", "because"]
        show("", table("", columns, rows))


def show_why(answer: Why) -> None:
    """Print why a job stands where it stands."""
    if answer.why is None:
        show(f"`{answer.id}`: {answer.state}")
        show(f"because: {answer.reason.sentence} [{answer.reason.code}]")
        return
    # The words for rooms, holders and remedies are those of a recorded run.
    from tenfold.cli.job_show import show_waiting  # noqa: PLC0415
    from tenfold.study.why import Why as Found  # noqa: PLC0415

    try:
        found = msgspec.convert(answer.why, Found)
    except msgspec.ValidationError:
        # A control plane of another version: its sentence is understood all the same.
        show(f"`{answer.id}` waits", f"because: {answer.reason.sentence} [{answer.reason.code}]")
        return
    show(f"`{answer.id}` of team `{found.team}` waits")
    show_waiting(found)
    if answer.eta is not None and found.eta is None:
        show(f"expected: by {answer.eta.p50_at} (P50) to {answer.eta.p90_at} (P90)")


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


def _nodes(names: Sequence[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")
