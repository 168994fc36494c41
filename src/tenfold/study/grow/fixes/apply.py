"""Files of a fleet with its first fixes applied: read back, they are the same state.

The fleet file has what was bought; the grow file has what else changed, and names the original
fleet, because job history, failures and switches are of that one.
"""

from os.path import relpath
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tenfold.files.core.document import read_document
from tenfold.files.fleet.patch import grown_rows
from tenfold.files.fleet.read import read_tables
from tenfold.files.fleet.write import render_fleet_toml
from tenfold.files.growth_write import render_grow_toml
from tenfold.model.growth.growth import Grown
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import ANY
from tenfold.study.grow.inputs import ASYNC_SAVES, GrowInputs
from tenfold.study.grow.layers.jobs.team_limits import BORROWING, QUOTA
from tenfold.study.grow.state import State


class GrownFiles(Struct, frozen=True, kw_only=True):
    """The two files of a grown fleet, as text."""

    fleet: str
    grow: str


def grow_path(fleet: Path) -> Path:
    """Return where the grow file of a grown fleet is written: next to its fleet file."""
    return fleet.with_name(f"{fleet.stem}.grow.toml")


def grown_files(state: State, fleet: Path, grow: Path | None, out: Path) -> GrownFiles:
    """Return the files of a state that was reached from the files given."""
    inputs = state.inputs
    planned = inputs.planned
    old = inputs.fleet.spec if planned is None else planned.spec
    rows = read_tables(read_document(fleet).values, [])
    rows = grown_rows(rows, old, state.spec, inputs.fleet.catalogue)
    said = f"Grown from `{fleet.name}` by `tenfold grow --apply`."
    named = rows if rows.name else replace(rows, name=old.name)
    before = (
        fleet
        if inputs.grow.grown is None or grow is None
        else grow.parent / inputs.grow.grown.fleet
    )
    grown = _grown(state, inputs, relpath(before, out.parent))
    return GrownFiles(
        fleet=render_fleet_toml(named, [said]),
        grow=render_grow_toml(replace(state.grow, grown=grown), [said]),
    )


def _grown(state: State, inputs: GrowInputs, before: str) -> Grown:
    policy, ran = state.policy, inputs.policy
    starts = None if policy.slurm is None else policy.slurm.jobs_started_max
    was = None if ran.slurm is None else ran.slurm.jobs_started_max
    applied = inputs.grow.grown
    quotas = QUOTA in state.reliefs or bool(applied and applied.quota_gpus)
    teams = policy.govern.teams if policy.govern is not None and quotas else ()
    free = BORROWING in state.reliefs or bool(applied and applied.free_borrowing)
    capacity: dict[str, float] = {}
    for key, times in state.scaled:
        capacity[key] = capacity.get(key, 1.0) * times
    return Grown(
        fleet=before,
        policy=policy.name if policy.name != ran.name else "",
        sched_max_job_start=starts if starts != was else None,
        quota_gpus={str(team.id): team.quota[ANY] / WHOLE for team in teams},
        free_borrowing=free,
        async_checkpoints=ASYNC_SAVES in state.reliefs,
        capacity=capacity,
        usd_per_month=sum(state.purchases),
    )
