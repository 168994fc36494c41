"""Why a shape can never run: the wish that makes it so is named, with counts."""

from msgspec.structs import replace

from tenfold.decide.place.misfit import never_fits
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.node import Node
from tenfold.model.job.job import Shape, shape_of
from tenfold.report.reasons.render import render
from tenfold.testing.builders import fleet, in_domains, nodes


def told(members: list[Node], shape: Shape) -> list[tuple[str, str]]:
    capacity = TopologyCapacity.of(fleet(members))
    assert not capacity.could_hold(shape)
    return [(reason.code, render(reason)) for reason in never_fits(capacity, shape)]


def gang(members: int, where: PlacementConstraints | None = None, gpus: int = 8) -> Shape:
    return shape_of(members * gpus, gpus_per_node=gpus, where=where)


def tagged(members: list[Node], *tags: str) -> list[Node]:
    return [replace(node, tags=tags) for node in members]


def fed(members: list[Node], rack_watts: int) -> list[Node]:
    watts = {"watts_idle": 100, "watts_per_gpu": 100, "rack_watts": rack_watts}
    return [replace(node, **watts) for node in members]


def test_tags_that_no_node_bears_are_named():
    found = told(nodes(12), gang(1, PlacementConstraints(needs=("eu",), avoids=("production",))))
    said = "of the 12 nodes large enough, none is tagged `eu` without `production`"
    assert found == [("no-node-with-tags", said)]


def test_a_long_list_of_tags_is_named_in_part_and_counted():
    tags = tuple(f"t{number}" for number in range(60))
    found = told(nodes(12), gang(1, PlacementConstraints(needs=tags, avoids=("a", "b", "c"))))
    said = (
        "of the 12 nodes large enough, none is tagged `t0`, `t1`, `t2` and 57 more "
        "without `a` or `b` or `c`"
    )
    assert found == [("no-node-with-tags", said)]


def test_several_required_tags_are_joined_with_and():
    found = told(nodes(12), gang(1, PlacementConstraints(needs=("a", "b", "c"))))
    said = "of the 12 nodes large enough, none is tagged `a`, `b` and `c`"
    assert found == [("no-node-with-tags", said)]
    members = [*tagged(nodes(2), "a", "b"), *nodes(10, name="m")]
    found = told(members, gang(4, PlacementConstraints(needs=("a", "b"))))
    said = "needs 4 nodes tagged `a` and `b`; 2 of 12 are suitable"
    assert found == [("too-few-with-tags", said)]


def test_too_few_nodes_without_a_tag_are_counted():
    members = [*nodes(2), *tagged(nodes(10, name="m"), "production")]
    found = told(members, gang(4, PlacementConstraints(avoids=("production",))))
    said = "needs 4 nodes without `production`; 2 of 12 are suitable"
    assert found == [("too-few-with-tags", said)]


def test_too_few_nodes_with_a_tag_are_counted():
    members = [*tagged(nodes(2), "eu"), *nodes(10, name="m")]
    found = told(members, gang(4, PlacementConstraints(needs=("eu",))))
    assert found == [("too-few-with-tags", "needs 4 nodes tagged `eu`; 2 of 12 are suitable")]


def test_nodes_with_a_tag_that_are_not_alike_do_not_add_up():
    members = [
        *tagged(nodes(3), "eu"),
        *tagged(nodes(3, name="m"), "eu", "sovereign"),
        *nodes(6, name="o"),
    ]
    [(_, said)] = told(members, gang(4, PlacementConstraints(needs=("eu",))))
    assert said == "needs 4 nodes tagged `eu`; 6 of 12 are suitable, at most 3 of them identical"


def test_a_domain_that_all_must_share_is_named_with_its_size():
    members = in_domains(nodes(12), {"rack": 4})
    found = told(members, gang(6, PlacementConstraints(within="rack", how="required")))
    said = "needs 6 nodes in one rack; the largest has 4"
    assert found == [("larger-than-a-domain", said)]


def test_equal_parts_that_no_domains_allow_are_named():
    racks = [replace(node, rack="small" if node.id == "n3" else "large") for node in nodes(4)]
    [(code, said)] = told(racks, gang(4, PlacementConstraints(within="rack", how="balanced")))
    assert code == "larger-than-a-domain"
    assert said == "needs 4 nodes split evenly by rack; the largest has 3"


def test_racks_that_cannot_feed_so_many_gpus_are_named():
    members = fed(in_domains(nodes(8), {"rack": 4}), rack_watts=1_300)
    found = told(members, gang(3))
    said = "needs 3 nodes with 8 GPUs each; rack power allows 2 of 8, even on an idle fleet"
    assert found == [("more-than-racks-feed", said)]
    [(_, said)] = told(members, gang(2, PlacementConstraints(within="rack", how="required")))
    assert "rack power allows 1 of 4 in the best rack" in said


def test_what_holds_only_together_is_told_together():
    members = [*tagged(nodes(2), "eu"), *in_domains(nodes(6, name="m"), {"rack": 3})]
    where = PlacementConstraints(within="rack", how="required", needs=("eu",))
    found = told(members, gang(4, where))
    assert [code for code, _ in found] == ["too-few-with-tags", "larger-than-a-domain"]


def test_size_is_blamed_where_nothing_else_is_in_the_way():
    [(code, said)] = told(nodes(2), gang(4, PlacementConstraints(within="rack", how="required")))
    assert code == "larger-than-the-fleet"
    assert said == "needs 4 nodes; the largest set of identical nodes has 2"
    [(code, said)] = told(nodes(2), gang(1, gpus=16))
    assert code == "larger-than-a-node"
    assert said == "needs 16 GPUs per node; the largest suitable node has 8"
    [(code, said)] = told(nodes(2, cpus=16), shape_of(1, cpus=64))
    assert (code, said) == (
        "larger-than-a-node",
        "no node is large enough for one of its processes",
    )


def test_an_index_without_places_blames_tags_alone():
    members = fed(in_domains(nodes(8), {"rack": 4}), rack_watts=1_300)
    capacity = Capacity.of(fleet(members))
    [reason] = never_fits(capacity, gang(2, PlacementConstraints(within="rack", needs=("eu",))))
    assert reason.code == "no-node-with-tags"
    [reason] = never_fits(capacity, gang(9))
    assert reason.code == "larger-than-the-fleet"
