"""Layouts that experience has settled: what is chosen, and the reason that is given."""

from pathlib import Path

import pytest

from tenfold.decide.layout.families import family_of
from tenfold.decide.layout.train import TrainAnswer
from tenfold.model.reason import Misfit
from tenfold.report.reasons.render import render
from tenfold.study.plan.serve import ServeQuestion, plan_serving
from tenfold.study.plan.train import TrainPlanResult, TrainQuestion, plan_training

FLEET = '[[pool]]\nname = "h100"\naccelerator = "{part}"\nnodes = {nodes}\ngpus_per_node = 8\n'


@pytest.fixture
def plan(tmp_path: Path):
    def ask(model: str, nodes: int, *, part: str = "H100", fleet: str = "", **more: object):
        path = tmp_path / "fleet.toml"
        path.write_text(FLEET.format(part=part, nodes=nodes) + fleet)
        return plan_training(TrainQuestion(model=model, fleet=path, **more))  # pyright: ignore

    return ask


def answer_of(planned: TrainPlanResult) -> TrainAnswer:
    assert not isinstance(planned.answer, Misfit), planned.answer
    return planned.answer


def codes(planned: TrainPlanResult) -> list[str]:
    return [reason.code for reason in answer_of(planned).why]


def test_seven_billion_on_80_gb_is_plain_data_parallelism_and_says_why(plan):
    planned = plan("Llama 2 7B", 1, gpus=8)
    best = answer_of(planned).plans[0].plan
    assert (best.tp, best.pp, best.cp, best.dp) == (1, 1, 1, 8)
    assert "data-wins" in codes(planned)
    assert "tensor-slower" in codes(planned)
    won = next(one for one in answer_of(planned).why if one.code == "data-wins")
    assert "without model parallelism, each GPU uses" in render(won)


def test_175_billion_takes_tensor_and_pipeline_parallelism(plan):
    planned = plan("GPT-3 175B", 128, gpus=1024, seq=2048, global_batch=1536)
    assert family_of(answer_of(planned).plans[0].plan).code == "tensor-pipeline"


def test_tensor_parallelism_stays_in_the_scale_up_domain(plan):
    planned = plan("GPT-3 175B", 128, gpus=1024, seq=2048, global_batch=1536)
    assert all(one.plan.tp <= 8 for one in answer_of(planned).plans)
    assert all(point.plan.tp <= 8 for point in answer_of(planned).curve.points)


def test_forced_across_the_domain_it_shows_the_penalty(plan):
    ask = {"gpus": 1024, "seq": 2048, "global_batch": 1536}
    inside = answer_of(plan("GPT-3 175B", 128, tp=8, **ask))
    forced = plan("GPT-3 175B", 128, tp=16, **ask)
    across = answer_of(forced)
    assert across.plans[0].breakdown_s["tp_s"] > 2 * inside.plans[0].breakdown_s["tp_s"]
    assert across.plans[0].step_s > 1.2 * inside.plans[0].step_s
    assert "tensor-crosses-domain" in codes(forced)


def test_a_slow_fabric_makes_more_gpus_slower(plan):
    slow = "nics_per_node = 1\nnic_gbps = 1\n"
    planned = plan(
        "Llama 2 7B",
        256,
        fleet=slow,
        global_batch=2048,
        tp=1,
        pp=1,
        shard="zero1",
        recompute="none",
    )
    curve = answer_of(planned).curve
    assert curve.slower_from is not None
    assert "returns-negative" in codes(planned)
    fast = plan("Llama 2 7B", 256, global_batch=2048, tp=1, pp=1, shard="zero1", recompute="none")
    assert answer_of(fast).curve.slower_from is None


def test_returns_diminish_and_the_knee_is_named(plan):
    planned = plan("Llama 3.1 8B", 512, global_batch=1024, seq=8192)
    # Other batches than the requested one are not comparable to the last percent.
    points = [one for one in answer_of(planned).curve.points if one.plan.global_batch == 1024]
    best = max(range(len(points)), key=lambda place: points[place].efficiency)
    tail = [point.efficiency for point in points[best:]]
    assert tail == sorted(tail, reverse=True)
    assert answer_of(planned).plans[0].plan.gpus == answer_of(planned).curve.knee
    assert "at-the-knee" in codes(planned)


def test_a_deadline_takes_the_cheapest_size_that_meets_it(plan):
    day = 86_400
    tight = plan("Llama 3.1 70B", 256, tokens=1e12, deadline_s=15 * day)
    loose = plan("Llama 3.1 70B", 256, tokens=1e12, deadline_s=120 * day)
    assert answer_of(tight).plans[0].plan.gpus > answer_of(loose).plans[0].plan.gpus
    assert answer_of(tight).plans[0].run.days <= 15
    assert codes(tight)[0] == "deadline-met"


def test_a_deadline_or_budget_that_cannot_be_met_is_told(plan):
    assert (
        codes(plan("Llama 3.1 405B", 64, tokens=15e12, deadline_s=86_400))[0] == "deadline-missed"
    )
    assert codes(plan("Llama 3.1 8B", 8, tokens=15e12, budget_usd=1))[0] == "budget-missed"


def test_a_model_that_does_not_fit_says_how_much_is_missing(plan):
    planned = plan("Llama 3.1 405B", 1, gpus=8)
    assert isinstance(planned.answer, Misfit)
    [reason] = planned.answer.reasons
    assert reason.code == "memory-exceeded"
    assert "GiB" in render(reason)


def test_more_gpus_than_there_are_is_a_misfit(plan):
    planned = plan("Llama 3.1 8B", 1, gpus=64)
    assert isinstance(planned.answer, Misfit)
    assert planned.answer.reasons[0].code == "not-enough-gpus"


def test_no_plan_of_the_front_is_beaten_in_everything(plan):
    front = answer_of(plan("Llama 3.1 70B", 64)).front
    axes = [(one.step_s / one.effective_share, one.usd_per_step, one.plan.gpus) for one in front]
    for own in axes:
        assert not any(
            other != own and all(a <= b for a, b in zip(other, own, strict=True)) for other in axes
        )


def test_oversubscription_slows_a_job_larger_than_a_leaf(plan):
    open_fabric = '\n[[fabric]]\nname = "ib"\nnodes_per_leaf = 4\n'
    narrow = open_fabric + "oversubscription = 8\n"
    ask = {"gpus": 256, "tp": 1, "pp": 1, "shard": "zero3", "global_batch": 512}
    wide_s = answer_of(plan("Llama 3.1 8B", 32, fleet=open_fabric, **ask)).plans[0].step_s
    narrow_s = answer_of(plan("Llama 3.1 8B", 32, fleet=narrow, **ask)).plans[0].step_s
    assert narrow_s > 1.1 * wide_s


def test_plans_are_estimated_as_estimate_would(plan):
    planned = plan("Llama 3.1 8B", 4, gpus=32)
    one = planned.estimates[0]
    assert one.step_s == pytest.approx(answer_of(planned).plans[0].step_s, rel=0.02)
    assert one.interval_s[0] < one.step_s < one.interval_s[1]
    assert one.fits is True


def test_a_mixture_of_experts_uses_expert_parallelism(plan):
    best = answer_of(plan("DeepSeek V3", 256, gpus=2048, global_batch=15_360)).plans[0].plan
    assert best.ep > 1


@pytest.fixture
def serve(tmp_path: Path):
    def ask(model: str, fleet: str, **more: object):
        path = tmp_path / "fleet.toml"
        path.write_text(fleet)
        usual = {"qps": 10, "input_tokens": 1000, "output_tokens": 200, "ttft_s": 1, "tpot_s": 0.05}
        return plan_serving(ServeQuestion(model=model, fleet=path, **{**usual, **more})).answer  # pyright: ignore

    return ask


H100S = FLEET.format(part="H100", nodes=16)


def test_a_small_model_is_served_by_single_gpus(serve):
    best = serve("Llama 3.1 8B", H100S).plans[0]
    assert best.gpus_per_replica == 1
    assert best.ttft_s <= 1
    assert best.tpot_s <= 0.05


def test_a_large_model_is_kept_inside_one_node_where_it_fits(serve):
    best = serve("Llama 3.1 405B", H100S, precisions=("fp8",), tpot_s=0.1).plans[0]
    assert best.gpus_per_replica >= 8
    assert best.tp >= best.pp


def test_replicas_grow_with_the_load_and_money_with_them(serve):
    calm, busy = (serve("Llama 3.1 70B", H100S, qps=qps).plans[0] for qps in (2, 40))
    assert busy.gpus > calm.gpus
    assert busy.usd_per_hour > calm.usd_per_hour


def test_objectives_that_nothing_meets_are_told_apart(serve):
    answer = serve("Llama 3.1 70B", H100S, ttft_s=0.001)
    assert isinstance(answer, Misfit)
    assert "ttft-missed" in [reason.code for reason in answer.reasons]


def test_too_few_gpus_for_the_load_is_told(serve):
    answer = serve("Llama 3.1 70B", FLEET.format(part="H100", nodes=1), qps=500)
    assert isinstance(answer, Misfit)
    assert "not-enough-gpus" in [reason.code for reason in answer.reasons]


def test_fewer_bits_of_gradients_pay_where_the_fabric_is_slow(plan):
    """R28: compression pays on a slow fabric and hardly where traffic is hidden."""

    def step_s(bits: int, fleet: str) -> float:
        ask = {"gpus": 64, "tp": 1, "pp": 1, "shard": "zero1", "global_batch": 128}
        planned = plan("Llama 2 7B", 8, fleet=fleet, gradient_bits=bits, **ask)
        return answer_of(planned).plans[0].step_s

    slow = "nics_per_node = 1\nnic_gbps = 25\n"
    gain_slow, gain_fast = (1 - step_s(8, fleet) / step_s(32, fleet) for fleet in (slow, ""))
    assert gain_slow > 0.2
    assert gain_slow > 4 * gain_fast


def test_compression_costs_time_so_that_it_pays_only_below_some_bandwidth(plan):
    """R28: a sweep over bandwidth crosses from paying to not paying."""
    ask = {"gpus": 64, "tp": 1, "pp": 1, "shard": "zero1", "global_batch": 2048}

    def gain(gbps: int, **more: object) -> float:
        fleet = f"nics_per_node = 8\nnic_gbps = {gbps}\n"
        plain, packed = (
            answer_of(plan("Llama 2 7B", 8, fleet=fleet, gradient_bits=bits, **ask, **more))
            for bits in (32, 8)
        )
        return plain.plans[0].step_s - packed.plans[0].step_s

    sweep = [gain(gbps) for gbps in (5, 50, 400)]
    assert sweep == sorted(sweep, reverse=True)
    assert sweep[0] > 0 > sweep[-1]
    # Without overlap nothing hides the traffic, so compression pays for longer.
    assert gain(400, no_overlap=True) > gain(400)
    assert gain(400, compression_bytes=0.0) >= 0


def test_a_run_costs_energy_and_less_on_the_spot_market(plan):
    planned = plan("Llama 3.1 8B", 8, gpus=64, tokens=1e11)
    run = answer_of(planned).plans[0].run
    floor_kwh = 64 * 0.7 * 0.5 * run.days * 24
    assert floor_kwh < run.kwh < 6 * floor_kwh
    assert run.co2e_kg == pytest.approx(run.kwh * 0.4, rel=0.01)
    assert planned.usd_by_kind["spot"] < planned.usd_by_kind["on-demand"]


def test_a_batch_that_does_not_divide_becomes_the_nearest_that_does(plan):
    planned = plan("Llama 3.1 8B", 6, gpus=24, global_batch=1000, micro_batch=1)
    best = answer_of(planned).plans[0].plan
    assert best.gpus == 24
    assert best.global_batch != 1000
    assert abs(best.global_batch - 1000) <= 125
    assert best.global_batch % (best.dp * best.micro_batch) == 0
    said = next(one for one in answer_of(planned).why if one.code == "batch-rounded")
    assert (said.fields["asked"], said.fields["used"]) == (1000, best.global_batch)


def test_a_batch_far_from_any_that_divides_is_still_a_misfit(plan):
    planned = plan("Llama 3.1 8B", 8, gpus=64, global_batch=4, tp=1, pp=1, cp=1)
    assert isinstance(planned.answer, Misfit)


def test_sizes_between_the_doublings_are_shown_but_not_recommended_with_another_batch(plan):
    planned = plan("Llama 3.1 8B", 8, global_batch=512)
    curve = answer_of(planned).curve
    by_size = {one.gpus: one.plan.global_batch for one in curve.points}
    assert {16, 24, 32, 48, 64} <= set(by_size)
    assert by_size[24] != 512
    assert by_size[32] == 512
    assert 24 not in curve.judged
    assert answer_of(planned).plans[0].plan.global_batch == 512


def test_a_size_that_the_batch_divides_poorly_over_is_shown_with_a_close_batch(plan):
    answer = answer_of(plan("Llama 3.1 70B", 128, gpus=1000, global_batch=777))
    points = {point.gpus: point for point in answer.curve.points}
    # 777 sequences divide over 64 GPUs, but only as one rank of a deep pipeline.
    assert points[64].plan.global_batch != 777
    assert abs(points[64].plan.global_batch / 777 - 1) <= 0.05
    rates = [points[size].tokens_per_s for size in sorted(points)]
    assert rates == sorted(rates)
    assert min(points[size].efficiency for size in (64, 128, 256, 512)) > 0.85


def test_the_knee_is_chosen_from_sizes_that_the_batch_divides_over(plan):
    answer = answer_of(plan("Llama 3.1 70B", 64, global_batch=777))
    # Half of the sizes are shown with another batch, and still count: 777 divides over them.
    assert answer.curve.knee is not None
    assert answer.curve.knee > 48
    assert answer.plans[0].plan.gpus == answer.curve.knee


def test_sharded_gradients_in_a_pipeline_are_timed_where_they_are_requested(plan):
    ask = {"gpus": 16384, "seq": 8192, "global_batch": 2048, "tp": 8, "pp": 16}
    best = answer_of(plan("Llama 3.1 405B", 2048, shard="zero2", **ask)).plans[0]
    assert best.plan.shard == "zero2"
    # As Meta ran it: no recompute, in 80 GB.
    assert best.plan.recompute == "none"
    usual = answer_of(plan("Llama 3.1 405B", 2048, **ask)).plans
    assert {one.plan.shard for one in usual} <= {"none", "zero1"}


def test_options_that_no_batch_divides_are_blamed_with_the_requested_batch(plan):
    planned = plan("Llama 3.1 70B", 16, gpus=128, global_batch=500, tp=3)
    assert isinstance(planned.answer, Misfit)
    assert "500 sequences" in render(planned.answer.reasons[0])


def test_layers_may_divide_unevenly_over_stages(plan):
    planned = plan(
        "DeepSeek-V3",
        256,
        part="H800",
        pp=16,
        ep=64,
        gpus=2048,
        global_batch=15_360,
        precision="fp8",
    )
    assert all(one.plan.pp == 16 for one in answer_of(planned).plans)
