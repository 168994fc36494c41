"""Jobs beside each other in the simulated world: their ends move with what others do."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from contention_builders import layers, reader
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.model.job.job import Job
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.policy.policy import Policy
from tenfold.model.units import SECOND, Bytes, Millis
from tenfold.sim.contention.model import ContentionModel
from tenfold.sim.contention.solver import ContentionSolver
from tenfold.testing.builders import job, nodes


def ends(
    jobs: Sequence[Job], profiles: Mapping[str, WorkProfile], read: float = 100e9
) -> dict[str, float]:
    """Return when each job is over, on four nodes of one leaf that share the tier `hot`."""
    shared = ContentionModel(
        ContentionSolver(layers(1.0, nodes=4, read=read, write=read)), profiles
    )
    named = [replace(node, id=f"n{number + 1}") for number, node in enumerate(nodes(4))]
    request = SimRequest(nodes=named, jobs=jobs, policy=Policy(name="fifo"), contention=shared)
    return {end[0].id: end[4] / SECOND for end in simulate(request).meters.ends}


def with_profile(one: Job, profile: str) -> Job:
    return replace(one, profile=profile)


def test_a_job_without_a_profile_runs_as_if_alone():
    jobs = [job(0, 8, runs_s=100), job(1, 8, runs_s=100)]
    assert ends(jobs, {}) == {"job-0": 100, "job-1": 100}


def test_two_readers_share_a_tier_until_one_is_done():
    # Each wants all of the tier: side by side they go at half speed.
    profiles = {"read": WorkProfile(traffic=reader(rate=1e9))}
    jobs = [with_profile(job(0, 8, runs_s=100), "read"), with_profile(job(1, 8, runs_s=50), "read")]
    assert ends(jobs, profiles, read=8e9) == {"job-1": 100, "job-0": 150}


def test_a_save_slows_a_reader_while_it_lasts():
    saver = Traffic(
        tier="hot", checkpoint_bytes=Bytes(400 * 10**9), checkpoint_every_ms=Millis(50 * SECOND)
    )
    profiles = {
        "read": WorkProfile(traffic=reader(rate=1e9)),
        "save": WorkProfile(traffic=saver),
    }
    alone = [with_profile(job(0, 8, runs_s=100), "read")]
    beside = [*alone, with_profile(job(1, 8, runs_s=90), "save")]
    assert ends(alone, profiles, read=8e9)["job-0"] == 100
    late = ends(beside, profiles, read=8e9)
    assert late["job-0"] > 110
    assert late["job-1"] == 90


def test_a_gang_makes_of_whole_nodes_what_its_curve_says():
    linear = WorkProfile(scaling=((1, 1.0), (64, 1.0)))
    worse = WorkProfile(scaling=((12, 1.0), (16, 0.75)))
    flat = WorkProfile()
    profiles = {"linear": linear, "worse": worse, "flat": flat}
    for name, expected in (("linear", 75), ("worse", 100), ("flat", 100)):
        # Twelve GPUs take two nodes of eight.
        assert ends([with_profile(job(0, 12, runs_s=100), name)], profiles) == {"job-0": expected}
