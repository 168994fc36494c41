"""`tenfold job cancel` of all jobs of a user, a team, a name or a state."""

import sys
from collections.abc import Sequence

from msgspec import Struct

from tenfold.cli.job.listing import ListFilters, checked_states, find_in_states
from tenfold.cli.job.live import cancel_each
from tenfold.cli.job.names import array_of
from tenfold.cli.output import complain, print_json, show
from tenfold.client.client import Client
from tenfold.model.api.jobs import Job
from tenfold.model.errors import InputError
from tenfold.model.job.job import JobState
from tenfold.report.figures import count

ACTIVE: tuple[JobState, ...] = ("pending", "starting", "running")
JOBS_MOST = 10_000
"""Jobs of one command; more are cancelled by the next."""
NAMED_MOST = 5


class Selection(Struct, frozen=True, kw_only=True):
    """Which jobs to cancel; several options must all apply."""

    mine: bool = False
    user: str | None = None
    team: str | None = None
    name: str | None = None
    state: str | None = None


def cancel_selected(jobs: Sequence[str], selection: Selection, *, yes: bool, as_json: bool) -> None:
    """Cancel the jobs that were selected, once that is confirmed."""
    if jobs:
        raise InputError(
            "two-questions",
            f"`{jobs[0]}` and options that select jobs cannot be used together",
            "use one of them",
        )
    states = checked_states(selection.state) or ACTIVE
    wrong = [state for state in states if state not in ACTIVE]
    if wrong:
        raise InputError(
            "wrong-value",
            f"jobs that are {wrong[0]} cannot be cancelled",
            "use --state pending or --state running",
            field="--state",
        )
    with Client() as client:
        user = client.who_am_i().name if selection.mine else selection.user
        filters = ListFilters(team=selection.team, user=user, limit=JOBS_MOST)
        found = find_in_states(client, filters, states, None).jobs
        chosen = [job for job in found if selection.name in (None, job.name)]
        if not chosen:
            print_json([]) if as_json else show("no matching jobs")
            return
        if not yes:
            _confirm(chosen)
        whole = selection.state is None
        ids = dict.fromkeys(array_of(job) if whole else job.id for job in chosen)
        cancel_each(client, list(ids), as_json=as_json)


def _confirm(jobs: Sequence[Job]) -> None:
    names = list(dict.fromkeys(array_of(job) for job in jobs))
    more = f" and {len(names) - NAMED_MOST:,} more" if len(names) > NAMED_MOST else ""
    running = sum(job.state == "running" for job in jobs)
    what = f"{count(len(jobs), 'job')}, {running:,} of them running: "
    what += ", ".join(names[:NAMED_MOST]) + more
    if not sys.stdin.isatty():
        raise InputError("not-confirmed", f"this cancels {what}", "add --yes to cancel them")
    complain(f"this cancels {what}")
    complain("cancel them? [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InputError("not-confirmed", "nothing was cancelled", "answer y, or add --yes")
