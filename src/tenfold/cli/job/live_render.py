"""Jobs, nodes and tokens of a control plane as tables and sentences for people."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from tenfold.cli.job.columns import minute_of, node_list, rounded_up, second_of
from tenfold.cli.output import print_note, show, table
from tenfold.cli.replay.event_names import event_name
from tenfold.model.api.jobs import DryRun, Eta, HistoryEvent, Reason, Submitted, Why
from tenfold.model.api.nodes import Node
from tenfold.model.api.tokens import Token
from tenfold.report.figures import count

VIRTUAL = "virtual"
"""Prefix of the pools of virtual nodes."""


def show_submitted(made: Submitted, style: Literal["text", "slurm", "id"] = "text") -> None:
    """Print the name of a submitted job, and notes before it where a script reads the name."""
    if style != "text":
        for note in made.notes:
            print_note(note)
        show(made.id if style == "id" else f"Submitted batch job {made.id}")
        return
    what = f" ({made.count:,} jobs, `{made.ids[0]}` to `{made.ids[-1]}`)" if made.count else ""
    show(f"submitted `{made.id}` for team `{made.team}`{what}")
    for note in made.notes:
        show(f"note: {note}")


def show_dry_run(found: DryRun) -> None:
    """Print what would happen to a job submitted now."""
    what = (
        f"the first of {found.count:,} tasks of `{found.name}`"
        if found.count
        else f"`{found.name}`"
    )
    if found.outcome == "starts":
        show(f"{what} of team `{found.team}` would start now on {node_list(found.nodes)}")
    else:
        verb = "could never start" if found.outcome == "never" else "would be pending"
        show(f"{what} of team `{found.team}` {verb}")
        _show_waiting(found.why, found.reason, found.eta)
    hold = found.could_hold
    more = f" and {hold.count - len(hold.nodes):,} more" if hold.count > len(hold.nodes) else ""
    named = f" ({node_list(hold.nodes)}{more})" if hold.nodes else ""
    if found.outcome != "never":
        show(f"nodes large enough: {hold.count:,}{named}")
    if found.is_brief:
        show("the queue is long: fixes and the forecast were skipped")
    for note in found.notes:
        show(f"note: {note}")


def dropped(attempt: int, count: int) -> str:
    """Return a note that the oldest part of a log was dropped."""
    return f"the oldest {count:,} bytes of the log of attempt {attempt} were dropped"


def show_why(answer: Why) -> None:
    """Print the reason for a job's state, and the nodes taken out of use for failing jobs."""
    _show_why(answer)
    for node in answer.nodes_out:
        show(f"cordoned: `{node.id}`: {node.sentence} [{node.code}]")


def _show_why(answer: Why) -> None:
    if answer.why is None:
        show(f"`{answer.id}`: {answer.state}")
        show_reason(answer.state, answer.reason)
        return
    team = answer.why.get("team")
    show(f"`{answer.id}` (team `{team}`): pending" if team else f"`{answer.id}`: pending")
    if answer.stopped is not UNSET:
        at = "" if answer.stopped_at is UNSET else f" at {second_of(answer.stopped_at)}"
        show(f"last attempt: stopped{at}: {answer.stopped}")
    _show_waiting(answer.why, answer.reason, answer.eta)


def show_history(history: Sequence[HistoryEvent]) -> None:
    """Print what happened to a job, in order."""
    rows = [[second_of(one.at), event_name(one.event), one.reason.sentence] for one in history]
    show("", table("", ["time", "event", "reason"], rows))


def show_reason(state: str, reason: Reason) -> None:
    """Print a reason, unless it only repeats the state or its own code."""
    if reason.sentence not in (state, reason.code) and reason.code != "running":
        code = "" if reason.code == state else f" [{reason.code}]"
        show(f"reason: {reason.sentence}{code}")


def _show_waiting(why: dict[str, Any] | None, reason: Reason, eta: Eta | None) -> None:
    # Capacity, holders and fixes read as for a recorded run.
    from tenfold.cli.job.render import show_waiting  # noqa: PLC0415
    from tenfold.study.why.why import Why as Found  # noqa: PLC0415

    try:
        show_waiting(msgspec.convert(why, Found), is_live=True)
    except msgspec.ValidationError:
        # A control plane of another version: its sentence can still be shown.
        show(f"reason: {reason.sentence} [{reason.code}]")
        if eta is not None:
            show(f"expected start: {eta_text(eta)}", f"forecast: {eta.basis}")


BY_HAND = "by-hand"
"""The code of a cordon by an operator, whose sentence is the operator's own cause."""


def cause_of(node: Node) -> str:
    """Return why a node is cordoned or down: as the operator wrote it, or as a code."""
    return node.sentence if node.cause == BY_HAND and node.sentence else node.cause


def show_nodes(nodes: Sequence[Node]) -> None:
    """Print nodes as a table, with virtual nodes marked."""
    rows = [
        [
            node.id,
            node.site,
            node.pool,
            f"{node.gpus} x {node.accelerator}" if node.gpus else "",
            "" if node.gpus_free is UNSET or not node.gpus else str(node.gpus - node.gpus_free),
            "" if node.gpus_free is UNSET or not node.gpus else str(node.gpus_free),
            node.state,
            cause_of(node),
            "yes" if node.pool.startswith(VIRTUAL) else "",
        ]
        for node in nodes
    ]
    if rows:
        columns = ["node", "site", "pool", "GPUs", ">allocated", ">free", "state", "reason"]
        columns.append("virtual")
        show(table("", columns, rows), "")
    gpus = sum(node.gpus for node in nodes)
    show(f"{count(len(nodes), 'node')}, {count(gpus, 'GPU')}")


def show_tokens(tokens: Sequence[Token]) -> None:
    """Print tokens as a table, without their secrets."""
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


def eta_text(eta: Eta, now: str | None = None) -> str:
    """Return a forecast for people: rounded, in UTC."""
    half = minute_of(rounded_up(eta.p50_at, now))
    if eta.p90_at is None:
        return f"about {half} (P50), P90 unknown"
    most = minute_of(rounded_up(eta.p90_at, now))
    return f"likely by {most} (P90)" if half == most else f"about {half} (P50), by {most} (P90)"
