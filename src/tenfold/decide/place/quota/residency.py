"""Residency: the jobs of a team run only on nodes with the tags that the team requires.

The policy applies it to every job that it sees, so it holds in every world, for jobs that were
submitted under another policy, and for old records.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import TeamId
from tenfold.model.job.job import Job, Shape
from tenfold.model.policy.governance import GovernanceRules, tags_needed


class Residency:
    """The tags that each team requires."""

    def __init__(self, govern: GovernanceRules) -> None:
        teams = {team.id: team for team in govern.teams}
        tags = {name: tags_needed(team, teams) for name, team in teams.items()}
        self._tags: dict[TeamId, tuple[str, ...]] = {name: own for name, own in tags.items() if own}
        self._shapes: dict[tuple[str, tuple[str, ...]], Shape] = {}

    def apply(self, job: Job) -> Job:
        """Return a job whose nodes must have the tags of its team."""
        tags = self._tags.get(job.team) if self._tags else None
        if tags is None:
            return job
        where = job.shape.where
        if where is not None and all(tag in where.needs for tag in tags):
            return job
        key = (job.shape.key, tags)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = _with_tags(job.shape, tags)
        return replace(job, shape=shape)


def _with_tags(shape: Shape, tags: Sequence[str]) -> Shape:
    old = shape.where or PlacementConstraints()
    where = replace(old, needs=tuple(dict.fromkeys((*old.needs, *tags))))
    base_key = shape.key.removesuffix(old.key).rstrip()
    return replace(shape, key=f"{base_key} {where.key}", where=where)
