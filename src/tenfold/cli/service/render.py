"""Services as tables and sentences."""

from collections.abc import Sequence

from tenfold.cli.job.columns import second_of
from tenfold.cli.output import show, table
from tenfold.model.api.services import Replica, Service
from tenfold.report.figures import count

RISKS_SHOWN = 3


def show_services(services: Sequence[Service]) -> None:
    """Print services, one per line."""
    if not services:
        show("no services; deploy one with `tenfold service deploy FILE`")
        return
    columns = ("service", "team", "state", "ready", "range", "revision", "rollout")
    rows = [
        (
            one.name,
            one.team,
            one.state,
            f"{one.ready}/{one.target}",
            _range(one),
            one.current,
            f"{one.canary} at {one.canary_weight:g}%" if one.canary else "",
        )
        for one in services
    ]
    show(table("", columns, rows))


def show_service(one: Service) -> None:
    """Print a service with its revisions and replicas."""
    show(f"`{one.name}` (team `{one.team}`): {summary_of(one)}")
    by = f" by {one.by}" if one.by else ""
    if one.deployed_at is not None:
        show(f"deployed at {second_of(one.deployed_at)}{by}")
    show(f"replicas: {one.target} desired, {one.ready} ready, range {_range(one)}")
    if one.scaled is not None:
        show(f"because: {one.scaled.sentence} [{one.scaled.code}]")
    if one.cold_start_s is not None:
        show(f"cold start: {one.cold_start_s:.1f} s, measured")
    if one.quorum_risks and one.replicas_min > 1:
        risks = [f"{each.kind} {each.name} ({each.ready_left} left)" for each in one.quorum_risks]
        more = f" and {len(risks) - RISKS_SHOWN} more" if len(risks) > RISKS_SHOWN else ""
        show(f"below its minimum without: {', '.join(risks[:RISKS_SHOWN])}{more}")
    for each in one.revisions:
        if each.failures and each.role in ("current", "canary"):
            failed = f"{count(each.failures, 'replica')} of `{each.name}` failed in a row"
            show(f"{failed}; see `tenfold job list --state failed`")
    if one.rolled_back is not None:
        show(f"last rollback: {one.rolled_back.sentence} [{one.rolled_back.code}]")
    show(
        table(
            "revisions",
            ("revision", "role", "model", "requests", "deployed", "command"),
            [
                (
                    each.name,
                    each.role,
                    each.model,
                    f"{each.weight:g}%",
                    "" if each.deployed_at is None else second_of(each.deployed_at),
                    " ".join(each.command)[:60],
                )
                for each in one.revisions
            ],
        )
    )
    if one.replicas:
        show(
            table(
                "replicas",
                ("job", "revision", "state", "node", "address", "reason"),
                [_row(each) for each in one.replicas],
            )
        )


def summary_of(one: Service) -> str:
    """Return the state of a service in a few words."""
    rollout = f", {one.canary} gets {one.canary_weight:g}%" if one.canary else ""
    return f"{one.state}, {one.ready} of {one.target} replicas ready, {one.current}{rollout}"


def _row(one: Replica) -> tuple[str, ...]:
    reason = "" if one.reason is None else one.reason.sentence
    return one.id, one.revision, one.state, ", ".join(one.nodes), one.url, reason


def _range(one: Service) -> str:
    if one.replicas_min == one.replicas_max:
        return str(one.replicas_min)
    return f"{one.replicas_min}-{one.replicas_max}"
