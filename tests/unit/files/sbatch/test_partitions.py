"""`-p NAME` selects the nodes that `tenfold sinfo` lists under this name, or is refused."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold.files.sbatch.script import read_options, read_script
from tenfold.files.sbatch.site import NodeKind, NodeSize, Site, selecting
from tenfold.files.sbatch.translate import BatchJob, batch_job

HOPPER = NodeKind("virtual-hopper", "H100", ("EU", "virtual"))
AMPERE = NodeKind("virtual-ampere", "A100", ("EU", "virtual"))
SOUTH = NodeKind("virtual-south", "A100", ("US", "virtual"))
TWINS = (NodeKind("a", "H100", ("EU",)), NodeKind("b", "H100", ("EU",)))
SIZES = (
    NodeSize("H100", 8, 96.0, 512.0, "virtual-hopper"),
    NodeSize("A100", 8, 64.0, 256.0, "virtual-ampere"),
    NodeSize("A100", 8, 32.0, 128.0, "virtual-south"),
)
SITE = Site(SIZES, (HOPPER, AMPERE, SOUTH))
KEYS = ("accelerator", "avoids", "needs")


def job_with(line: str, site: Site = SITE) -> BatchJob:
    options, _ = read_options(line.split())
    script = read_script("run.sh", "#!/bin/bash\n")
    return batch_job(script, options, (), folder="/data", site=site)


@pytest.mark.parametrize(
    ("line", "keys", "note"),
    [
        ("-p hopper", {"accelerator": ["H100"]}, "nodes with `H100` GPUs"),
        ("-p virtual-hopper", {"accelerator": ["H100"]}, "nodes with `H100` GPUs"),
        ("-p south", {"needs": ["US"]}, "nodes with the tag `US`"),
        ("-p EU", {"needs": ["EU"]}, "nodes with the tag `EU`"),
        (
            "-p ampere",
            {"needs": ["EU", "virtual"], "accelerator": ["A100"]},
            "nodes with `A100` GPUs and the tag `EU`, `virtual`",
        ),
        ("-p ampere,south", {"accelerator": ["A100"]}, "nodes with `A100` GPUs"),
        ("-p hopper,ampere,south", {}, "all nodes"),
        ("-p virtual", {}, "all nodes"),
        ("-p hopper --gres=gpu:h100:4", {"accelerator": ["H100"]}, "nodes with `H100` GPUs"),
        ("-p EU -C US", {"needs": ["EU", "US"]}, "nodes with the tag `EU`"),
    ],
)
def test_a_partition_becomes_the_fewest_keys_that_select_its_nodes(
    line: str, keys: dict[str, object], note: str
):
    job = job_with(line)
    assert job.faults == []
    assert {key: job.keys[key] for key in KEYS if key in job.keys} == keys
    assert any(one == f"{' '.join(line.split()[:2])}: {note}" for one in job.notes)


@pytest.mark.parametrize(
    ("pool", "cpus", "gib"), [("hopper", 96.0, 512.0), ("ampere", 64.0, 256.0), ("US", 32.0, 128.0)]
)
def test_a_whole_node_is_one_of_its_partition(pool: str, cpus: float, gib: float):
    job = job_with(f"-p {pool} --exclusive --mem=0")
    assert job.faults == []
    assert (job.keys["cpus_per_node"], job.keys["memory_gib_per_node"]) == (cpus, gib)


@pytest.mark.parametrize(
    ("line", "site", "message", "hint"),
    [
        (
            "-p gpu",
            SITE,
            "no partition `gpu`",
            "valid: virtual-hopper, virtual-ampere, virtual-south, EU, virtual, US;"
            " leave it out to use any node",
        ),
        (
            "-p a",
            Site(SIZES, TWINS),
            "no GPU type and no tag tells the nodes of `a` from others",
            'add a tag to its pool in the fleet file: `certifications = ["a"]`,'
            " or leave it out to use any node",
        ),
        (
            "-p hopper --gres=gpu:a100:4",
            SITE,
            "`-p hopper` has no GPUs of the type that `--gres=gpu:a100:4` names",
            "its types: H100; remove one of the options",
        ),
    ],
)
def test_a_partition_that_cannot_be_selected_is_refused(
    line: str, site: Site, message: str, hint: str
):
    assert [(one.message, one.hint) for one in job_with(line, site).faults] == [(message, hint)]


POOLS = st.lists(
    st.builds(
        NodeKind,
        st.sampled_from("abcd"),
        st.sampled_from(["", "H100", "A100"]),
        st.sets(st.sampled_from(["x", "y", "z"])).map(lambda one: tuple(sorted(one))),
    ),
    min_size=1,
    max_size=5,
    unique=True,
)


@given(POOLS, st.data())
def test_keys_for_a_partition_select_its_nodes_and_no_others(
    kinds: Sequence[NodeKind], data: st.DataObject
):
    name = data.draw(st.sampled_from([*"abcd", "x", "y", "z"]))
    wanted = [one for one in kinds if one.is_named(name)]
    if not wanted:
        return
    found = selecting(Site((), tuple(kinds)), wanted)
    if found is not None:
        assert [one for one in kinds if found.admits(one)] == wanted
    elif all(one.accelerator for one in wanted):
        # No keys at all: another node differs from each of them only in its pool, or mixes them.
        shared = set[str].intersection(*(set(one.tags) for one in wanted))
        types = {one.accelerator for one in wanted}
        seen = {tag for one in wanted for tag in one.tags}
        others = [one for one in kinds if one not in wanted]
        assert any(shared <= set(one.tags) <= seen and one.accelerator in types for one in others)
