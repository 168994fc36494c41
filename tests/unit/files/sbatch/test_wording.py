"""Errors of a control plane name the options of sbatch that its submitter typed."""

import pytest

from tenfold.files.sbatch.script import read_options, read_script
from tenfold.files.sbatch.site import NodeKind, NodeSize, Site
from tenfold.files.sbatch.translate import BatchJob, batch_job
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.finding import Finding

CPUS = "use `--cpus-per-node 2` or less"
MEMORY = "use `--memory-gib-per-node 23.541` or less"
SITE = Site(
    (NodeSize("H100-SXM", 8, 96.0, 512.0),), (NodeKind("virtual-gpu", "H100-SXM", ("ib",)),)
)


def job_with(line: str, site: Site | None = None) -> BatchJob:
    options, _ = read_options(line.split())
    script = read_script("run.sh", "#!/bin/bash\n#SBATCH --time=banana\n")
    return batch_job(script, options, (), folder="/data", site=site)


@pytest.mark.parametrize(
    ("line", "hint", "shown"),
    [
        ("-c 64", CPUS, "use `--cpus-per-task=2` or less"),
        ("-n 4", CPUS, "use `--ntasks=2` or less"),
        ("-N 2 -G 2 -n 8", CPUS, "use `--ntasks=4` or less"),
        ("--ntasks-per-node=4", CPUS, "use `--ntasks-per-node=2` or less"),
        ("-n 2 -c 4", CPUS, "use `--cpus-per-task=1` or less"),
        ("-n 4 -c 16", CPUS, "use `--cpus-per-task=1` with `--ntasks=2` or less"),
        ("--gres=gpu:2 --cpus-per-gpu=9", CPUS, "use `--cpus-per-gpu=1` or less"),
        ("--mem=64G", MEMORY, "use `--mem=24105M` or less"),
        ("-c 2 --mem-per-cpu=64G", MEMORY, "use `--mem-per-cpu=12052M` or less"),
        ("-G 1 --mem-per-gpu=64G", MEMORY, "use `--mem-per-gpu=24105M` or less"),
        ("-G 9", "use `--nodes 2` with `--gpus-per-node 5`", ""),
        (
            "-d afterok:a-1",
            "remove it from `after`, use `after_any` (-d afterany:a-1)",
            "remove it from `--dependency`, use `--dependency=afterany:a-1`",
        ),
        ("--no-requeue", "use `--preemptible`", "remove `--no-requeue`"),
    ],
)
def test_a_hint_names_options_of_sbatch(line: str, hint: str, shown: str):
    assert job_with(line).wording.text(hint) == (shown or hint)


def test_an_error_names_the_line_of_its_option():
    one = Finding(code="x", message="`--time-limit` is wrong", hint="fix", path=("--time-limit",))
    found = job_with("").wording.error(InvalidFile("", [one])).findings[0]
    assert (found.file, found.line, found.message) == ("run.sh", 2, "`--time` is wrong")
    typed = job_with("-t pear").wording.error(InvalidFile("", [one])).findings[0]
    assert (typed.file, typed.line, typed.field) == ("", None, "--time")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("--time-limit=5", "did you mean --time?"),
        ("--cpus-per-node=5", "did you mean --cpus-per-task?"),
        ("--tiem=5", "did you mean --time?"),
        ("--mem=x", "write --mem=4G"),
        ("-N 4-8", "write --nodes=4 or --nodes=8"),
        ("-N all", "write --nodes=2"),
        ("-p debug", "valid: virtual-gpu, ib; leave it out to use any node"),
    ],
)
def test_what_is_no_option_of_sbatch_names_the_one_that_is(line: str, hint: str):
    assert [one.hint for one in job_with(line, SITE).faults] == [hint]


def test_no_memory_is_all_memory_of_a_node_if_all_have_the_same():
    assert job_with("--mem=0", SITE).keys["memory_gib_per_node"] == 512.0
    two = Site((*SITE.sizes, NodeSize("", 0, 8.0, 64.0)))
    for site in (None, two):
        assert [one.option.name for one in job_with("--mem=0", site).faults] == ["mem"]
