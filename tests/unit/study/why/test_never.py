"""What can never start on a fleet, and how GPUs divide over its nodes."""

import pytest
from msgspec.structs import replace

from tenfold.files.jobs.submission import submission_of
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.node import Node
from tenfold.model.ids import TeamId
from tenfold.model.job.job import shape_of
from tenfold.model.job.submission import Submission
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import POLICIES, Policy, PolicyName
from tenfold.model.policy.slurm import SlurmPartition, SlurmPolicy
from tenfold.model.units import Millis
from tenfold.report.reasons.render import Reader
from tenfold.study.why.never import FleetCheck, most_that, sized
from tenfold.study.why.would_fit import not_divisible, refusal_findings
from tenfold.testing.builders import in_domains, nodes

EIGHTS = nodes(4, gpus=8, accelerator="H100", cpus=64, memory_gib=512)
FOURS = nodes(4, gpus=4, accelerator="L4", cpus=32, memory_gib=128, name="m")


def asked(**values: object) -> Submission:
    findings: list[Finding] = []
    found = submission_of({"command": ["true"], **values}, TeamId("red"), "ann", findings)
    assert found is not None, findings
    return found


def check_of(*members: Node, policy: Policy | None = None) -> FleetCheck:
    return FleetCheck(members or EIGHTS, policy or Policy(), Millis(0))


def said(check: FleetCheck, **values: object) -> list[tuple[str, str]]:
    one = asked(**values)
    found = refusal_findings(check, one, check.never(one), values.keys(), Reader(sees_all=True))
    return [(each.field, each.code) for each in found]


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_refuses_the_same_sizes(name: PolicyName):
    check = check_of(policy=Policy(name=name))
    assert said(check, gpus_per_node=16) == [("gpus_per_node", "larger-than-a-node")]
    assert said(check, nodes=5, gpus_per_node=8) == [("nodes", "larger-than-the-fleet")]
    assert said(check, accelerator="A100") == [("accelerator", "no-such-accelerator")]
    assert said(check, gpus_per_node=8, nodes=4) == []


def test_gpus_per_node_are_on_one_node_even_where_smaller_nodes_would_hold_them():
    shape = asked(gpus_per_node=8).shape
    assert (shape.gpus, shape.gpus_per_node) == (8, 8)
    assert said(check_of(*FOURS), gpus_per_node=8) == [("gpus_per_node", "larger-than-a-node")]
    assert said(check_of(*FOURS), gpus=8) == []


@pytest.mark.parametrize(
    ("gpus", "per_node"),
    [(1, None), (4, None), (8, None), (16, None), (32, None), (6, 6), (12, 4), (5, 5)],
)
def test_gpus_are_divided_so_that_a_job_holds_exactly_as_many(gpus: int, per_node: int | None):
    check = check_of(*EIGHTS, *FOURS)
    found = check.exact_split(shape_of(gpus))
    assert found is not None
    assert (found.gpus, found.gpus_per_node) == (gpus, per_node)
    splits = check.capacity.splits(found)
    possible = [one for one in splits if one.members <= len(one.node_index.names)]
    assert all(one.members * one.gpus == gpus for one in possible)


def test_gpus_that_no_whole_nodes_provide_are_refused_with_what_would():
    check = check_of()
    assert check.exact_split(shape_of(12)) is None
    found = not_divisible(check, shape_of(12), ("gpus",))
    assert found.hint == "use `gpus = 8`, or `gpus = 16`, or `nodes = 2` with `gpus_per_node = 6`"
    assert (found.field, "would occupy 16" in found.message) == ("gpus", True)


@pytest.mark.parametrize("gpus", range(1, 70))
@pytest.mark.parametrize("each", [1, 3, 4, 5, 8, 9, 16])
def test_a_size_in_a_hint_fits(gpus: int, each: int):
    check = check_of(*EIGHTS, *FOURS)
    one = asked(nodes=gpus, gpus_per_node=each)
    reasons = check.never(one)
    for found in check.even_splits(one.shape):
        assert check.capacity.could_hold(found)
        assert found.gpus == one.shape.gpus
        break
    hints = refusal_findings(check, one, reasons, ("nodes",), Reader(sees_all=True))
    assert bool(hints) == bool(reasons)
    for hint in hints:
        words = hint.hint.replace("`", "").split()
        if words[:2] == ["use", "nodes"]:
            count, per_node = int(words[3]), int(words[7].rstrip(",;"))
            assert not check.never(asked(nodes=count, gpus_per_node=per_node))


def test_other_nodes_keep_the_cpus_and_memory_of_each_node():
    shape = asked(nodes=2, gpus_per_node=8, cpus_per_node=4, memory_gib_per_node=10).shape
    found = sized(shape, 16, 4)
    assert (found.cpus_milli, found.memory_mib) == (16_000, 40 * 1_024)


def test_the_key_that_is_too_large_is_named():
    check = check_of(*EIGHTS, *FOURS)
    assert said(check, gpus_per_node=8, cpus_per_node=65) == [
        ("cpus_per_node", "larger-than-a-node")
    ]
    assert said(check, gpus_per_node=8, memory_gib_per_node=513) == [
        ("memory_gib_per_node", "larger-than-a-node")
    ]
    assert said(check, memory_gib_per_node=512, cpus_per_node=65) == [
        ("cpus_per_node", "larger-than-a-node")
    ]


def test_a_policy_that_ignores_topology_does_not_refuse_for_it():
    members = in_domains(EIGHTS, {"rack": 2})
    values: dict[str, object] = {"nodes": 3, "gpus_per_node": 8, "within": "rack"}
    one = {**values, "how": "required"}
    assert said(check_of(*members), **one) == []
    assert said(check_of(*members, policy=Policy(name="governed")), **one) == [
        ("within", "larger-than-a-domain")
    ]


def test_residency_of_the_team_counts():
    teams = (TeamRules(id=TeamId("red"), residency=("CH",)),)
    policy = Policy(name="governed", govern=GovernanceRules(teams=teams))
    assert said(check_of(policy=policy), gpus_per_node=1) == [("team", "no-node-with-tags")]
    swiss = [replace(node, tags=("CH",)) for node in EIGHTS]
    assert said(check_of(*swiss, policy=policy), gpus_per_node=1) == []


def test_a_partition_of_slurm_may_be_too_small():
    partition = SlurmPartition(name="gpu", nodes="n[0-1]", is_default=True)
    policy = Policy(name="slurm", slurm=SlurmPolicy(partitions=(partition,)))
    found = said(check_of(policy=policy), nodes=3, gpus_per_node=8)
    assert [code for _, code in found] == ["larger-than-the-partition"]


def test_the_largest_number_is_found():
    assert [most_that(lambda n, m=most: n <= m, 100) for most in (0, 1, 57, 100, 200)] == [
        0,
        1,
        57,
        100,
        100,
    ]
