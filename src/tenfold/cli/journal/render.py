"""A journal's figures and what was found wrong with it, for people."""

from collections.abc import Sequence
from datetime import UTC, datetime

from tenfold.cli.output import show, table
from tenfold.journal.inspect import JournalInfo
from tenfold.journal.retention import Export
from tenfold.journal.verify import VerifyResult
from tenfold.report.figures import count, file_bytes


def show_info(info: JournalInfo) -> None:
    """Print what a journal holds."""
    jobs = ", ".join(f"{number:,} {state}" for state, number in info.jobs.items())
    rows = [
        ["journal", info.journal],
        ["events", f"{info.events:,}, the last is number {info.last_seq:,}"],
        ["from", _moment(info.first_at_ms)],
        ["to", _moment(info.last_at_ms)],
        ["decisions", f"{info.cycles:,}"],
        ["snapshots after", ", ".join(f"{seq:,}" for seq in info.snapshots) or "none"],
        ["jobs", jobs or "none"],
        ["moved out", _moved(info)],
        ["written by", f"{info.holder or 'nobody'}, epoch {info.epoch:,}"],
    ]
    if info.bytes is not None:
        free = f", {file_bytes(info.bytes_free)} of it free" if info.bytes_free else ""
        rows.append(["size", file_bytes(info.bytes) + free])
    show(table("", ["", ""], rows))


def show_verified(result: VerifyResult) -> None:
    """Print what is wrong, then what was checked."""
    for one in result.findings:
        show(f"{one.severity}: {one.message} [{one.code}]", f"  hint: {one.hint}")
    checked = (
        f"{count(result.events, 'event')}, {count(result.snapshots, 'snapshot')}, "
        f"{count(result.jobs, 'job')} and {count(result.bundles, 'bundle')}"
    )
    show(f"{checked} checked: {'the journal is whole' if result.is_valid else 'it is not whole'}")


def show_moved(moved: Sequence[Export], freed: int | None) -> None:
    """Print which events went where."""
    for one in moved:
        kept = f"; {one.kept:,} of them also stay" if one.kept else ""
        show(f"events {one.first_seq:,} to {one.last_seq:,} moved to `{one.file}`{kept}")
    if not moved:
        show("nothing is old enough to be moved")
    if freed:
        show(f"the file is {file_bytes(freed)} smaller")


def _moved(info: JournalInfo) -> str:
    if not info.moved:
        return "nothing"
    last = info.moved[-1]
    return f"events up to {last.last_seq:,}, in {count(len(info.moved), 'bundle')}"


def _moment(at_ms: int | None) -> str:
    if at_ms is None:
        return ""
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
