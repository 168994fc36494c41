"""Why a shape can never run: the wish that makes it so is named, with counts."""

from msgspec.structs import replace

from tenfold.decide.place.misfit import never_fits
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.topology import TopologyCapacity
from tenfold.model.job import Shape, shape_of
from tenfold.model.node import Node
from tenfold.model.where import Where
from tenfold.testing.builders import fleet, in_domains, nodes


def told(members: list[Node], shape: Shape) -> list[tuple[str, str]]:
    capacity = TopologyCapacity.of(fleet(members))
    assert not capacity.could_hold(shape)
    return [(reason.code, reason.sentence) for reason in never_fits(capacity, shape)]


def gang(members: int, where: Where | None = None, gpus: int = 8) -> Shape:
    return shape_of(members * gpus, gpus_per_node=gpus, where=where)


def tagged(members: list[Node], *tags: str) -> list[Node]:
    return [replace(node, tags=tags) for node in members]


def fed(members: list[Node], rack_watts: int) -> list[Node]:
    watts = {"watts_idle": 100, "watts_per_gpu": 100, "rack_watts": rack_watts}
    return [replace(node, **watts) for node in members]


def test_tags_that_no_node_bears_are_named():
    found = told(nodes(12), gang(1, Where(needs=("eu",), avoids=("production",))))
    said = "none of the 12 nodes that could hold a member bears `eu` and no `production`"
    assert found == [("no-node-with-tags", said)]


def test_too_few_nodes_with_a_tag_are_counted():
    members = [*tagged(nodes(2), "eu"), *nodes(10, name="m")]
    found = told(members, gang(4, Where(needs=("eu",))))
    assert found == [("too-few-with-tags", "it needs 4 nodes that bear `eu`: 2 of 12 do")]


def test_nodes_with_a_tag_that_are_not_alike_do_not_add_up():
    members = [
        *tagged(nodes(3), "eu"),
        *tagged(nodes(3, name="m"), "eu", "sovereign"),
        *nodes(6, name="o"),
    ]
    [(_, said)] = told(members, gang(4, Where(needs=("eu",))))
    assert said == "it needs 4 nodes that bear `eu`: 6 of 12 do, at most 3 of them alike"


def test_a_domain_that_all_must_share_is_named_with_its_size():
    members = in_domains(nodes(12), {"rack": 4})
    found = told(members, gang(6, Where(within="rack", how="required")))
    said = "it needs 6 nodes in one rack, and the largest rack has 4 alike"
    assert found == [("larger-than-a-domain", said)]


def test_equal_parts_that_no_domains_allow_are_named():
    racks = [replace(node, rack="small" if node.id == "n3" else "large") for node in nodes(4)]
    [(code, said)] = told(racks, gang(4, Where(within="rack", how="balanced")))
    assert code == "larger-than-a-domain"
    assert said == "it needs 4 nodes in equal parts over racks, and the largest rack has 3 alike"


def test_racks_that_cannot_feed_so_many_gpus_are_named():
    members = fed(in_domains(nodes(8), {"rack": 4}), rack_watts=1_300)
    found = told(members, gang(3))
    said = "it needs 3 nodes with 8 GPUs, and racks feed 2 of 8 at once, even if all were idle"
    assert found == [("more-than-racks-feed", said)]
    [(_, said)] = told(members, gang(2, Where(within="rack", how="required")))
    assert "and the best rack feeds 1 of its 4 at once" in said


def test_what_holds_only_together_is_told_together():
    members = [*tagged(nodes(2), "eu"), *in_domains(nodes(6, name="m"), {"rack": 3})]
    where = Where(within="rack", how="required", needs=("eu",))
    found = told(members, gang(4, where))
    assert [code for code, _ in found] == ["too-few-with-tags", "larger-than-a-domain"]


def test_size_is_blamed_where_nothing_else_is_in_the_way():
    [(code, said)] = told(nodes(2), gang(4, Where(within="rack", how="required")))
    assert code == "larger-than-the-fleet"
    assert said == "the gang needs 4 nodes and the largest set of nodes alike has 2"
    [(code, said)] = told(nodes(2), gang(1, gpus=16))
    assert code == "larger-than-a-node"
    assert said == "a member asks for 16 GPUs and the largest node that would do has 8"
    [(code, said)] = told(nodes(2, cpus=16), shape_of(1, cpus=64))
    assert (code, said) == ("larger-than-a-node", "no node can hold a member of shape `1 c64000`")


def test_an_index_without_places_blames_tags_alone():
    members = fed(in_domains(nodes(8), {"rack": 4}), rack_watts=1_300)
    capacity = Capacity.of(fleet(members))
    [reason] = never_fits(capacity, gang(2, Where(within="rack", needs=("eu",))))
    assert reason.code == "no-node-with-tags"
    [reason] = never_fits(capacity, gang(9))
    assert reason.code == "larger-than-the-fleet"
