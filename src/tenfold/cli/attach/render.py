"""An attached cluster as text."""

from datetime import UTC, datetime
from pathlib import Path

from tenfold.cli.output import show, table
from tenfold.live.slurm.attach.poll import PollCost
from tenfold.report.figures import count
from tenfold.study.attach.act import ActCounts
from tenfold.study.attach.observe import Reading
from tenfold.study.attach.recommend import RecommendReport
from tenfold.study.attach.recorder import Attachment, AttachStatus

SHOWN = 5
"""Outages listed."""


def show_status(folder: Path, status: AttachStatus) -> None:
    """Print what was read, and what it cost."""
    rows = [
        ["cluster", f"{status.cluster or '(unnamed)'}, from {status.source}"],
        ["journal", str(folder / "journal.db")],
        ["last poll", f"{_moment(status.reading_s)}{_next(status)}"],
        ["fleet", f"{count(status.nodes, 'node')}, {count(status.gpus, 'GPU')}"],
        [
            "jobs",
            f"{status.running:,} running, {status.pending:,} in the queue, {status.held:,} held",
        ],
        ["events", f"{status.events:,} since {_moment(status.started_s)}"],
    ]
    if status.source == "live":
        rows.append(["cost", cost_sentence(status.cost)])
    if status.mode == "recommend":
        rows.append(["recommended", count(status.recommended, "start")])
    if status.mode == "act":
        rows += _acted(status.acted)
    if status.clipped:
        rows.append(["partly recorded", count(status.clipped, "shared allocation")])
    show(table("", ["", ""], rows))
    for outage in status.outages[-SHOWN:]:
        until = "now" if outage.until_s is None else _moment(outage.until_s)
        show(f"no response between {_moment(outage.from_s)} and {until}: {outage.message}")


def _next(status: AttachStatus) -> str:
    if status.source != "live":
        return " (saved files: no further polls)"
    return f", the next {status.pause_s:.0f} s later"


def _acted(counts: ActCounts) -> list[list[str]]:
    text = (
        f"{counts.released:,} released, {counts.started:,} of them started, "
        f"{counts.refused:,} rejected by Slurm, {counts.late:,} not started in time, "
        f"{counts.left:,} left to Slurm"
    )
    rows = [["placed", text]]
    for job, why in list(counts.skipped.items())[:SHOWN]:
        rows.append(["not placed", f"job {job}: {why}"])
    more = len(counts.skipped) - SHOWN
    return [*rows, ["", f"and {more:,} more"]] if more > 0 else rows


def show_report(found: RecommendReport) -> None:
    """Print predicted and actual savings."""
    rows = [
        ["recommended", count(found.recommended, "start")],
        [
            "since then",
            f"{found.started:,} started, {found.cancelled:,} cancelled, "
            f"{found.waiting:,} still waiting",
        ],
        [
            "predicted",
            f"{found.promised_hours * 60:,.1f} minutes of wait time saved, over "
            f"{count(found.promised, 'job')} with a prediction that started",
        ],
        ["actual", f"{found.came_hours * 60:,.1f} minutes for the same jobs"],
        [
            "at no cost to others",
            f"{found.free_hours * 60:,.1f} minutes and {found.free_gpu_hours:,.2f} idle GPU-hours, "
            f"of {count(found.free, 'job')} on whose nodes no other job started meanwhile",
        ],
    ]
    show(table("", ["", ""], rows))


def cost_sentence(cost: PollCost) -> str:
    """Return what reading has cost."""
    text = (
        f"{cost.readings:,} polls, {cost.calls:,} commands in {cost.seconds:.1f} s, "
        f"{cost.bytes_read / 1e6:.1f} MB"
    )
    if cost.rpc_readings:
        each = cost.rpc_s / cost.rpc_readings
        text += (
            f"; slurmctld served {cost.rpcs:,} requests of this user in {cost.rpc_s:.3f} s "
            f"({each * 1e3:.1f} ms per poll)"
        )
    return text


def shown_reading(attachment: Attachment, reading: Reading) -> str:
    """Return one line about a reading."""
    status = attachment.status
    return (
        f"{_moment(reading.now_s)}: {status.running:,} running, {status.pending:,} in the queue, "
        f"{status.held:,} held, {status.events:,} events; next in {status.pause_s:.0f} s"
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
