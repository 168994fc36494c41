"""`tenfold fleet idle`: GPUs that are allocated but idle, and the GPU-hours lost."""

from tenfold.cli.arguments import Json
from tenfold.cli.output import print_json, show, table
from tenfold.client.client import Client
from tenfold.model.api.fleet import Idle, IdleJob
from tenfold.model.api.jobs import Use
from tenfold.report.figures import count

SHOWN = 50
"""Jobs in the table; JSON has up to 1,000."""


def idle_command(
    *,
    as_json: Json = False,
) -> None:
    """Show allocated but idle GPUs by team and by job."""
    with Client() as client:
        found = client.idle()
    print_json(found) if as_json else show_idle(found)


def show_idle(found: Idle) -> None:
    """Print idle GPUs as tables."""
    if not found.jobs:
        show("no idle jobs")
        return
    teams = [
        [one.team, str(one.jobs), f"{one.gpus:g}", f"{one.gpu_hours_lost:,.2f}"]
        for one in found.teams
    ]
    show(table("", ["team", ">jobs", ">GPUs", ">GPU-hours lost"], teams), "")
    columns = ["job", "team", "kind", ">GPUs", "idle since", ">GPU-hours lost", "usage"]
    show(table("", columns, [_row(one) for one in found.jobs[:SHOWN]]), "")
    jobs = sum(one.jobs for one in found.teams)
    lost = f"{found.gpu_hours_lost:,.2f} GPU-hours lost"
    show(f"{count(jobs, 'job')}, {found.gpus:g} idle GPUs, {lost}")


def used(use: Use) -> str:
    """Return the measured usage in words, with the source if it is not the GPU."""
    if use.measure == "gpu":
        memory = (use.gpu_memory_bytes or 0) / 2**30
        return f"GPU {use.share:.0%}, {memory:,.1f} GiB of GPU memory"
    return f"{use.share:.2f} CPU cores (from CPU time)"


def _row(one: IdleJob) -> list[str]:
    since = one.idle_since or ""
    return [
        one.id,
        one.team,
        one.kind,
        f"{one.gpus:g}",
        f"{since[:10]} {since[11:19]} UTC" if since else "",
        f"{one.gpu_hours_lost:,.2f}",
        "" if one.use is None else used(one.use),
    ]
