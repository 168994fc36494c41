"""Whatever never fits is told a cause that is true: worked out the slow way, it never does."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.decide.place.misfit import CODES, never_fits
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.obstacle import without_tags, without_topology
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.events import NodeJoined
from tenfold.model.units import Millis
from tests.rigs.fits import fits_ever
from tests.rigs.worlds import drawn_world


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_shape_is_said_never_to_fit_only_where_it_never_does(seed: int):
    world = drawn_world(Random(seed), jobs=(20, 40), faults=(0, 0), governed=True)
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), node) for node in world.nodes])
    capacity = TopologyCapacity.of(fleet)
    for shape in {job.shape.key: job.shape for job in world.jobs}.values():
        if capacity.could_hold(shape):
            continue
        reasons = never_fits(capacity, shape)
        codes = [reason.code for reason in reasons]
        assert all(code in CODES for code in codes)
        balanced = shape.where is not None and shape.where.how == "balanced"
        assert balanced or not fits_ever(fleet, shape)
        if codes in (["no-node-with-tags"], ["too-few-with-tags"]):
            assert capacity.could_hold(without_tags(shape))
        if codes == ["larger-than-a-domain"]:
            assert capacity.could_hold(without_topology(shape))
