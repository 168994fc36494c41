"""Clusters alone and merged: the same jobs, on each fleet by itself and on all as one."""

from pathlib import Path

import pytest

from tenfold.compose.inputs import SimFiles
from tenfold.model.errors import InputError
from tenfold.study.sim.merged import MergeAnswer, MergeQuestion, merge_clusters

FLEET = """
name = "{name}"
[[pool]]
name = "gpus"
accelerator = "{accelerator}"
nodes = {nodes}
gpus_per_node = 8
"""
HEAD = "job_id,team,submit_s,duration_s,gpus\n"


def cluster(
    folder: Path, name: str, jobs: str, *, nodes: int = 1, accelerator: str = "H100"
) -> SimFiles:
    fleet, table = folder / f"{name}.toml", folder / f"{name}.csv"
    fleet.write_text(FLEET.format(name=name, nodes=nodes, accelerator=accelerator))
    table.write_text(HEAD + jobs)
    return SimFiles(fleet=fleet, jobs=table, policy="fifo")


def merged(*clusters: SimFiles, any_accelerator: bool = False) -> MergeAnswer:
    return merge_clusters(MergeQuestion(clusters=clusters, any_accelerator=any_accelerator))


def test_a_full_cluster_uses_an_idle_one(tmp_path: Path):
    full = cluster(tmp_path, "full", "a,blue,0,3600,8\nb,blue,0,3600,8\nd,blue,9000,60,8\n")
    idle = cluster(tmp_path, "idle", "c,red,7200,600,8\n")
    answer = merged(full, idle)
    assert (answer.waits.wait_s_mean_before, answer.waits.wait_s_mean) == (900.0, 0.0)
    blue = answer.teams[0]
    assert blue.waits.wait_s_mean_before == 1200.0
    assert blue.gpu_hours_elsewhere == 8.0
    assert answer.clusters[1].gpu_hours_from_others == 8.0
    assert answer.losing == ()


def test_a_team_whose_idle_nodes_are_taken_loses(tmp_path: Path):
    full = cluster(tmp_path, "full", "a,blue,0,3600,8\nb,blue,0,3600,8\n")
    other = cluster(tmp_path, "other", "x,red,0,1,1\nc,red,60,600,8\n")
    answer = merged(full, other)
    assert answer.losing == ("red",)


def test_the_work_is_the_same_before_and_after(tmp_path: Path):
    one = cluster(tmp_path, "one", "a,blue,0,3600,8\nb,blue,0,60,4\n")
    two = cluster(tmp_path, "two", "c,red,0,600,8\n")
    answer = merged(one, two)
    hours = sum(each.gpu_utilization * each.gpus for each in answer.clusters)
    before = sum(each.gpu_utilization_before * each.gpus for each in answer.clusters)
    assert hours == pytest.approx(before)


@pytest.mark.parametrize(("any_accelerator", "elsewhere"), [(False, 0.0), (True, 8.0)])
def test_jobs_without_an_accelerator_keep_to_their_own_types(
    any_accelerator: bool, elsewhere: float, tmp_path: Path
):
    full = cluster(tmp_path, "full", "a,blue,0,3600,8\nb,blue,0,3600,8\n")
    idle = cluster(tmp_path, "idle", "c,red,7200,600,8\n", accelerator="A100")
    answer = merged(full, idle, any_accelerator=any_accelerator)
    assert answer.teams[0].gpu_hours_elsewhere == elsewhere


def test_a_gang_never_spans_clusters(tmp_path: Path):
    one = cluster(tmp_path, "one", "a,blue,0,3600,16\nb,blue,0,60,8\n")
    two = cluster(tmp_path, "two", "c,red,0,600,8\n")
    answer = merged(one, two)
    assert answer.waits.jobs == 2, "neither cluster has 16 GPUs, and no cable joins them"
    assert answer.never == 1


def test_a_gang_larger_than_its_cluster_may_fit_in_the_other(tmp_path: Path):
    one = cluster(tmp_path, "one", "a,blue,0,3600,16\nb,blue,0,60,8\n")
    two = cluster(tmp_path, "two", "c,red,0,600,8\n", nodes=2)
    assert merged(one, two).teams[0].only_merged == 1


def test_jobs_and_nodes_of_one_name_stay_apart(tmp_path: Path):
    one = cluster(tmp_path, "one", "a,blue,0,3600,8\n")
    two = cluster(tmp_path, "two", "a,blue,0,3600,8\n")
    answer = merged(one, two)
    assert answer.waits.jobs == 2
    assert answer.teams[0].clusters == ("one", "two")


def test_histories_whose_times_do_not_overlap_begin_together(tmp_path: Path):
    one = cluster(tmp_path, "one", "a,blue,1000000,3600,8\n")
    two = cluster(tmp_path, "two", "b,red,0,3600,8\n")
    answer = merged(one, two)
    assert "assumed: all histories begin together" in answer.notes
    assert answer.makespan_s == 3600.0


def test_one_cluster_is_nothing_to_merge(tmp_path: Path):
    with pytest.raises(InputError, match="two clusters"):
        merged(cluster(tmp_path, "one", "a,blue,0,3600,8\n"))
