"""Who holds the GPUs that a job could use, under policies without teams."""

from heapq import nlargest

from tenfold.decide.place.explain.holders import SHOWN, Holders, JobUsage, TeamUsage
from tenfold.decide.place.quota.allocations import PLAIN
from tenfold.fleet.fleet import FleetView
from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE, Run, Shape


def holders_in(view: FleetView, shape: Shape) -> Holders:
    """Return the teams and jobs that hold GPUs of suitable types, largest first."""
    by_team: dict[TeamId, int] = {}
    sized: list[tuple[int, int, int, Run]] = []
    for run in view.running.values():
        accelerator = view.nodes[run.slots[0].node].accelerator
        gpus = sum(slot.milli or slot.gpus * WHOLE for slot in run.slots)
        if gpus and (not shape.accelerators or accelerator in shape.accelerators):
            by_team[run.job.team] = by_team.get(run.job.team, 0) + gpus
            sized.append((gpus, -run.started_ms, -run.job.seq, run))
    teams = sorted(by_team.items(), key=lambda item: (-item[1], item[0]))
    return Holders(
        teams=tuple(TeamUsage(team=team, gpus_milli=gpus) for team, gpus in teams),
        jobs=tuple(
            JobUsage(
                job_id=run.job.id,
                team=run.job.team,
                gpus_milli=gpus,
                since_ms=run.started_ms,
                preemptible=(run.job.terms or PLAIN).preemptible,
                stopping=run.stopping,
            )
            for gpus, _, _, run in nlargest(SHOWN, sized, key=lambda item: item[:3])
        ),
    )
