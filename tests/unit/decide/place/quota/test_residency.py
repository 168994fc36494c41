"""Residency of a team, applied to its jobs."""

from tenfold.decide.place.quota.residency import Residency
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.units import Millis

LAB = TeamRules(id=TeamId("lab"), residency=("eu",))
VISION = TeamRules(id=TeamId("vision"), parent=TeamId("lab"), residency=("certified",))
RULES = GovernanceRules(teams=(LAB, VISION, TeamRules(id=TeamId("other"))))


def job(team: str, where: PlacementConstraints | None = None) -> Job:
    shape = shape_of(2, where=where)
    return Job(id=JobId("job"), shape=shape, submitted_ms=Millis(0), team=TeamId(team))


def test_jobs_need_the_tags_of_their_team_and_of_the_teams_above_it():
    residency = Residency(RULES)
    assert residency.apply(job("lab")).shape == shape_of(
        2, where=PlacementConstraints(needs=("eu",))
    )
    assert residency.apply(job("vision")).shape == shape_of(
        2, where=PlacementConstraints(needs=("certified", "eu"))
    )


def test_what_a_job_requires_itself_stays():
    near = PlacementConstraints(within="rack", how="required", needs=("fast",))
    needs = PlacementConstraints(within="rack", how="required", needs=("fast", "eu"))
    assert Residency(RULES).apply(job("lab", near)).shape == shape_of(2, where=needs)


def test_a_job_that_has_the_tags_or_whose_team_needs_none_is_the_same_job():
    residency = Residency(RULES)
    for one in (job("other"), job("nobody"), residency.apply(job("vision"))):
        assert residency.apply(one) is one
