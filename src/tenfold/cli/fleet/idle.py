"""`tenfold fleet idle`: who holds GPUs and does not use them, and what that costs."""

from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.output import print_json, show, table
from tenfold.client.client import Client
from tenfold.model.api.fleet import Idle, IdleJob
from tenfold.model.api.jobs import Use
from tenfold.report.figures import count

SHOWN = 50
"""Jobs that the table names; JSON has 1,000."""


def idle_command(
    *,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")] = False,
) -> None:
    """Show the GPUs that jobs hold and do not use, by team and by job.

    Asks the control plane that runs. GPU-hours are counted since each job began to idle.
    """
    with Client() as client:
        found = client.idle()
    print_json(found) if as_json else show_idle(found)


def show_idle(found: Idle) -> None:
    """Print who idles as tables."""
    if not found.jobs:
        show("no job idles")
        return
    teams = [
        [one.team, str(one.jobs), f"{one.gpus:g}", f"{one.gpu_hours_lost:,.2f}"]
        for one in found.teams
    ]
    show(table("", ["team", ">jobs", ">GPUs", ">GPU-hours lost"], teams), "")
    columns = ["job", "team", "kind", ">GPUs", "idle since", ">GPU-hours lost", "uses"]
    show(table("", columns, [_row(one) for one in found.jobs[:SHOWN]]), "")
    jobs = sum(one.jobs for one in found.teams)
    lost = f"{found.gpu_hours_lost:,.2f} GPU-hours lost"
    show(f"{count(jobs, 'job')}, {found.gpus:g} GPUs held and not used, {lost}")


def used(use: Use) -> str:
    """Return what was measured, in words: a stand-in says that it is one."""
    if use.measure == "gpu":
        memory = (use.gpu_memory_bytes or 0) / 2**30
        return f"{use.share:.0%} of its GPUs, {memory:,.1f} GiB of their memory"
    return f"{use.share:.2f} CPUs, by CPU time"


def _row(one: IdleJob) -> list[str]:
    since = one.idle_since or ""
    return [
        one.id,
        one.team,
        one.kind,
        f"{one.gpus:g}",
        f"{since[:10]} {since[11:19]}Z" if since else "",
        f"{one.gpu_hours_lost:,.2f}",
        "" if one.use is None else used(one.use),
    ]
