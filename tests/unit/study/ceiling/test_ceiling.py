"""The ceilings of a design, layer by layer, against figures done by hand."""

import json
from math import exp, isclose
from pathlib import Path

import pytest

from tenfold.cli.fleet.ceiling import ceiling_command
from tenfold.compose.fleet import OpenFleet, open_fleet
from tenfold.decide.layout.search import search
from tenfold.decide.layout.serve import ServeAnswer
from tenfold.model.errors import InputError
from tenfold.study.ceiling.ceiling import CeilingAnswer, CeilingQuestion, ceiling
from tenfold.study.ceiling.design import design_of, grown
from tenfold.study.ceiling.layers import LayerCeiling, ranked, worst
from tenfold.study.plan.serve import ServeQuestion, plan_serving

EXAMPLES = Path(__file__).parents[4] / "examples"
LAYERS = {
    "efficiency",
    "scale-up",
    "leaf-uplinks",
    "pod-uplinks",
    "fabric-ports",
    "rack-power",
    "site-power",
    "storage-read",
    "storage-streams",
    "checkpoint-write",
    "failures",
    "gpu-memory",
}
FLEET = """
[[site]]
name = "hall"
power_kw = {power_kw}
rack_kw = 45
pue = 1.25

[[fabric]]
name = "net"
nodes_per_leaf = 8
oversubscription = {oversubscription}
{fabric}

[[pool]]
name = "h100"
accelerator = "H100"
nodes = 32
gpus_per_node = 8
nodes_per_rack = 4
power_kw_per_node = 10

{tier}

[expects]
model = "{model}"
"""
TIER = '[[tier]]\nname = "fast"\nclass = "hot"\nread_gb_per_s = 50\nwrite_gb_per_s = 40\nstreams = '


@pytest.fixture
def fleet(tmp_path: Path):
    def make(
        *,
        oversubscription: float = 1,
        power_kw: float = 4_000,
        fabric: str = "",
        tier: str = TIER + "1000",
        model: str = "Llama 3.1 8B",
    ) -> OpenFleet:
        path = tmp_path / "fleet.toml"
        path.write_text(
            FLEET.format(
                oversubscription=oversubscription,
                power_kw=power_kw,
                fabric=fabric,
                tier=tier,
                model=model,
            )
        )
        return open_fleet(path)

    return make


def layer(answer: CeilingAnswer, name: str) -> LayerCeiling:
    [one] = [one for one in answer.layers if one.layer == name]
    return one


def test_every_layer_is_answered_once_and_ranked(fleet):
    answer = ceiling(fleet())
    assert {one.layer for one in answer.layers} == LAYERS
    assert len(answer.layers) == len(LAYERS)
    bounds = [one.gpus for one in answer.layers if one.status == "binds"]
    assert bounds == sorted(bounds)
    assert answer.gpus == bounds[0]
    assert answer.binding == answer.layers[0].layer
    assert all(one.headroom == one.gpus / 256 for one in answer.layers if one.gpus is not None)


def test_oversubscription_changes_the_ceiling_and_what_binds(fleet):
    wide, thin = ceiling(fleet(oversubscription=1)), ceiling(fleet(oversubscription=4))
    assert layer(wide, "leaf-uplinks").status == "free"
    assert wide.binding == "rack-power"
    assert (thin.binding, thin.gpus) == ("leaf-uplinks", 64)
    assert thin.gpus < wide.gpus
    assert "4:1" in layer(thin, "leaf-uplinks").sentence


def test_a_job_beyond_the_uplinks_is_as_slow_as_was_said(fleet):
    opened = fleet(oversubscription=4, model="Llama 3.1 70B")
    said = layer(ceiling(opened), "leaf-uplinks")
    design = design_of(opened, CeilingQuestion())
    flat = design_of(fleet(oversubscription=1, model="Llama 3.1 70B"), CeilingQuestion())
    inside, beyond = said.gpus, 2 * said.gpus
    assert search(design.request, grown(design, inside), inside).step_s[0] == pytest.approx(
        search(flat.request, grown(flat, inside), inside).step_s[0]
    )
    thin = search(design.request, grown(design, beyond), beyond).step_s[0]
    wide = search(flat.request, grown(flat, beyond), beyond).step_s[0]
    assert said.loss_at_double > 0.01
    assert said.loss_at_double == pytest.approx(1 - wide / thin)


def test_a_narrow_core_binds_at_one_pod(fleet):
    answer = ceiling(fleet(fabric="leaves_per_pod = 2\ncore_oversubscription = 3"))
    pod = layer(answer, "pod-uplinks")
    assert pod.gpus == 8 * 2 * 8
    assert "3:1" in pod.sentence


def test_ports_hold_what_leaves_and_spines_reach(fleet):
    ports = layer(ceiling(fleet(fabric="switch_ports = 64")), "fabric-ports")
    assert ports.gpus == 8 * 64 * 8
    assert ports.evidence == "stated"


def test_one_switch_holds_as_many_nodes_as_it_has_ports(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    path.write_text('[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 4\ngpus_per_node = 8\n')
    ports = layer(ceiling(open_fleet(path)), "fabric-ports")
    assert ports.gpus == 64 // 8 * 8
    assert ports.evidence == "supposed"


def test_power_is_counted_in_whole_nodes(fleet):
    answer = ceiling(fleet(power_kw=500))
    # 500 kW / 1.25 are 400, less 1.2 for one shelf, at 10 kW a node.
    assert layer(answer, "site-power").gpus == 39 * 8
    # 8 racks of 45 kW take 4 nodes of 10 kW each.
    assert layer(answer, "rack-power").gpus == 8 * 4 * 8
    assert layer(answer, "site-power").evidence == "stated"


def test_layers_without_figures_are_unknown_and_not_ranked(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    path.write_text('[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 4\ngpus_per_node = 8\n')
    answer = ceiling(open_fleet(path))
    unknown = {one.layer for one in answer.layers if one.status == "unknown"}
    assert unknown == LAYERS - {"leaf-uplinks", "pod-uplinks", "fabric-ports", "failures"}
    assert all(one.gpus is None for one in answer.layers if one.status == "unknown")
    assert answer.binding == "fabric-ports"
    statuses = [one.status for one in answer.layers]
    assert statuses == sorted(statuses, key=["binds", "free", "unknown"].index)


def test_each_axis_of_a_tier_binds_alone(fleet):
    slow = ceiling(fleet(), CeilingQuestion(feed_bytes_per_s_per_gpu=500e6))
    assert layer(slow, "storage-read").gpus == 100
    assert slow.binding == "storage-read"
    assert layer(slow, "storage-read").loss_at_double > 0.4
    crowded = ceiling(fleet(tier=TIER + "64"), CeilingQuestion(feed_bytes_per_s_per_gpu=1e6))
    assert layer(crowded, "storage-streams").gpus == 64
    assert crowded.binding == "storage-streams"
    several = ceiling(fleet(), CeilingQuestion(streams_per_gpu=8))
    assert layer(several, "storage-streams").gpus == 125


def test_a_feed_faster_than_one_stream_is_carried_by_no_job(fleet):
    answer = ceiling(fleet(), CeilingQuestion(feed_bytes_per_s_per_gpu=20e9))
    assert (answer.binding, answer.gpus) == ("storage-read", 0)


def test_tokens_alone_do_not_load_a_large_tier():
    answer = ceiling(open_fleet(EXAMPLES / "research-256" / "fleet.toml"))
    read = layer(answer, "storage-read")
    assert (read.status, read.evidence) == ("free", "assumption")


def test_failures_take_a_tenth_where_restarts_alone_do(fleet):
    answer = ceiling(fleet(), CeilingQuestion(failures="rsc-1"))
    found = layer(answer, "failures")
    nodes = found.gpus / 8

    def left(count: float) -> float:
        return exp(-count * 6.5e-3 / 86_400 * 900)

    assert left(nodes) >= 0.9 > left(nodes + 1)
    assert layer(answer, "checkpoint-write").gpus <= found.gpus
    assert found.evidence == "supposed"


def test_a_slower_tier_lowers_the_checkpoint_ceiling(fleet):
    def of(write: int) -> int:
        tier = (TIER + "1000").replace("write_gb_per_s = 40", f"write_gb_per_s = {write}")
        return layer(ceiling(fleet(tier=tier)), "checkpoint-write").gpus

    assert of(1) < of(40)


def test_memory_binds_where_the_model_does_not_fit_the_fleet(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    path.write_text(
        '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 1\ngpus_per_node = 8\n'
        '[expects]\nmodel = "Llama 3.1 405B"\n'
    )
    answer = ceiling(open_fleet(path))
    assert (answer.binding, answer.gpus) == ("gpu-memory", 0)
    assert answer.capacity_summary.replicas is None


def test_replicas_and_models_are_counted(fleet):
    carried = ceiling(fleet(model="Llama 3.1 70B")).capacity_summary
    assert carried.gpus_per_replica == 2
    assert carried.replicas == 128
    assert carried.model_trained_params_b > 300
    assert carried.model_served_by_node_params_b > 200
    assert carried.data_bytes_per_s == 50e9


def test_what_is_expected_is_held_against_the_ceilings():
    answer = ceiling(open_fleet(EXAMPLES / "research-256" / "fleet.toml"))
    assert answer.gpus_expected == 4096
    assert [one.layer for one in answer.short_of_expected] == [
        "efficiency",
        "site-power",
        "rack-power",
    ]


def test_a_wider_domain_frees_the_scale_up_layer():
    narrow = open_fleet(EXAMPLES / "research-256" / "fleet.toml")
    wide = open_fleet(EXAMPLES / "nvl72" / "fleet.toml")
    question = CeilingQuestion(model="Llama 3.1 70B")
    assert layer(ceiling(narrow, question), "scale-up").status == "binds"
    assert layer(ceiling(wide, question), "scale-up").status == "free"


def test_an_unknown_tier_is_named_with_those_there_are(fleet):
    with pytest.raises(InputError, match="no tier `slow`") as caught:
        ceiling(fleet(), CeilingQuestion(tier="slow"))
    assert "`fast`" in caught.value.hint


def test_grades_are_no_better_than_their_worst():
    assert worst("stated", "supposed") == "supposed"
    assert worst("assumption", "stated") == "assumption"
    assert ranked([]) == []


def test_the_command_prints_a_table_and_json(capsys: pytest.CaptureFixture[str]):
    file = EXAMPLES / "oversubscribed" / "fleet.toml"
    ceiling_command(file)
    printed = capsys.readouterr().out
    assert "over its limit today: Leaf uplinks (64 of 256 GPUs)" in printed
    assert "planned size of 8,000 GPUs" in printed
    ceiling_command(file, feed_mb_per_s_per_gpu=5, as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert answer["binding"] == "leaf-uplinks"
    assert isclose(answer["layers"][0]["headroom"], 0.25)


def test_the_first_limit_is_no_comparison_with_a_faster_design():
    answer = ceiling(open_fleet(EXAMPLES / "research-256" / "fleet.toml"))
    assert answer.layers[0].layer == "efficiency"
    assert answer.binding == "site-power"
    assert answer.gpus == layer(answer, "site-power").gpus


def test_plan_serve_finds_a_node_for_the_largest_model_that_one_serves():
    path = EXAMPLES / "research-256" / "fleet.toml"
    served = ceiling(open_fleet(path)).capacity_summary.model_served_by_node_largest
    question = ServeQuestion(
        model=served or "",
        fleet=path,
        qps=0.01,
        input_tokens=1024,
        output_tokens=1024,
        ttft_s=1.0,
        tpot_s=0.1,
    )
    planned = plan_serving(question).answer
    assert isinstance(planned, ServeAnswer)
    assert min(plan.gpus_per_replica for plan in planned.plans) <= 8


def test_a_model_that_one_node_serves_only_in_8_bits_says_so(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    path.write_text(
        '[[pool]]\nname = "p"\naccelerator = "H100"\nnodes = 4\ngpus_per_node = 8\n'
        '[expects]\nmodel = "Llama 3.1 405B"\n'
    )
    carried = ceiling(open_fleet(path)).capacity_summary
    assert carried.model_served_by_node_params_b > 405
    assert carried.model_served_by_node_precision == "fp8"
    # The same node cannot hold 405B in 16 bits, which is what replicas are counted in.
    assert carried.gpus_per_replica == 16
