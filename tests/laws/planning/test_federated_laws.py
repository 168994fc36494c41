"""What must hold for every federated round."""

from itertools import combinations, pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.model.federated import FederatedJob, FederatedSite
from tenfold.model.ids import SiteId
from tenfold.model.reason import Misfit
from tenfold.physics.federated import Round, RoundTime, federated_round


@st.composite
def jobs(draw: st.DrawFn) -> FederatedJob:
    count = draw(st.integers(1, 6))
    sites = tuple(
        FederatedSite(
            site=SiteId(f"s{at}"),
            step_s=draw(st.floats(0.01, 100)),
            samples=draw(st.integers(1, 10_000)),
            slowdown=draw(st.floats(1, 10)),
            bytes_per_s=draw(st.none() | st.floats(1e4, 1e10)),
            latency_s=draw(st.floats(0, 1)),
            usd_per_gb=draw(st.floats(0, 1)),
        )
        for at in range(count)
    )
    drawn = draw(st.integers(1, count))
    return FederatedJob(
        sites=sites,
        model_bytes=draw(st.floats(1e3, 1e12)),
        local_steps=draw(st.integers(1, 1000)),
        per_round=drawn,
        quorum=draw(st.integers(1, drawn)),
        compression=draw(st.floats(1, 100)),
        deadline_s=draw(st.none() | st.floats(1, 1e7)),
        average_s=draw(st.floats(0, 10)),
    )


def of(job: FederatedJob) -> Round:
    found = federated_round(job)
    assume(not isinstance(found, Misfit))
    assert isinstance(found, Round)
    return found


@given(jobs())
def test_the_parts_add_up_to_the_round(job: FederatedJob):
    found = of(job)
    parts = [getattr(found.breakdown_s, name) for name in RoundTime.__struct_fields__]
    assert min(parts) >= 0
    assert sum(parts) == pytest.approx(found.round_s, rel=1e-9)
    assert sum(one.weight for one in found.sites) == pytest.approx(1)
    assert sum(one.closes for one in found.sites) == pytest.approx(found.succeeds)


@given(jobs())
def test_the_mean_is_that_of_every_draw(job: FederatedJob):
    """Each draw of sites by hand, against the closed form."""
    found = of(replace(job, deadline_s=None))
    totals = [one.total_s for one in found.sites]
    closed = [
        sorted(chosen)[job.quorum - 1] + job.average_s
        for chosen in combinations(totals, job.per_round)
    ]
    assert found.round_s == pytest.approx(sum(closed) / len(closed), rel=1e-9)


@given(jobs(), st.floats(1, 100))
def test_better_links_never_lengthen_a_round(job: FederatedJob, factor: float):
    job = replace(job, deadline_s=None)
    better = tuple(
        replace(one, bytes_per_s=None if one.bytes_per_s is None else one.bytes_per_s * factor)
        for one in job.sites
    )
    assert of(replace(job, sites=better)).round_s <= of(job).round_s * (1 + 1e-9)
    tighter = replace(job, compression=job.compression * factor)
    assert of(tighter).round_s <= of(job).round_s * (1 + 1e-9)
    assert of(tighter).wan_bytes_per_round <= of(job).wan_bytes_per_round


@given(jobs())
def test_a_smaller_quorum_never_waits_longer(job: FederatedJob):
    job = replace(job, deadline_s=None)
    waits = [of(replace(job, quorum=count)).round_s for count in range(1, job.per_round + 1)]
    assert all(one <= other * (1 + 1e-9) for one, other in pairwise(waits))


@given(jobs())
def test_more_local_steps_send_less_for_each(job: FederatedJob):
    job = replace(job, deadline_s=None)
    twice = of(replace(job, local_steps=2 * job.local_steps))
    assert twice.steps_per_day >= of(job).steps_per_day * (1 - 1e-9)
    assert twice.wan_bytes_per_round == of(job).wan_bytes_per_round
