"""Render journal information and verification results as text."""

from collections.abc import Sequence
from datetime import UTC, datetime

from tenfold.cli.output import show, table
from tenfold.journal.inspect import JournalInfo
from tenfold.journal.retention import Export
from tenfold.journal.verify import VerifyResult
from tenfold.report.figures import count, file_bytes


def show_info(info: JournalInfo) -> None:
    """Print what a journal contains."""
    jobs = ", ".join(f"{number:,} {state}" for state, number in info.jobs.items())
    rows = [
        ["journal", info.journal],
        ["events", f"{info.events:,}, last sequence number {info.last_seq:,}"],
        ["from", _moment(info.first_at_ms)],
        ["to", _moment(info.last_at_ms)],
        ["decisions", f"{info.cycles:,}"],
        ["snapshots (event numbers)", ", ".join(f"{seq:,}" for seq in info.snapshots) or "none"],
        ["jobs", jobs or "none"],
        ["moved to bundles", _moved(info)],
        ["written by", f"{info.holder or 'none'}, epoch {info.epoch:,}"],
    ]
    if info.bytes is not None:
        free = f", {file_bytes(info.bytes_free)} free" if info.bytes_free else ""
        rows.append(["size", file_bytes(info.bytes) + free])
    show(table("", ["", ""], rows))


def show_verified(result: VerifyResult) -> None:
    """Print the findings, then what was checked."""
    for one in result.findings:
        show(f"{one.level}: {one.message} [{one.code}]", f"  hint: {one.hint}")
    checked = (
        f"{count(result.events, 'event')}, {count(result.snapshots, 'snapshot')}, "
        f"{count(result.jobs, 'job')} and {count(result.bundles, 'bundle')}"
    )
    if result.chained_from > 1:
        show(
            f"events before {result.chained_from:,} are older than the digest chain: a change of "
            "one of them cannot be found"
        )
    if not result.head_file:
        show("no head file: missing events at the end are detected from the database alone")
    show(f"{checked} checked: {'no errors' if result.is_valid else 'the journal has errors'}")


def show_moved(moved: Sequence[Export], freed: int | None) -> None:
    """Print which events were moved to which bundle."""
    for one in moved:
        kept = f"; {one.kept:,} of them also stay in the journal" if one.kept else ""
        show(f"events {one.first_seq:,} to {one.last_seq:,} moved to `{one.file}`{kept}")
    if not moved:
        show("no events are old enough to move")
    if freed:
        show(f"journal file shrunk by {file_bytes(freed)}")


def _moved(info: JournalInfo) -> str:
    if not info.moved:
        return "none"
    last = info.moved[-1]
    return f"events up to {last.last_seq:,}, in {count(len(info.moved), 'bundle')}"


def _moment(at_ms: int | None) -> str:
    if at_ms is None:
        return ""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
