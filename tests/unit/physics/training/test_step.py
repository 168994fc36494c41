"""Whole steps: what a layout, a fabric and a precision do to one."""

from dataclasses import replace

import numpy as np
import pytest

from tenfold.physics.training.arrays import (
    PRECISION_CODES,
    SHARD_CODES,
    gather,
    model_flops_per_token,
    parameters,
    take,
)
from tenfold.physics.training.shapes import training_part, training_shape
from tenfold.physics.training.step import StepTimes, straggling, time_plans
from training_builders import CATALOGUE, PROFILE, part, plan, shape

GBIT_PER_S = 1e9 / 8


def step(**changes: float) -> float:
    return float(time_plans(shape(), plan(**changes), part(), PROFILE).step_s)


def tokens_per_s(gpus: float, **changes: float) -> float:
    return 256 * 4096 / step(dp=gpus, shard=float(SHARD_CODES["zero1"]), **changes)


def test_the_parts_of_a_step_sum_to_it():
    times = time_plans(shape(), plan(tp=4.0, pp=2.0, dp=8.0), part(), PROFILE)
    parts = [getattr(times, name) for name in StepTimes.__slots__ if name != "step_s"]
    assert sum(map(float, parts)) == pytest.approx(float(times.step_s))


def test_with_good_links_more_gpus_pay():
    assert tokens_per_s(64.0) > 6 * tokens_per_s(8.0)


def test_with_a_slow_fabric_more_gpus_are_slower():
    """R25: beyond the node the gradients of each step cross one gigabit a GPU."""
    slow = {"nic_bytes_s": GBIT_PER_S}
    assert tokens_per_s(16.0, **slow) < tokens_per_s(8.0, **slow)


def test_oversubscription_is_a_narrower_nic():
    narrow = step(dp=64.0, oversubscription=4.0)
    assert narrow == step(dp=64.0, nic_bytes_s=50e9 / 4)
    assert narrow > step(dp=64.0)


def test_tensor_parallel_across_nodes_shows_its_penalty():
    inside = time_plans(shape(), plan(tp=8.0), part(), PROFILE)
    across = time_plans(shape(), plan(tp=16.0), part(), PROFILE)
    narrow = time_plans(shape(), plan(tp=16.0, nic_bytes_s=12.5e9), part(), PROFILE)
    assert float(across.tp_s) > 1.1 * float(inside.tp_s)
    assert float(narrow.tp_s) > 3 * float(inside.tp_s)
    # Half of the work a GPU, and yet the step is longer.
    assert float(narrow.step_s) > float(inside.step_s)


def test_fewer_bits_are_faster_and_half_precision_at_most_doubles():
    """R26, R27: a step is more than its matrix products, so it gains less than they do."""
    steps = {name: step(precision=float(code)) for name, code in PRECISION_CODES.items()}
    assert steps["fp32"] > steps["tf32"] > steps["bf16"] > steps["fp8"]
    assert steps["fp16"] == steps["bf16"]
    assert 1.3 < steps["tf32"] / steps["bf16"] < 2.0
    assert 4.0 < steps["fp32"] / steps["bf16"] < 16.0


def test_accumulating_gradients_reduces_them_once():
    """R26: four times the batch in four micro-batches does not reduce four times."""
    once = time_plans(shape(), plan(dp=64.0, global_batch=64.0), part(), PROFILE)
    four = time_plans(shape(), plan(dp=64.0, global_batch=256.0), part(), PROFILE)
    assert float(four.dp_s) == pytest.approx(float(once.dp_s))
    assert float(four.compute_s) == pytest.approx(4 * float(once.compute_s), rel=1e-6)


def test_full_recompute_costs_about_one_more_forward_pass():
    ratio = step(recompute=2.0) / step(recompute=0.0)
    assert 1.2 < ratio < 1.4


def test_straggling_begins_beyond_a_node_and_never_falls():
    values = np.asarray(straggling(2.0 ** np.arange(17)))
    assert np.all(values[:4] == 0)
    assert np.all(np.diff(values[3:]) > 0)


def test_small_layers_wait_for_their_launches():
    tiny = shape(hidden=256, heads=4, ffn=1024)
    slow = replace(PROFILE, launch_s=2e-3)
    quick = time_plans(tiny, plan(seq=128.0), part(), PROFILE)
    late = time_plans(tiny, plan(seq=128.0), part(), slow)
    assert float(late.step_s) > 3 * float(quick.step_s)


def test_routed_layers_time_only_the_experts_visited():
    wide = shape(experts=64, topk=2, ffn=11008)
    times = time_plans(wide, plan(dp=8.0, ep=8.0), part(), PROFILE)
    dense = time_plans(shape(ffn=2 * 11008), plan(dp=8.0), part(), PROFILE)
    assert float(times.compute_s) < 2.5 * float(dense.compute_s)
    assert float(times.moe_s) > 0 == float(dense.moe_s)


def test_parameters_of_published_models_are_those_they_state():
    for name in ("Llama 3.1 405B", "Llama 3.1 8B", "Qwen3 235B-A22B", "DeepSeek V3"):
        preset = CATALOGUE.models.get(name)
        counted = float(sum(parameters(training_shape(preset.shape))))
        assert counted / 1e9 == pytest.approx(preset.params_b, rel=0.03), name


def test_model_flops_count_six_a_weight_and_half_of_the_scores():
    small = shape(vocab=1000)
    dense, _, _ = parameters(small)
    scores = 3 * 32 * 32 * 4096 * 2 * 128
    expected = 6 * (float(dense) + 1000 * 4096) + scores
    assert float(model_flops_per_token(small, 4096.0)) == pytest.approx(expected)


def test_every_accelerator_in_the_facts_can_be_timed():
    for fact in CATALOGUE.accelerators:
        if fact.training_tflops:
            times = time_plans(shape(), plan(), training_part(fact), PROFILE)
            assert 0 < float(times.step_s) < float("inf"), fact.name


def test_gathered_plans_come_apart_again():
    both = gather([plan(tp=2.0), plan(tp=4.0)])
    assert take(both, np.array([1])).tp.tolist() == [4.0]
    assert take(plan(), slice(0, 1)).tp == 1.0
